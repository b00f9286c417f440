"""Shrinking of DSNA against a fine grid."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ldl.methods.dsna.admm import shrink


def test_shrinking_is_the_least_of_a_fine_grid() -> None:
    grid = torch.linspace(-4, 4, 80001, dtype=torch.float64)
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, anchor = (torch.tensor([[rng.uniform(-2, 2)]], dtype=torch.float64) for _ in range(2))
        sparsity, attraction = (torch.tensor([rng.uniform(0, 1.5)], dtype=torch.float64) for _ in range(2))
        value = sparsity * grid.abs() + attraction * (grid - anchor[0]).abs() + (grid - x[0]).square() / 2
        assert float(shrink(x, anchor, sparsity, attraction)) == pytest.approx(float(grid[value.argmin()]), abs=2e-4)
