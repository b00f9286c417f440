"""Figures 9 and 10 of Babenko et al. 2008, and the grouping accuracies of Section 3.2."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.boosting.groups import ADA_BOOST
from benchmarks.boosting.published import GROUPING
from benchmarks.boosting.trials import DRAWS, Methods, found_groups, values
from benchmarks.common.claims import Claim, Number, Statement
from benchmarks.common.items import Work
from ldl import charts

POOLINGS: Methods = {
    "NOR": {"pooling": "nor"},
    "ISR": {"pooling": "isr"},
    "GM": {"pooling": "gm", "r": 20.0},
    "LSE": {"pooling": "lse", "r": 20.0},
}
CLUSTERED: dict[str, dict[str, Any]] = {
    "digits": {"shrinkage": 0.1},
    "faces": {"shrinkage": 0.1, "clustered": 64, "whitened": 0.99},
}
"""The head's, with clusters that start the groups, and short steps."""
PLAIN: dict[str, Any] = {"clustered": 0, "shrinkage": 1.0, "cut": "error", "max_step": 100.0}
"""The paper's: groups start alike, stumps are cut by the weighted error, steps are as long as the line search finds."""
TRIED = "ISR"
WAYS: dict[str, Methods] = {
    "each stump tries random features": {f"a share of {share:g}": {"features": share} for share in (0.03, 0.1)},
    "shorter steps": {f"shrinkage {factor:g}": {"shrinkage": factor} for factor in (0.03, 0.1)},
    "bounded steps": {"at most .3": {"max_step": 0.3}},
    "other stumps": {"discrete": {"real": False}, "cut by the bound": {"cut": "bound"}},
    "negatives by group (Eq. 22)": {"apart": {"apart": True}},
}
"""Of groups that start alike; of each way the value is taken that groups digits of other draws best."""


def clustered(kind: str) -> Methods:
    """The methods by their soft maximum."""
    return {name: {**CLUSTERED[kind], **options} for name, options in POOLINGS.items()}


def plain() -> Methods:
    """The same as printed."""
    return {f"as printed: {name}": {**PLAIN, **options} for name, options in POOLINGS.items()}


def curves(work: Work, kind: str) -> Iterator[Claim]:
    """Figure 9: areas under the ROC, which is drawn."""
    found = found_groups(work, kind, {**clustered(kind), ADA_BOOST: {}})
    drawn = {
        method: (np.concatenate([row["score"] for row in rows]), np.concatenate([row["positive"] for row in rows]))
        for method, rows in found.items()
    }
    charts.roc(work.folder / "roc.png", drawn)
    areas = {method: values(rows, "auc") for method, rows in found.items()}
    means = {method: fmean(each) for method, each in areas.items()}
    for method in POOLINGS:
        told = f"areas {means[method]:.4f} and {means[ADA_BOOST]:.4f}"
        yield Statement(f"MPL-Boost with {method} is better than AdaBoost", means[method] > means[ADA_BOOST], told)
    for method, each in areas.items():
        yield Number(f"{method}, area under the curve", each, lower=False)


def accuracies(work: Work, kind: str) -> Iterator[Claim]:
    """The grouping accuracies of the text; of faces, which are others, whether they reach the least that is printed."""
    printed = GROUPING[kind]
    found = found_groups(work, kind, {**clustered(kind), **plain()})
    for method, rows in found.items():
        published = printed[method.removeprefix("as printed: ")]
        ours = values(rows, "grouping")
        if kind == "digits":
            yield Number(method, ours, published, lower=False, digits=3)
            continue
        mean = fmean(ours)
        claim = f"{method} recovers the groups reasonably well: no worse than the worst that is printed"
        yield Statement(claim, mean >= min(printed.values()), f"{mean:.3f}", f"{published:.2f}, of LFW")
    for method, rows in found_groups(work, kind, tried(work)).items():
        theirs = printed[TRIED] if kind == "digits" else None
        yield Number(method, values(rows, "grouping"), theirs, lower=False, digits=3, attempt=True)


def tried(work: Work) -> Methods:
    """The best of each way on digits of other draws."""
    every = {
        f"as printed but {way}: {name}, {TRIED}": (way, {**PLAIN, **POOLINGS[TRIED], **change})
        for way, changes in WAYS.items()
        for name, change in changes.items()
    }
    elsewhere = found_groups(work, "digits", {name: options for name, (_, options) in every.items()}, DRAWS)
    means = {name: fmean(values(rows, "grouping")) for name, rows in elsewhere.items()}
    best = [max((name for name in every if every[name][0] == way), key=means.__getitem__) for way in WAYS]
    return {name: every[name][1] for name in best}


def sheets(work: Work) -> Iterator[Claim]:
    """Figure 10: what the groups of the first trial hold; the sheets lie with the cells."""
    for kind in CLUSTERED:
        method = {TRIED: clustered(kind)[TRIED]}
        table = np.array(found_groups(work, kind, method)[TRIED][0]["table"])
        shares = table.max(0) / table.sum(0).clip(1)
        told = "shares of the commonest kind " + ", ".join(f"{share:.2f}" for share in shares)
        claim = f"{kind}: each group is of another kind, by more than half of its pictures"
        yield Statement(claim, len(set(table.argmax(0))) == len(table) and bool((shares > 0.5).all()), told)
