"""What was tried to come nearer to the tables of Chen et al. 2018, on validation rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.common.claims import Claim, Number
from benchmarks.common.items import Work
from benchmarks.structrf.methods import fold_scores, folds_of

WAYS: dict[str, dict[str, Any]] = {
    "a node of less than 5 draws is a leaf": {"min_samples": 5},
    "leaves of 5 draws": {"min_leaf": 5},
    "a third of the features a node": {"features": 0.33},
    "a third of the features, leaves of 5 draws": {"features": 0.33, "min_leaf": 5},
    "200 trees": {"trees": 200},
    "depth 40, all rows": {"depth": 40, "sampling": 1.0, "replace": False, "features": 0.33},
    "splits by log-loss": {"criterion": "log_loss", "search": "random"},
    "random thresholds": {"search": "random"},
}
"""Settings of StructRF."""


def ways(work: Work, name: str) -> Iterator[Claim]:
    """KL divergence on validation rows of the first three folds, by each of the ways."""
    for way, options in WAYS.items():
        yield _attempt(f"{way}; kl of validation rows", work, name, **options)
    yield from starts(work, name)


def starts(work: Work, name: str) -> Iterator[Claim]:
    """2-means from one start, as shipped, and the best of one start more than there are labels."""
    yield _attempt("2-means from one start; kl of validation rows", work, name)
    yield _attempt("2-means from several starts; kl of validation rows", work, name, several=True)


def _attempt(what: str, work: Work, name: str, **options: Any) -> Number:
    rows = [fold_scores(work, name, "StructRF", fold, True, **options) for fold in range(folds_of(work, 3))]
    return Number(what, tuple(row["kl"] for row in rows), attempt=True)
