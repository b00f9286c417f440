"""What was tried to come nearer to the tables of Chen et al. 2018, on validation rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from benchmarks.common.claims import Claim, Number
from benchmarks.common.items import Work
from benchmarks.structrf.methods import fold_scores, folds_of, forest_scores
from benchmarks.structrf.published import PRINTED

FOLDS = 3
"""Of which a ninth of the training rows is set aside."""
WAYS: dict[str, dict[str, Any]] = {
    "the paper's setting": {},
    "a node of less than 5 draws is a leaf": {"min_samples": 5},
    "a third of the features a node": {"features": 0.33},
    "a third of the features, leaves of 5 draws": {"features": 0.33, "min_leaf": 5},
    "200 trees of depth 40 on all rows, a third of the features, leaves of 2": {
        "trees": 200, "depth": 40, "sampling": 1.0, "replace": False, "features": 0.33, "min_leaf": 2,
    },
    "random thresholds": {"search": "random"},
    "random thresholds, splits by log-loss": {"search": "random", "criterion": "log_loss"},
    "2-means from several starts": {"several": True},
}  # fmt: skip
"""Settings of StructRF; ``several`` starts are one more than there are labels, of which the tightest clusters count."""
STARTS = ("the paper's setting", "2-means from several starts")


def ways(work: Work, name: str) -> Iterator[Claim]:
    """All ways on validation rows, and the best of them on the test rows of all folds."""
    tried = {way: validated(work, name, way) for way in WAYS}
    yield from tried.values()
    best = min(tried, key=lambda way: fmean(tried[way].ours))
    rows = forest_scores(work, name, **WAYS[best])
    for measure, lower in (("kl", True), ("cosine", False)):
        printed = PRINTED[name, "StructRF"][measure]
        ours = tuple(row[measure] for row in rows)
        yield Number(f"{measure} of test rows: {best}", ours, *printed, lower, attempt=True)


def starts(work: Work, name: str) -> Iterator[Claim]:
    """2-means from one start, as shipped, and from several."""
    yield from (validated(work, name, way) for way in STARTS)


def validated(work: Work, name: str, way: str, measure: str = "kl") -> Number:
    """A measure of the validation rows of the first folds, in one of the ways."""
    rows = [fold_scores(work, name, "StructRF", fold, True, **WAYS[way]) for fold in range(folds_of(work, FOLDS))]
    return Number(f"{measure} of validation rows: {way}", tuple(row[measure] for row in rows), attempt=True)
