"""Choosing the settings of an embedding and of its decoder inside training parts, a fit for many settings at once."""

from __future__ import annotations

import copy
import itertools
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch

from benchmarks.common.folds import inputs_of, mean_measures
from benchmarks.mslp.embeddings import Embedder
from ldl.cells.store import Row
from ldl.comparison.choice import Choice
from ldl.comparison.ranks import best_rank
from ldl.data import TabularLDL
from ldl.data.tables.scaling import Scaling

MEASURES = ("chebyshev", "clark", "canberra", "kl", "cosine", "intersection")
"""Of the paper; they choose together, by their mean rank."""
INNER_FOLDS = 3


@dataclass(frozen=True)
class Candidate:
    """A method, and what of it is chosen.

    Attributes:
        name: In tables.
        embedder: What embeds.
        grid: Values of its options, and of ``scaling``, which is that of the features.
        ratios: Dimensions, as multiples of the number of labels; None takes all.
        neighbours: k of the decoder.
        measures: That choose.
    """

    name: str
    embedder: Embedder
    grid: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    ratios: tuple[float | None, ...] = (0.4, 0.6, 0.8, 1.0)
    neighbours: tuple[int, ...] = (5, 10, 20, 40, 80)
    measures: tuple[str, ...] = MEASURES

    def fits(self) -> list[dict[str, Any]]:
        """All points of the grid."""
        return [dict(zip(self.grid, values)) for values in itertools.product(*self.grid.values())]

    @property
    def spec(self) -> int:
        """Changes with anything that a cell depends on."""
        return zlib.crc32(f"{(self.grid, self.ratios, self.neighbours, self.measures)}".encode())


@lru_cache(maxsize=8)
def open_set(name: str, scaling: Scaling, fold: int) -> TabularLDL:
    """A set as published: rows at random in ten folds, persons or not."""
    data = TabularLDL(path=f"ldl/{name}.mat", protocol="shuffled", scaling=scaling, fold=fold, val_fraction=0.0)
    data.setup()
    return data


def test(name: str, candidate: Candidate, fold: int) -> Row:
    """Choose a setting in inner folds of a fold's training part, fit on all of it, test once.

    Returns:
        ``setting``; ``measures``, of each the mean over the test rows.
    """
    setting = choose(name, candidate, fold)
    fit = {key: value for key, value in setting.items() if key not in ("ratio", "neighbours")}
    data = open_set(name, fit.get("scaling", "standard"), fold)
    found = scores(candidate, fit, data, (setting["ratio"],), (setting["neighbours"],))
    return {"setting": setting, "measures": found[setting["ratio"], setting["neighbours"]]}


def choose(name: str, candidate: Candidate, fold: int) -> dict[str, Any]:
    """The setting of the lowest mean rank over the measures, each a mean over inner folds of the training part."""
    settings, means = [], []
    for fit in candidate.fits():
        data = open_set(name, fit.get("scaling", "standard"), fold)
        parts = []
        for cut in Choice(inner_folds=INNER_FOLDS).cuts(data):
            part = copy.copy(data)
            part.split = cut
            part.prepare_fold()
            parts.append(scores(candidate, fit, part, candidate.ratios, candidate.neighbours))
        for ratio, neighbours in parts[0]:
            settings.append({**fit, "ratio": ratio, "neighbours": neighbours})
            each = [part[ratio, neighbours] for part in parts]
            means.append({key: sum(row[key] for row in each) / len(each) for key in candidate.measures})
    return settings[best_rank(means)]


def scores(
    candidate: Candidate,
    fit: dict[str, Any],
    data: TabularLDL,
    ratios: tuple[float | None, ...],
    neighbours: tuple[int, ...],
) -> dict[tuple[float | None, int], dict[str, float]]:
    """The measures of the test rows by ratio and neighbours, of one fit on the training rows: dimensions are nested."""
    options = {key: value for key, value in fit.items() if key != "scaling"}
    inputs, target = inputs_of(data), data.columns["target"]
    train, test = (torch.from_numpy(rows) for rows in (data.split.train, data.split.test))
    dimensions = {ratio: None if ratio is None else max(1, round(ratio * target.shape[1])) for ratio in ratios}
    embedded = candidate.embedder(
        inputs[train], target[train], max(each or 0 for each in dimensions.values()), **options
    )
    return {
        (ratio, k): mean_measures(predicted, target[test], MEASURES)
        for ratio, most in dimensions.items()
        for k, predicted in embedded.predict(inputs[test], most, neighbours).items()
    }
