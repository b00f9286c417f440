"""The paper's training of a shallow forest (Shen et al. 2017, Algorithm 1) as a plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
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

TEST_INTERVAL = 100
"""Iterations between two tests of the leaking protocol; the leaves are updated as often."""


@cache
def rows_of(name: str, leaking: bool = False) -> tuple[Tensor, Tensor]:
    """Return features (N, F) and distributions (N, C) of a set; if ``leaking``, N rows drawn with replacement."""
    features, target = read_set(name)
    if not leaking:
        return features, target
    rows = torch.from_numpy(np.random.default_rng(0).integers(len(target), size=len(target)))
    return features[rows], target[rows]


def trained(work: Work, name: str, fold: int, iterations: int, leaking: bool = False, **options: Any) -> Result:
    """Train a forest on standardised features of a fold, and return the paper's six metrics of the test rows.

    Args:
        work: Stores the result.
        name: Name of the set.
        fold: Fold, of ten.
        iterations: Batches of 64 rows.
        leaking: Follow the protocol of the authors' script: cut the folds of rows that are drawn with replacement, test
            every 100 iterations, and return the metrics of the test with the lowest KL.
        options: Options of ``LDLF``, whose defaults are the paper's.
    """
    if work.quick:
        iterations = 2

    def measure() -> Result:
        features, target = rows_of(name, leaking)
        split = kfold(len(target), FOLDS, fold, 0)
        mean, deviation = features[split.train].mean(0), features[split.train].std(0).clamp_min(1e-6)
        train, test = (((features[rows] - mean) / deviation, target[rows]) for rows in (split.train, split.test))
        torch.manual_seed(0)
        head = LDLF(**options)
        head.build(features.shape[1], numbered(target.shape[1]))
        optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
        tests = []
        for step, _ in enumerate(steps(head, optimizer, *train, iterations), 1):
            if step == iterations or (leaking and step % TEST_INTERVAL == 0):
                with torch.no_grad():
                    tests.append(mean_metrics(head.eval()(test[0]), test[1], METRICS))
        return min(tests, key=lambda metrics: metrics["kl"])

    key = {"set": name, "fold": fold, "iterations": iterations, **options}
    if leaking:
        key["leaking"] = True
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
