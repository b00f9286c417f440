"""The choice of hyperparameters of an embedding and its decoder inside training sets; one fit serves many of them."""

from __future__ import annotations

import copy
import itertools
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch

from benchmarks.common.data import inputs_of, mean_metrics
from benchmarks.mslp.embeddings import Embedder
from ldl.data import TabularLDL
from ldl.data.tables.scaling import Scaling
from ldl.jobs.store import Result
from ldl.search.selection import Selection
from ldl.search.statistics import best_rank

METRICS = ("chebyshev", "clark", "canberra", "kl", "cosine", "intersection")
"""Metrics of the paper, whose mean rank chooses."""
INNER_FOLDS = 3


@dataclass(frozen=True)
class Candidate:
    """A method and its hyperparameters to choose from.

    Attributes:
        name: Name in tables.
        embedder: Embedding function.
        grid: Values of its options, and of ``scaling``, the scaling of the features.
        ratios: Dimensions, as multiples of the number of labels; None takes all.
        neighbours: k of the decoder.
    """

    name: str
    embedder: Embedder
    grid: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    ratios: tuple[float | None, ...] = (0.4, 0.6, 0.8, 1.0)
    neighbours: tuple[int, ...] = (5, 10, 20, 40, 80)

    def fits(self) -> list[dict[str, Any]]:
        """Return all points of the grid."""
        return [dict(zip(self.grid, values)) for values in itertools.product(*self.grid.values())]

    @property
    def spec(self) -> int:
        """Return a number that changes with the hyperparameters on which a result depends."""
        return zlib.crc32(f"{(self.grid, self.ratios, self.neighbours)}".encode())


@lru_cache(maxsize=8)
def open_set(name: str, scaling: Scaling, fold: int) -> TabularLDL:
    """Open a set with the published protocol: ten random folds of rows, whose groups leak."""
    data = TabularLDL(path=f"ldl/{name}.mat", protocol="shuffled", scaling=scaling, fold=fold, val_fraction=0.0)
    data.setup()
    return data


def test(name: str, candidate: Candidate, fold: int) -> Result:
    """Choose hyperparameters in inner folds of a fold's training set, fit on all of it, and test once.

    Returns:
        ``setting``, the hyperparameters; ``metrics``, the mean of each over the test rows.
    """
    setting = choose(name, candidate, fold)
    fit = {key: value for key, value in setting.items() if key not in ("ratio", "neighbours")}
    data = open_set(name, fit.get("scaling", "standard"), fold)
    found = scores(candidate, fit, data, (setting["ratio"],), (setting["neighbours"],))
    return {"setting": setting, "metrics": found[setting["ratio"], setting["neighbours"]]}


def choose(name: str, candidate: Candidate, fold: int) -> dict[str, Any]:
    """Return the hyperparameters of the lowest mean rank over the metrics, each a mean over the inner folds."""
    settings, means = [], []
    for fit in candidate.fits():
        data = open_set(name, fit.get("scaling", "standard"), fold)
        parts = []
        for cut in Selection(inner_folds=INNER_FOLDS).splits(data):
            part = copy.copy(data)
            part.split = cut
            part.prepare_fold()
            parts.append(scores(candidate, fit, part, candidate.ratios, candidate.neighbours))
        for ratio, neighbours in parts[0]:
            settings.append({**fit, "ratio": ratio, "neighbours": neighbours})
            each = [part[ratio, neighbours] for part in parts]
            means.append({key: sum(row[key] for row in each) / len(each) for key in METRICS})
    return settings[best_rank(means)]


def scores(
    candidate: Candidate,
    fit: dict[str, Any],
    data: TabularLDL,
    ratios: tuple[float | None, ...],
    neighbours: tuple[int, ...],
) -> dict[tuple[float | None, int], dict[str, float]]:
    """Return the metrics of the test rows by ratio and neighbours, of one fit: dimensions are nested."""
    options = {key: value for key, value in fit.items() if key != "scaling"}
    inputs, target = inputs_of(data), data.columns["target"]
    train, test = (torch.from_numpy(rows) for rows in (data.split.train, data.split.test))
    dimensions = {ratio: None if ratio is None else max(1, round(ratio * target.shape[1])) for ratio in ratios}
    embedded = candidate.embedder(
        inputs[train], target[train], max(each or 0 for each in dimensions.values()), **options
    )
    return {
        (ratio, k): mean_metrics(predicted, target[test], METRICS)
        for ratio, most in dimensions.items()
        for k, predicted in embedded.predict(inputs[test], most, neighbours).items()
    }
