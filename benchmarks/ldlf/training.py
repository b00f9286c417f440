"""The paper's training of a shallow forest (Shen et al. 2017, Algorithm 1) as a plain loop, watched as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.common.folds import FOLDS, mean_measures, numbered, read_set
from benchmarks.common.items import Work
from ldl.cells.store import Row
from ldl.collective import Collective
from ldl.heads import LDLF
from ldl.protocols import Fold, kfold

SCHEDULE = 25_000
"""Iterations of the paper."""
MARKS = (100, 300, 1000, 2500, 5000, 10_000, SCHEDULE)
"""Iterations at which the forest is measured."""
BATCH = 64
MEASURES = ("kl", "euclidean", "sorensen", "squared_chi2", "fidelity", "intersection")

rows_of = cache(read_set)


def curve(
    work: Work,
    name: str,
    fold: int,
    iterations: int,
    *,
    validation: bool = False,
    leaking: bool = False,
    lr: float = 1e-3,
    weight_decay: float = 0.0,
    seed: int = 0,
    **options: Any,
) -> Row:
    """The six measures at every mark up to ``iterations``: ``{"marks": [...], "kl": [...], ...}``.

    Args:
        work: Keeps it.
        name: Of the set.
        fold: Of ten.
        iterations: Batches of 64 rows.
        validation: Whether a tenth of the training rows is set aside, and measured in place of the test rows.
        leaking: Whether rows are drawn with replacement before folds are cut, as in the authors' public script: most
            test rows are then training rows, too.
        lr: Of Adam.
        weight_decay: Of Adam.
        seed: Of the units, the weights and the batches.
        options: Of ``LDLF``; its defaults are the paper's.
    """
    if work.quick:
        iterations = 2
    key: Row = {"set": name, "fold": fold, "iterations": iterations, "validation": validation, "leaking": leaking}
    key |= {"lr": lr, "weight_decay": weight_decay, "seed": seed, **options}

    def measure() -> Row:
        features, target = rows_of(name)
        if leaking:
            drawn = torch.from_numpy(np.random.default_rng(0).integers(len(target), size=len(target)))
            features, target = features[drawn], target[drawn]
        split = kfold(len(target), FOLDS, fold, 0, 0.1 if validation else 0.0)
        torch.manual_seed(seed)
        head = LDLF(**options)
        head.build(features.shape[1], numbered(target.shape[1]))
        optimizer = torch.optim.Adam(head.parameters(), lr=lr, weight_decay=weight_decay)
        marks = [mark for mark in MARKS if mark < iterations] + [iterations]
        found: dict[str, list[Any]] = {"marks": marks, **{measure: [] for measure in MEASURES}}
        train, watched = standardised(features, target, split)
        for step, _ in enumerate(steps(head, optimizer, *train, iterations), 1):
            if step in marks:
                for measure, value in scores(head, *watched).items():
                    found[measure].append(value)
        return found

    return work.shared("curves").cell(key, measure)


def standardised(features: Tensor, target: Tensor, split: Fold) -> list[tuple[Tensor, Tensor]]:
    """Training rows, and those that are measured, by the mean and the deviation of the former."""
    mean, deviation = features[split.train].mean(0), features[split.train].std(0).clamp_min(1e-6)
    watched = split.val if len(split.val) else split.test
    return [((features[rows] - mean) / deviation, target[rows]) for rows in (split.train, watched)]


def steps(
    head: LDLF, optimizer: torch.optim.Optimizer, features: Tensor, target: Tensor, iterations: int, batch: int = BATCH
) -> Iterator[None]:
    """Gradient steps on batches of shuffled rows; leaves are solved when they are due."""
    collective, left = Collective(), torch.empty(0, dtype=torch.long)
    for _ in range(iterations):
        if len(left) < batch:
            left = torch.cat([left, torch.randperm(len(target))])
        rows, left = left[:batch], left[batch:]
        head.train()
        found = head.loss(features[rows], target[rows])
        optimizer.zero_grad()
        found["loss"].backward()
        optimizer.step()
        head.observe(found["memory"], target[rows])
        if head.update_due:
            head.update(collective)
        yield


@torch.no_grad()
def scores(head: LDLF, features: Tensor, target: Tensor) -> dict[str, float]:
    """The six measures of the paper."""
    head.eval()
    return mean_measures(head(features), target, MEASURES)
