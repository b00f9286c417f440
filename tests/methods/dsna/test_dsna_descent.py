"""DSNA's weights by coordinate descent against those by ADMM."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ldl.methods.dsna.descent import descend_weights
from ldl.methods.dsna.weights import Rules, neighbour_weights


@pytest.mark.parametrize(("tau", "sparsity", "attraction"), [(1.0, 0.05, 0.02), (0.3, 0.4, 0.1), (2.0, 0.0, 0.3)])
def test_descent_finds_the_weights_of_the_general_solver(tau: float, sparsity: float, attraction: float) -> None:
    random = np.random.default_rng(int(100 * tau))
    points, codes = random.normal(size=(60, 9)), random.normal(size=(60, 3))
    near = np.stack([random.permutation(60)[:7] for _ in range(40)]).astype(np.int32)
    counts = random.integers(1, 8, 40).astype(np.int32)
    queries = random.normal(size=(40, 9))
    rules = Rules(1, 0.2, tau, 0.9, 0.4, sparsity, attraction, True, 1, 1e-10)
    weights = np.empty(near.shape)
    descend_weights(
        points, codes, near, counts, queries, tau, rules.width, sparsity, attraction, rules.tolerance, weights
    )
    real = torch.arange(7) < torch.from_numpy(counts)[:, None]
    given = (torch.from_numpy(part) for part in (points[near], codes[near]))
    expected, _ = neighbour_weights(*given, real, torch.from_numpy(queries), None, rules, True, 1e-9)
    np.testing.assert_allclose(weights, expected.numpy(), atol=1e-4)
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-9)


def test_equal_neighbours_share_the_weight() -> None:
    points, near = np.ones((4, 5)), np.arange(4, dtype=np.int32)[None]
    weights = np.empty((1, 4))
    descend_weights(
        points, np.zeros((4, 2)), near, np.array([3], np.int32), np.zeros((1, 5)), 1, 0.4, 0.1, 0.1, 1e-9, weights
    )
    np.testing.assert_allclose(weights, [[1 / 3, 1 / 3, 1 / 3, 0]], atol=1e-12)
