"""Table 1, Figure 4 and Section 4.3 of Shen et al. 2017."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.common.data import FOLDS, fit_head, mean_metrics, numbered
from benchmarks.common.items import Claim, Number, Statement, Work
from benchmarks.ldlf.training import METRICS, SCHEDULE, rows_of, steps, trained
from ldl.charts.drawing import new_figure, save
from ldl.heads import LDLF, MaxEnt
from ldl.jobs.store import Result
from ldl.protocols import kfold
from ldl.search.statistics import sign_of

FOREST, BASELINE = "sLDLF", "BFGS-LDL"
PRINTED = {
    ("Movie", FOREST): ".073 .005 .133 .003 .130 .003 .070 .004 .981 .001 .870 .003",
    ("Movie", BASELINE): ".099 .004 .167 .004 .164 .003 .096 .004 .974 .001 .836 .003",
    ("Natural_Scene", FOREST): ".534 .013 .317 .014 .336 .010 .448 .017 .824 .008 .664 .010",
    ("Natural_Scene", BASELINE): ".856 .061 .475 .029 .508 .026 .716 .041 .722 .021 .492 .026",
}
"""Mean and standard deviation of each of METRICS."""

TREES, DEPTHS = (1, 2, 5, 10), (3, 5, 7, 9)
ITERATIONS = 2500
"""Iterations of Figure 4, a tenth of the paper's."""
ENSEMBLES: dict[str, dict[str, Any]] = {"joint": {}, "alternating": {"ensemble": "alternating", "outputs": None}}

START = {"trees": 10, "depth": 6, "labels": 10, "rows": 128}
GROWN = {"trees": (10, 20, 40), "depth": (6, 7, 8), "labels": (10, 20, 40), "rows": (128, 256, 512)}
TIMES, STEPS = 5, 20
"""Repeats, of which the median counts, and steps of each; the last step brings a leaf update."""


def table_1(work: Work, name: str, leaking: bool = False) -> Iterator[Claim]:
    """Judge six metrics of the forest on fold 0, and show those of the maximum entropy model beside them."""
    rows = {FOREST: trained(work, name, 0, SCHEDULE, leaking), BASELINE: _entropy(work, name, leaking)}
    for method, row in rows.items():
        printed = np.array(PRINTED[name, method].split(), float).reshape(-1, 2).tolist()
        for metric, (mean, deviation) in zip(METRICS, printed):
            lower = sign_of(metric) > 0
            yield Number(f"{method}, {metric}", (row[metric],), mean, deviation, lower, 3, method == BASELINE)
    better = [m for m in METRICS if sign_of(m) * (rows[FOREST][m] - rows[BASELINE][m]) < 0]
    words = f"better on {len(better)} of 6{': ' if better else ''}{', '.join(better)}"
    yield Statement(f"better than {BASELINE} on all six metrics", len(better) == len(METRICS), words, "on 6 of 6")


def _entropy(work: Work, name: str, leaking: bool) -> Result:
    iterations = 2 if work.quick else 300

    def measure() -> Result:
        features, target = rows_of(name, leaking)
        split = kfold(len(target), FOLDS, 0, 0)
        head = fit_head(MaxEnt(l2=0.0, iterations=iterations), features[split.train], target[split.train])
        return mean_metrics(head(features[split.test]), target[split.test], METRICS)

    key = {"set": name, "method": BASELINE, "iterations": iterations}
    if leaking:
        key["leaking"] = True
    return work.result(key, measure)


