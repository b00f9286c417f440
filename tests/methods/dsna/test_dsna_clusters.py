"""Clusters that are equally near but for rounding: all are joined, and of hulls the first is the nearest."""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.methods.dsna.clusters import nearest_hull, overlapping_clusters


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
