"""Clusters of neighbours and the nearest hull against loops, projection onto distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.methods.dsna.clusters import nearest_hull, onto_simplex, overlapping_clusters


def test_projection_is_the_nearest_distribution() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 4))
    ours = onto_simplex(torch.from_numpy(rows)).numpy()
    assert onto_simplex(torch.tensor([[torch.nan, 1.0], [2.0, 1.0]])).isnan().tolist() == [[True] * 2, [False] * 2]
    np.testing.assert_allclose(ours.sum(1), 1)
    assert (ours >= 0).all()
    others = rng.dirichlet(np.ones(4) * 0.5, 2000)
    least = np.square(rows[:, None] - others).sum(2).min(1)
    assert (np.square(rows - ours).sum(1) <= least + 1e-12).all()


@pytest.mark.parametrize("ordered", [True, False])
def test_clusters_are_those_of_a_loop(ordered: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    points = torch.randn(4, 12, 3, generator=generator, dtype=torch.float64)
    if ordered:
        codes = torch.randn(4, 12, 1, generator=generator, dtype=torch.float64)
    else:
        codes = torch.nn.functional.one_hot(torch.randint(3, (4, 12), generator=generator)).double()
    real = torch.ones(4, 12, dtype=torch.bool)
    real[2, 8:] = False
    ours = overlapping_clusters(points, codes, real, 3, 0.3, 1.0, ordered)
    for row in range(4):
        count = int(real[row].sum())
        x, y = points[row, :count].numpy(), codes[row, :count].numpy()
        centred, widest = y - y.mean(0), np.ptp(y, axis=0).max()
        place = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1]
        found = []
        for sign in (1, -1):
            members = np.zeros((3, count), bool)
            order = np.argsort((sign * place).round(9), kind="stable")
            members[np.argsort(order) * 3 // count, np.arange(count)] = True
            for _ in range(10):
                distances = np.empty((3, count))
                for k in range(3):
                    label = y[members[k]].mean(0)
                    if ordered:
                        gap = np.abs(y - label)[:, 0]
                        top = max(widest, gap.max())
                        factor = gap / (top - gap + 0.05 * top)
                    else:
                        factor = y.argmax(1) != label.argmax()
                    distances[k] = np.linalg.norm(x - x[members[k]].mean(0), axis=1) * factor
                joined = distances <= 1.3 * distances.min(0)
                members = np.where(joined.any(1, keepdims=True), joined, members)
            found.append(sorted(map(tuple, members.tolist())))
        assert sorted(map(tuple, ours[row, :, :count].tolist())) in found
        assert not ours[row, :, count:].any()


@pytest.mark.parametrize("width", [3, 20])
def test_the_nearest_hull_has_the_least_distance_by_svd(width: int) -> None:
    rng = np.random.default_rng(width)
    points, queries = rng.normal(size=(5, 14, width)), rng.normal(size=(5, width))
    members = rng.random((5, 3, 14)) < 0.5
    members[:, :, :2] = True
    chosen = nearest_hull(*(torch.from_numpy(part) for part in (points, queries, members)), 0.8)
    for row in range(5):
        distances = []
        for k in range(3):
            own = points[row, members[row, k]]
            _, scales, directions = np.linalg.svd(own - own.mean(0), full_matrices=False)
            energy = np.cumsum(scales**2) / (scales**2).sum()
            basis = directions[: int(np.searchsorted(energy, 0.8)) + 1]
            offset = queries[row] - own.mean(0)
            distances.append(np.linalg.norm(offset - basis.T @ (basis @ offset)))
        assert int(chosen[row]) == int(np.argmin(distances))


def mirrored() -> Tensor:
    """Points (500, 12, 3): five, two in the middle, and the five's mirror images in another order."""
    some = torch.randn(500, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.cat([some, some.new_zeros(500, 2, 3), -some.flip(1)], 1)


def test_the_middle_joins_both_clusters() -> None:
    codes = torch.tensor([-1.0] * 5 + [0, 0] + [1] * 5, dtype=torch.float64)[:, None].expand(500, 12, 1)
    real = torch.ones(500, 12, dtype=torch.bool)
    found = overlapping_clusters(mirrored(), codes, real, 2, 0.0, 1.0, ordered=True)
    assert found[:, :, 5:7].all()


def test_of_equally_near_hulls_the_first_is_the_nearest() -> None:
    members = torch.zeros(500, 2, 12, dtype=torch.bool)
    members[:, 0, :6], members[:, 1, 6:] = True, True
    for energy in (0.5, 1.0):  # of which one leaves no distance
        assert not nearest_hull(mirrored(), torch.zeros(500, 3).double(), members, energy).any()