def figure_4_trees(work: Work) -> Iterator[Claim]:
    """Panel (a): KL over the number of trees that learn jointly or in turns."""
    measured = {name: _kl(work, [{"trees": k, **options} for k in TREES]) for name, options in ENSEMBLES.items()}
    _draw(work, "trees", TREES, measured)
    joint, alternating = measured["joint"], measured["alternating"]
    yield Statement(
        "joint: KL falls as there are more trees", bool(joint[-1] < 0.99 * joint[0]), _words(TREES, joint),
        "0.071 with 20 trees, 0.070 with 100",
    )  # fmt: skip
    gains = (joint[0] - joint[2]) / joint[0], (joint[2] - joint[3]) / joint[0]
    yield Statement(
        "joint: the improvement becomes smaller and smaller", bool(gains[0] > gains[1]),
        f"by {100 * gains[0]:.1f}% from {TREES[0]} to {TREES[2]}, by {100 * gains[1]:.1f}% to {TREES[3]}",
    )  # fmt: skip
    yield Statement(
        "alternating: a forest is worse than a single tree", bool(alternating[-1] > alternating[0]),
        _words(TREES, alternating),
    )  # fmt: skip
    yield Statement(
        "joint is better than alternating", bool(joint[-1] < alternating[-1]),
        f"{joint[-1]:.4f} and {alternating[-1]:.4f} with {TREES[-1]} trees",
    )  # fmt: skip


def figure_4_depth(work: Work) -> Iterator[Claim]:
    """Panel (b): KL over the depth of one tree with as many units as leaves."""
    kl = _kl(work, [{"trees": 1, "depth": h, "outputs": 2 ** (h - 1)} for h in DEPTHS])
    _draw(work, "depth", DEPTHS, {"one tree": kl})
    signs = np.sign(np.diff(kl))
    yield Statement(
        "KL first falls, then rises with depth", bool(signs[0] < 0 < signs[-1] and (np.diff(signs) >= 0).all()),
        _words(DEPTHS, kl), "0.0831 at depth 9, 0.1162 at 18",
    )  # fmt: skip


def _kl(work: Work, points: list[dict[str, Any]]) -> list[float]:
    return [trained(work, "Movie", 0, ITERATIONS, **options)["kl"] for options in points]


def _words(values: Sequence[int], kl: list[float]) -> str:
    return ", ".join(f"{value}: {number:.4f}" for value, number in zip(values, kl))


def _draw(work: Work, horizontal: str, values: Sequence[int], curves: dict[str, list[float]]) -> None:
    figure, axis = new_figure(5, 4)
    for name, kl in curves.items():
        axis.plot(values, kl, marker="o", label=name)
    axis.set(xlabel=horizontal, ylabel="KL")
    axis.legend()
    save(figure, work.folder / f"{horizontal}.png")


def growth(work: Work) -> Iterator[Claim]:
    """Section 4.3, O(D C K n_B s_B): a step grows at most in proportion to each size."""
    for name, values in GROWN.items():
        spent = [_cost(work, **{**START, name: value})["seconds"] for value in values]
        sizes = [2 ** (value - 1) - 1 if name == "depth" else value for value in values]
        slope = np.polyfit(np.log(sizes), np.log(spent), 1)[0]
        what = {"depth": "split nodes D", "trees": "trees K", "labels": "labels C", "rows": "rows of a batch s_B"}[name]
        words = ", ".join(f"{size}: {1e3 * seconds / STEPS:.1f} ms" for size, seconds in zip(sizes, spent))
        yield Statement(
            f"a step grows at most in proportion to {what}", bool(slope < 1.15),
            f"{words} a step; to the power {slope:.2f}", "O(D C K n_B s_B) an epoch", exact=False,
        )  # fmt: skip


def _cost(work: Work, **sizes: int) -> Result:
    """Return the processor seconds of twenty steps."""

    def measure() -> Result:
        torch.manual_seed(0)
        features = torch.randn(sizes["rows"], 64)
        target = torch.softmax(torch.randn(sizes["rows"], sizes["labels"]), -1)
        head = LDLF(trees=sizes["trees"], depth=sizes["depth"], outputs=2 ** (sizes["depth"] - 1), batches=STEPS)
        head.build(64, numbered(sizes["labels"]))
        optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
        spent = []
        # The first repeat compiles and imports.
        for _ in range(2 if work.quick else 1 + TIMES):
            before = time.process_time()
            for _ in steps(head, optimizer, features, target, 2 if work.quick else STEPS, batch=sizes["rows"]):
                pass
            spent.append(time.process_time() - before)
        return {"seconds": median(spent[1:])}

    return work.result(dict(sizes), measure)
