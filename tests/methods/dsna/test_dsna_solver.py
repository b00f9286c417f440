"""DSNA: clusters, hulls, projection and weights against loops, and the solver against a convex reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from ldl.methods.dsna.admm import shrink
from ldl.methods.dsna.clusters import nearest_hull, onto_simplex, overlapping_clusters
from ldl.methods.dsna.sparse import approximate, objective
from ldl.methods.dsna.weights import Rules, descend_weights, neighbour_weights


def problem(seed: int) -> tuple[Tensor, Tensor, Tensor, float, float]:
    """Members, query and anchor of one query, more or fewer members than dimensions, and the two penalties."""
    rng = np.random.default_rng(seed)
    count, width = rng.integers(2, 14), rng.integers(1, 12)
    members = rng.normal(size=(count, width)) * np.geomspace(1, rng.uniform(0.05, 1), width)
    anchor = rng.dirichlet(np.full(count, 0.3)) if seed % 5 else rng.normal(size=count)
    query = members.T @ rng.normal(size=count) * rng.uniform(0, 1) + rng.normal(size=width) * rng.uniform(0, 1)
    penalties = 10 ** rng.uniform(-2, 0.5, 2)
    tensors = (torch.from_numpy(part)[None] for part in (members, query, anchor))
    return *tensors, *(float(penalty) for penalty in penalties)  # type: ignore[return-value]


def reference(
    members: np.ndarray, query: np.ndarray, anchor: np.ndarray, sparsity: float, attraction: float, squared: bool
) -> float:
    """Least objective, by scipy on smooth variables: a = p - n, and a - anchor = s - t, all of them at least 0."""
    count = len(members)
    quiet = 1e-14

    def split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, n, s, t = x.reshape(4, count)
        return p - n, np.concatenate([p + n, s + t])

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        a, _ = split(x)
        residual = query - a @ members
        norm = np.sqrt(residual @ residual + quiet)
        fit, slope = (residual @ residual / 2, -members @ residual) if squared else (norm, -members @ residual / norm)
        gradient = np.concatenate([slope + sparsity, sparsity - slope, *[np.full(count, attraction)] * 2])
        p, n, s, t = x.reshape(4, count)
        return fit + sparsity * (p + n).sum() + attraction * (s + t).sum(), gradient

    equal = np.hstack([np.eye(count), -np.eye(count), -np.eye(count), np.eye(count)])
    best = np.inf
    for start in (anchor, np.zeros(count)):
        gap = start - anchor
        x = np.concatenate([start.clip(0), (-start).clip(0), gap.clip(0), (-gap).clip(0)])
        found = minimize(
            value, x, jac=True, method="SLSQP", bounds=[(0, None)] * len(x), options={"maxiter": 1000, "ftol": 1e-13},
            constraints={"type": "eq", "fun": lambda x: equal @ x - anchor, "jac": lambda x: equal},
        )  # fmt: skip
        a = split(found.x)[0]
        residual = np.linalg.norm(query - a @ members)
        fit = residual**2 / 2 if squared else residual
        best = min(best, fit + sparsity * np.abs(a).sum() + attraction * np.abs(a - anchor).sum())
    return best


@pytest.mark.parametrize("squared", [False, True])
def test_objective_is_that_of_a_convex_solver(squared: bool) -> None:
    for seed in range(12):
        members, query, anchor, sparsity, attraction = problem(seed + 1000 * squared)
        ours = approximate(members, query, anchor, sparsity, attraction, squared)
        least = reference(*(part[0].numpy() for part in (members, query, anchor)), sparsity, attraction, squared)
        assert float(ours.objective) <= least * (1 + 1e-4) + 1e-9, seed
        exact = objective(members, query, ours.weights, anchor, sparsity, attraction, squared)
        torch.testing.assert_close(ours.objective, exact)


def test_filled_up_members_change_nothing() -> None:
    members, query, anchor, sparsity, attraction = problem(3)
    alone = approximate(members, query, anchor, sparsity, attraction)
    wide = torch.nn.functional.pad(members, (0, 0, 0, 4))
    filled = approximate(wide, query, torch.nn.functional.pad(anchor, (0, 4)), sparsity, attraction)
    torch.testing.assert_close(filled.objective, alone.objective, rtol=1e-6, atol=0)
    assert not filled.weights[:, -4:].any()


def test_queries_do_not_mix() -> None:
    generator = torch.Generator().manual_seed(0)
    members = torch.randn(7, 9, 5, generator=generator, dtype=torch.float64)
    queries = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    anchors = torch.rand(7, 9, generator=generator, dtype=torch.float64).softmax(1)
    together = approximate(members, queries, anchors, 0.05, 0.2)
    for row in range(7):
        own = slice(row, row + 1)
        alone = approximate(members[own], queries[own], anchors[own], 0.05, 0.2)
        torch.testing.assert_close(alone.objective, together.objective[own], rtol=1e-6, atol=0)


@pytest.mark.parametrize("scale", [1e-150, 0.0])
def test_members_without_extent_leave_the_penalties_to_decide(scale: float) -> None:
    members, query = scale * torch.ones(1, 3, 4).double(), torch.ones(1, 4).double()
    anchor = torch.tensor([[0.2, 0.3, 0.5]]).double()
    torch.testing.assert_close(approximate(members, query, anchor, 0.1, 0.2).weights, anchor)
    assert float(approximate(members, query, anchor, 0.2, 0.1).weights.abs().max()) < 1e-6


def test_shrinking_is_the_least_of_a_fine_grid() -> None:
    grid = torch.linspace(-4, 4, 80001, dtype=torch.float64)
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, anchor = (torch.tensor([[rng.uniform(-2, 2)]], dtype=torch.float64) for _ in range(2))
        sparsity, attraction = (torch.tensor([rng.uniform(0, 1.5)], dtype=torch.float64) for _ in range(2))
        value = sparsity * grid.abs() + attraction * (grid - anchor[0]).abs() + (grid - x[0]).square() / 2
        assert float(shrink(x, anchor, sparsity, attraction)) == pytest.approx(float(grid[value.argmin()]), abs=2e-4)


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


@pytest.mark.parametrize(("tau", "sparsity", "attraction"), [(1.0, 0.05, 0.02), (0.3, 0.4, 0.1)])
def test_descent_finds_the_weights_of_the_general_solver(tau: float, sparsity: float, attraction: float) -> None:
    random = np.random.default_rng(int(100 * tau))
    points, codes, queries = (random.normal(size=size).astype(np.float32) for size in ((60, 9), (60, 3), (40, 9)))
    near = np.stack([random.permutation(60)[:7] for _ in range(40)]).astype(np.int32)
    counts = random.integers(1, 8, 40).astype(np.int32)
    rules = Rules(1, 0.2, tau, 0.9, 0.4, sparsity, attraction, True, 1, 1e-6)
    weights = np.empty(near.shape, np.float32)
    descend_weights(
        points, codes, near, counts, queries, tau, rules.width, sparsity, attraction, rules.tolerance, weights
    )
    real = torch.arange(7) < torch.from_numpy(counts)[:, None]
    given = [torch.from_numpy(part).double() for part in (points[near], codes[near], queries)]
    expected, _ = neighbour_weights(*given[:2], real, given[2], None, rules, True, 1e-9)
    np.testing.assert_allclose(weights, expected.numpy(), atol=1e-3)
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
