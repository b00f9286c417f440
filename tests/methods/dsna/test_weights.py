"""Coordinate descent against the general solver."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ldl.methods.dsna.weights import NeighbourWeighting, descend_weights, neighbour_weights


@pytest.mark.parametrize(("tau", "sparsity", "attraction"), [(1.0, 0.05, 0.02), (0.3, 0.4, 0.1)])
def test_descent_finds_the_weights_of_the_general_solver(tau: float, sparsity: float, attraction: float) -> None:
    random = np.random.default_rng(int(100 * tau))
    points, codes, queries = (random.normal(size=size).astype(np.float32) for size in ((60, 9), (60, 3), (40, 9)))
    near = np.stack([random.permutation(60)[:7] for _ in range(40)]).astype(np.int32)
    counts = random.integers(1, 8, 40).astype(np.int32)
    rules = NeighbourWeighting(1, 0.2, tau, 0.9, 0.4, sparsity, attraction, True, 1, 1e-6)
    weights = np.empty(near.shape, np.float32)
    descend_weights(
        points, codes, near, counts, queries, tau, rules.width, sparsity, attraction, rules.tolerance, weights
    )
    real = torch.arange(7) < torch.from_numpy(counts)[:, None]
    given = [torch.from_numpy(part).double() for part in (points[near], codes[near], queries)]
    expected, _ = neighbour_weights(*given[:2], real, given[2], None, rules, True, 1e-9)
    np.testing.assert_allclose(weights, expected.numpy(), atol=1e-3)
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
