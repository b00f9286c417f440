"""Exact nearest neighbours against a sort of all distances."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ldl.methods import embedding as neighbours
from ldl.methods.embedding import nearest


@pytest.mark.parametrize("part", [70, 2**24])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_nearest_are_those_of_a_sort(part: int, offset: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "DISTANCES_AT_ONCE", part)
    rng = np.random.default_rng(0)
    points, queries = rng.normal(size=(60, 4)), rng.normal(size=(23, 4))
    distances = np.linalg.norm(queries[:, None] - points, axis=2)
    found = nearest(torch.tensor(queries) + offset, torch.tensor(points) + offset, 7)
    np.testing.assert_array_equal(found.numpy(), distances.argsort(1)[:, :7])
    distances = np.linalg.norm(points[:, None] - points, axis=2) + np.diag(np.full(60, np.inf))
    found = nearest(torch.tensor(points) + offset, torch.tensor(points) + offset, 59, exclude_self=True)
    np.testing.assert_array_equal(found.numpy(), distances.argsort(1)[:, :59])


@pytest.mark.parametrize(("far", "many"), [(1e4, 30), (1e9, 1)])
def test_far_points_do_not_make_the_others_equal(far: float, many: int) -> None:
    rng = np.random.default_rng(0)
    points, queries = rng.normal(size=(60, 4)), rng.normal(size=(23, 4))
    points[:many] += far
    distances = np.linalg.norm(queries[:, None] - points, axis=2)
    found = nearest(torch.tensor(queries), torch.tensor(points), 7)
    np.testing.assert_array_equal(found.numpy(), distances.argsort(1)[:, :7])
    distances = np.linalg.norm(points[:, None] - points, axis=2) + np.diag(np.full(60, np.inf))
    found = nearest(torch.tensor(points), torch.tensor(points), 7, exclude_self=True)
    np.testing.assert_array_equal(found[many:].numpy(), distances.argsort(1)[many:, :7])


def test_the_first_of_equally_near_points_are_taken() -> None:
    points = torch.randn(20, 5, generator=torch.Generator().manual_seed(0)).repeat(60, 1)
    found = nearest(points[:9], points, 30)
    assert torch.equal(found, torch.arange(9)[:, None] + 20 * torch.arange(30))
    found = nearest(points, points, 30, exclude_self=True)
    assert torch.equal(found[:9], torch.arange(9)[:, None] + 20 * torch.arange(1, 31))


@pytest.mark.parametrize("unit", [1.0, 1e20])
def test_what_is_found_does_not_depend_on_what_else_is_asked(unit: float) -> None:
    """Among equally near and among equal points; float32 holds no squares of the large ones."""
    rng = np.random.default_rng(0)
    points, queries = rng.integers(0, 3, (150, 6)), rng.integers(0, 3, (64, 6))
    distances = ((queries[:, None] - points) ** 2).sum(2)
    given = [torch.tensor(rows * unit, dtype=torch.float32) for rows in (queries, points)]
    found = nearest(*given, 5)
    assert torch.equal(torch.cat([nearest(row[None], given[1], 5) for row in given[0]]), found)
    np.testing.assert_array_equal(np.take_along_axis(distances, found.numpy(), 1), np.sort(distances, 1)[:, :5])
    twice = torch.randn(300, 37, generator=torch.Generator().manual_seed(0)).repeat(2, 1)
    assert torch.equal(torch.cat([nearest(row[None], twice, 5) for row in twice]), nearest(twice, twice, 5))
