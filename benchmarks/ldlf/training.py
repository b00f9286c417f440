"""The paper's training of a shallow forest (Shen et al. 2017, Algorithm 1) as a plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.data import FOLDS, mean_metrics, numbered, read_set
from benchmarks.common.items import Work
from ldl.collective import Collective
from ldl.heads import LDLF
from ldl.jobs.store import Result
from ldl.protocols import kfold

SCHEDULE = 25_000
"""Iterations of the paper."""
BATCH = 64
METRICS = ("kl", "euclidean", "sorensen", "squared_chi2", "fidelity", "intersection")

rows_of = cache(read_set)


def trained(work: Work, name: str, fold: int, iterations: int, **options: Any) -> Result:
    """Train a forest on standardised features of a fold, and return the paper's six metrics of the test rows.

    Args:
        work: Stores the result.
        name: Name of the set.
        fold: Fold, of ten.
        iterations: Batches of 64 rows.
        options: Options of ``LDLF``, whose defaults are the paper's.
    """
    if work.quick:
        iterations = 2

    def measure() -> Result:
        features, target = rows_of(name)
        split = kfold(len(target), FOLDS, fold, 0)
        mean, deviation = features[split.train].mean(0), features[split.train].std(0).clamp_min(1e-6)
        train, test = (((features[rows] - mean) / deviation, target[rows]) for rows in (split.train, split.test))
        torch.manual_seed(0)
        head = LDLF(**options)
        head.build(features.shape[1], numbered(target.shape[1]))
        optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
        for _ in steps(head, optimizer, *train, iterations):
            pass
        with torch.no_grad():
            return mean_metrics(head.eval()(test[0]), test[1], METRICS)

    key = {"set": name, "fold": fold, "iterations": iterations, **options}
    return work.shared("forests").result(key, measure)


def steps(
    head: LDLF, optimizer: torch.optim.Optimizer, features: Tensor, target: Tensor, iterations: int, batch: int = BATCH
) -> Iterator[None]:
    """Take gradient steps on batches of shuffled rows, and update the leaves when an update is due."""
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
