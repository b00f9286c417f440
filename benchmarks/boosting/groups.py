"""Section 3.2 and Figures 9 and 10 of Babenko et al. 2008: MPL-Boost finds groups without their names.

A trial: 1,500 positives of three kinds and 1,500 negatives, 40% of them for training (faces: 4,000 images, half for
training); 64 stumps for each of three groups, from 1,000 random Haar features. AdaBoost is scikit-learn's with 64
stumps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import confusion_matrix, roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

from benchmarks.boosting.trials import Methods, found, opened, values
from benchmarks.common.data import fit_rows
from benchmarks.common.items import Claim, Number, Statement, Work, ahead, read_published
from ldl import charts
from ldl.backbones.haar import Haar
from ldl.bags import MPLBoost
from ldl.data import MixedDigits, PosedFaces
from ldl.data.synthetic import Trials
from ldl.jobs.store import Result

ADA_BOOST = "AdaBoost"
MIXED: dict[str, type[Trials]] = {"digits": MixedDigits, "faces": PosedFaces}
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
"""Options of the head as shipped: clusters start the groups, and steps are short."""
PLAIN: dict[str, Any] = {"clustered": 0, "shrinkage": 1.0, "cut": "error", "max_step": 100.0}
"""Options of the paper: equal starts, stumps cut by the weighted error, steps as long as the line search finds."""
SHEETS = "ISR"


def figure_9(work: Work, kind: str) -> Iterator[Claim]:
    """Judge areas under the ROC, and draw the curves."""
    rows = _found(work, kind, {**_clustered(kind), ADA_BOOST: {}})
    drawn = {
        method: (np.concatenate([row["score"] for row in each]), np.concatenate([row["positive"] for row in each]))
        for method, each in rows.items()
    }
    charts.roc(work.folder / "roc.png", drawn)
    areas = {method: values(each, "auc") for method, each in rows.items()}
    means = {method: fmean(each) for method, each in areas.items()}
    for method in POOLINGS:
        words = f"areas {means[method]:.4f} and {means[ADA_BOOST]:.4f}"
        claim = f"MPL-Boost with {method} is better than AdaBoost"
        yield ahead(claim, areas[method], areas[ADA_BOOST], words, lower=False)
    for method, each in areas.items():
        yield Number(f"{method}, area under the curve", each, lower=False)


def accuracies(work: Work, kind: str) -> Iterator[Claim]:
    """Judge the grouping accuracies of the text; of faces, which are others, whether they reach the least printed."""
    printed = read_published("boosting")["grouping"][kind]
    plain = {f"as printed: {name}": {**PLAIN, **options} for name, options in POOLINGS.items()}
    for method, rows in _found(work, kind, {**_clustered(kind), **plain}).items():
        published = printed[method.removeprefix("as printed: ")]
        ours = values(rows, "grouping")
        if kind == "digits":
            yield Number(method, ours, published, lower=False, digits=3)
        else:
            claim = f"{method} recovers the groups reasonably well: no worse than the worst that is printed"
            holds = fmean(ours) >= min(printed.values())
            yield Statement(claim, holds, f"{fmean(ours):.3f}", f"{published:.2f}, of LFW")


def figure_10(work: Work) -> Iterator[Claim]:
    """Judge the groups of the first trial, whose sheets lie beside its results."""
    for kind in CLUSTERED:
        rows = _found(work, kind, {SHEETS: _clustered(kind)[SHEETS]})
        table = np.array(rows[SHEETS][0]["table"])
        shares = table.max(0) / table.sum(0).clip(1)
        words = "shares of the commonest kind " + ", ".join(f"{share:.2f}" for share in shares)
        claim = f"{kind}: each group is of another kind, by more than half of its images"
        yield Statement(claim, len(set(table.argmax(0))) == len(table) and bool((shares > 0.5).all()), words)


def _clustered(kind: str) -> Methods:
    return {name: {**CLUSTERED[kind], **options} for name, options in POOLINGS.items()}


def _found(work: Work, kind: str, methods: Methods) -> dict[str, list[Result]]:
    return found(work, f"groups_{kind}", MIXED[kind], methods, partial(_trial, kind, work.quick))


@lru_cache(maxsize=1)
def _features(kind: str, quick: bool, number: int) -> Tensor:
    """Return Haar features of all images, (size, F)."""
    data = opened(MIXED[kind], quick)
    haar = Haar(50 if quick else 1000, balanced=kind == "faces", seed=number)
    haar.build(data.input_shape)
    return haar(data.images)


def _trial(kind: str, quick: bool, data: Trials, method: str, options: dict[str, Any], chart: Path | None) -> Result:
    """Return ``auc`` with the ``score`` and ``positive`` of the test images.

    Of MPL-Boost also ``grouping``, the share of positive test images in the group of their kind under the best
    matching, where an image is in the group of its greatest h; and ``table``, their numbers by kind and group.
    """
    stumps, features = 4 if quick else 64, _features(kind, quick, data.fold)
    train, test = data.split.train, data.split.test
    positive = data.positive[test]
    result: Result = {}
    if method == ADA_BOOST:
        model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=stumps, random_state=0)
        score = model.fit(features[train].numpy(), data.positive[train]).decision_function(features[test].numpy())
    else:
        head = fit_rows(MPLBoost(groups=3, rounds=stumps, **options, seed=0, threads=1), data, features[:, None], train)
        score = head(features[test][:, None])[:, 1].numpy()
        group = head.scores(features[test][:, None])[:, 0].argmax(-1).numpy()[positive]
        table = confusion_matrix(np.unique(data.truth[test][positive], return_inverse=True)[1], group)
        matched = float(table[linear_sum_assignment(-table)].sum() / table.sum())
        result = {"grouping": matched, "table": table.tolist()}
        if chart:
            charts.groups(chart, data.images[test, 0].numpy()[positive], group)
    auc = float(roc_auc_score(positive, score))
    return {**result, "auc": auc, "score": np.round(score.astype(float), 6).tolist(), "positive": positive.tolist()}
