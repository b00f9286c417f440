"""Clusters of instances, where the groups of MPL-Boost start."""

from __future__ import annotations

import numpy as np
import sklearn

from ldl.bags.layout import PackedBags, clusters


def test_clusters_are_of_the_instances_of_positive_bags() -> None:
    rows = np.array([[0, 0], [5, 0], [0.1, 0], [5.1, 0], [9, 9]], np.float32)
    bags = PackedBags(rows, np.array([0, 2, 4, 5]), np.array([0.4, 0.4, 0.0]), np.array([0.0, 0.0, 0.2]))
    for whitened, frames in ((0.0, "default"), (0.5, "default"), (0.5, "pandas")):
        with sklearn.config_context(transform_output=frames):
            cluster = clusters(bags, 2, whitened, 0)
        assert cluster[0] == cluster[2] != cluster[1] == cluster[3] and cluster[4] == -1


def test_whitened_clusters_are_those_of_little_variance() -> None:
    """All bags vary widely in what eight features share; two kinds of positives differ in the rest of two of them."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=900)
    rows = 10 * rng.normal(size=(900, 1)) + rng.normal(size=(900, 8))
    rows[:, 0] += 5.0 * (kind == 1)
    rows[:, 1] += 5.0 * (kind == 2)
    weights = (kind > 0) / 900.0, (kind == 0) / 900.0
    agree = {}
    for whitened in (0.0, 0.999):
        cluster = clusters(PackedBags(rows.astype(np.float32), np.arange(901), *weights), 2, whitened, 0)[kind > 0]
        same = (cluster == kind[kind > 0] - 1).mean()
        agree[whitened] = max(same, 1 - same)
    assert agree[0.999] > 0.95 and agree[0.0] < 0.6
