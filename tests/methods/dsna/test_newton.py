"""Newton steps of DSNA's solver: derivatives by differences, linear programs, and queries that ADMM does not end."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from ldl.methods.dsna import newton
from ldl.methods.dsna.newton import Problem
from ldl.methods.dsna.sparse import Rules, _finish, approximate


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by how many queries the dual function is evaluated for, whenever it is."""
    found, one = [], newton._at

    def counted(*args: Tensor) -> newton.Point:
        found.append(len(args[1]))
        return one(*args)

    monkeypatch.setattr(newton, "_at", counted)
    return found


def exact_fits(seed: int, count: int = 5, members: int = 40, width: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    """Queries that many weights fit exactly: members, queries and anchors, of which the last have both signs."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, members, width)) * np.geomspace(1, 0.2, width)
    queries = (rng.dirichlet(np.full(members, 0.1), count)[:, None] @ points)[:, 0]
    anchors = rng.dirichlet(np.full(members, 0.3), count)
    anchors[-1] *= rng.choice([-1, 1], members)
    return torch.from_numpy(points), torch.from_numpy(queries), torch.from_numpy(anchors)


def least_penalty(members: np.ndarray, query: np.ndarray, anchor: np.ndarray, weights: tuple[float, float]) -> float:
    """The least of both penalties among the weights that fit a query exactly, by scipy: a, |a|, |a - anchor|."""
    count = len(members)
    eye, none = np.eye(count), np.zeros((count, count))
    upper = np.vstack([np.hstack([sign * eye, -part, part - eye]) for sign in (1, -1) for part in (eye, none)])
    zero = np.zeros(count)
    limit = np.concatenate([sign * bound for sign in (1, -1) for bound in (zero, anchor)])
    fit = np.hstack([members.T, np.zeros((members.shape[1], 2 * count))])
    cost = np.concatenate([zero, np.repeat(weights, count)])
    return linprog(cost, upper, limit, fit, query, bounds=[(None, None)] * count + [(0, None)] * (2 * count)).fun


@pytest.mark.parametrize("seed", range(6))
def test_of_all_weights_that_fit_a_query_it_finds_those_of_least_penalty(seed: int) -> None:
    members, queries, anchors = exact_fits(seed)
    penalties = (0.004, 0.007) if seed % 2 else (0.006, 0.002)
    found = approximate(members, queries, anchors, *penalties, tolerance=1e-9)
    least = [least_penalty(*(part[row].numpy() for part in (members, queries, anchors)), penalties) for row in range(5)]
    torch.testing.assert_close(found.objective, torch.tensor(least).double(), rtol=1e-7, atol=0)


@pytest.mark.parametrize("penalties", [(0.004, 0.007), (0.05, 0.2)])
def test_it_ends_in_a_few_steps_what_admm_does_not_in_a_thousand(
    penalties: tuple[float, float], evaluations: list[int]
) -> None:
    problem = exact_fits(10)
    alone = approximate(*problem, *penalties, tolerance=1e-9, iterations=1000, finished=False)
    assert not evaluations
    found = approximate(*problem, *penalties, tolerance=1e-9)
    assert int(alone.iterations.max()) == 1000 and 0 < len(evaluations) < 150
    assert bool((found.objective <= alone.objective * (1 + 1e-8)).all())


def random_point(squared: bool, seed: int) -> tuple[Problem, tuple[Tensor, ...]]:
    """A problem of three queries, and where its dual function is looked at: y, a, r, sigma, tau."""
    members, queries, anchors = exact_fits(seed, count=3, members=12, width=4)
    generator = torch.Generator().manual_seed(seed)
    y, r = (torch.randn(3, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    a = torch.randn(3, 12, generator=generator, dtype=torch.float64) / 5
    lengths = torch.tensor([0.5, 1.0, 2.0]).double()
    return Problem(members, queries, anchors, 0.1, 0.2, squared), (y, a, r, lengths, 1 / lengths)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_that_of_the_dual_value_and_the_hessian_that_of_the_residuals(seed: int, squared: bool) -> None:
    problem, (y, *others) = random_point(squared, seed)
    point, step = newton._at(problem, y, *others), 1e-6
    for axis in range(4):
        change = torch.zeros(4).double()
        change[axis] = step
        more, less = (newton._at(problem, y + sign * change, *others) for sign in (1, -1))
        torch.testing.assert_close((more.value - less.value) / (2 * step), point.gradient[:, axis], rtol=0, atol=1e-7)
        slope = (more.residuals - less.residuals) / (2 * step)
        torch.testing.assert_close(slope, point.hessian[:, axis], rtol=0, atol=1e-7)


def test_within_the_step_of_the_norm_there_is_no_residual() -> None:
    problem, (y, a, r, sigma, tau) = random_point(False, 0)
    y = (0.9 * tau / (r + tau[:, None] * y).norm(dim=1))[:, None] * (r / tau[:, None] + y) - r / tau[:, None]
    point = newton._at(problem, y, a, r, sigma, tau)
    assert not point.residuals.any() and not point.hessian.any()


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(("members", "width"), [(40, 5), (9, 12)])
def test_slopes_meet_the_optimality_conditions(members: int, width: int, squared: bool) -> None:
    """Of length 1 at most, the residual's where there is one; and every member's pull is a slope of its penalties."""
    problem = Problem(*exact_fits(3, members=members, width=width), 0.02, 0.05, squared)
    weights, slopes = newton.finish(problem, torch.zeros_like(problem.anchors), 1e-10)
    residual = problem.queries - torch.einsum("bm,bmf->bf", weights, problem.members)
    if squared:
        torch.testing.assert_close(slopes, residual, rtol=0, atol=1e-7)
    else:
        assert float(slopes.norm(dim=1).max()) < 1 + 1e-7
        torch.testing.assert_close((slopes * residual).sum(1), residual.norm(dim=1), rtol=0, atol=1e-7)
    pull = torch.einsum("bmf,bf->bm", problem.members, slopes)
    low = high = torch.zeros_like(pull)
    for penalty, kink in ((0.02, torch.zeros_like(weights)), (0.05, problem.anchors)):
        low = low + penalty * torch.where(weights > kink, 1.0, -1.0)
        high = high + penalty * torch.where(weights < kink, -1.0, 1.0)
    assert bool((pull >= low - 1e-7).all()) and bool((pull <= high + 1e-7).all())


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_the_scale_of_the_features_does_not_matter(scale: float) -> None:
    members, queries, anchors = exact_fits(4)
    weights, _ = newton.finish(Problem(members, queries, anchors, 0.02, 0.05, False), anchors, 1e-10)
    scaled = Problem(scale * members, scale * queries, anchors, scale * 0.02, scale * 0.05, False)
    torch.testing.assert_close(newton.finish(scaled, anchors, 1e-10)[0], weights, rtol=0, atol=1e-7)


@pytest.mark.parametrize("squared", [False, True])
def test_slopes_in_the_directions_of_the_members_are_those_of_the_features(squared: bool) -> None:
    members, queries, anchors = exact_fits(3, members=9, width=12)
    members[:2] *= torch.tensor([0.0] * 4 + [1.0] * 8)  # two queries lie partly outside of what their members span
    rules = Rules(0.02, 0.05, squared, 1e-10, 0, True)
    weights, slopes = _finish(members, queries, anchors, anchors, rules)
    whole = newton.finish(Problem(members, queries, anchors, 0.02, 0.05, squared), anchors, 1e-10)
    torch.testing.assert_close(weights, whole[0], rtol=0, atol=1e-7)
    missed = (queries - torch.einsum("bm,bmf->bf", weights, members)).norm(dim=1) > 1e-3  # elsewhere slopes are many
    assert int(missed.sum()) >= 2
    torch.testing.assert_close(slopes[missed], whole[1][missed], rtol=0, atol=1e-6)


@pytest.mark.parametrize("squared", [False, True])
def test_problems_without_extent(squared: bool) -> None:
    """Members of zeros stay at their anchors, those of a query of zeros go where they cancel; others are unmoved."""
    members, queries, anchors = exact_fits(6)
    members[0] = queries[1] = queries[2] = anchors[2] = 0
    weights, slopes = newton.finish(Problem(members, queries, anchors, 0.02, 0.05, squared), anchors, 1e-9)
    assert torch.equal(weights[0], anchors[0]) and not weights[2].any() and bool(slopes.isfinite().all())
    alone = newton.finish(Problem(members[3:], queries[3:], anchors[3:], 0.02, 0.05, squared), anchors[3:], 1e-9)
    torch.testing.assert_close(weights[3:], alone[0], rtol=0, atol=1e-7)


@pytest.mark.parametrize("seed", [0, 3, 6, 10, 13, 24, 32, 41, 49, 50])
def test_its_objective_is_that_of_a_thousand_steps_of_admm_or_lower(seed: int) -> None:
    """Whatever the scales: members of small extent, queries out of reach, anchors of 0, copies, penalties of 1e-5."""
    rng = np.random.default_rng(seed)
    count, width = int(rng.integers(2, 60)), int(rng.integers(1, 20))
    members = rng.normal(size=(8, count, width)) * np.geomspace(1, 10 ** rng.uniform(-3, 0), width)
    scale = 10 ** rng.uniform(-3, 3)
    near = (rng.dirichlet(np.full(count, 0.1), 8)[:, None] @ members)[:, 0] if seed % 2 else None
    queries = rng.normal(size=(8, width)) if near is None else near
    if seed % 7 == 0:
        members[:, : count // 2] = members[:, count - count // 2 :]
    anchors = rng.dirichlet(np.full(count, 0.2), 8) * (seed % 5 > 0)
    penalties = 10 ** rng.uniform(-5, 0, 2) * scale
    members, queries = scale * members, scale * queries
    problem = [torch.from_numpy(part) for part in (members, queries, anchors)]
    rules = *map(float, penalties), seed % 3 == 0, 1e-5
    ours = approximate(*problem, *rules).objective
    assert bool((ours <= approximate(*problem, *rules, 1000, False).objective * (1 + 1e-6)).all())


def test_where_rounding_leaves_no_way_down_no_more_steps_are_tried(evaluations: list[int]) -> None:
    problem, (y, a, r, sigma, tau) = random_point(False, 1)
    y, point = newton._minimise(problem, y, a, r, sigma, tau, problem.queries.norm(dim=1), 0.0)
    assert float(point.gradient.abs().max()) < 1e-12 and len(evaluations) < 300
