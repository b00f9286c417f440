"""Newton steps and working sets of DSNA's solver: derivatives, linear programs, optimality, and work done."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from ldl.methods.dsna import sparse
from ldl.methods.dsna.admm import hold, shrink, solve
from ldl.methods.dsna.sparse import Problem, SolverRules, _finish, approximate


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by how many queries the dual function is evaluated for, whenever it is."""
    found, one = [], sparse._at

    def counted(*args: Tensor) -> sparse.Point:
        found.append(len(args[1]))
        return one(*args)

    monkeypatch.setattr(sparse, "_at", counted)
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


@pytest.mark.parametrize("seed", range(2))
def test_of_all_weights_that_fit_a_query_it_finds_those_of_least_penalty(seed: int) -> None:
    members, queries, anchors = exact_fits(seed)
    penalties = (0.004, 0.007) if seed % 2 else (0.006, 0.002)
    found = approximate(members, queries, anchors, *penalties, tolerance=1e-9)
    least = [least_penalty(*(part[row].numpy() for part in (members, queries, anchors)), penalties) for row in range(5)]
    torch.testing.assert_close(found.objective, torch.tensor(least).double(), rtol=1e-7, atol=0)


def test_it_ends_in_a_few_steps_what_admm_does_not_in_many(evaluations: list[int]) -> None:
    problem, penalties = exact_fits(10), (0.004, 0.007)
    alone = approximate(*problem, *penalties, tolerance=1e-9, iterations=300, finished=False)
    assert not evaluations
    found = approximate(*problem, *penalties, tolerance=1e-9)
    assert int(alone.iterations.max()) == 300 and 0 < len(evaluations) < 150
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
def test_the_gradient_is_that_of_the_dual_value_and_the_hessian_that_of_the_residuals(squared: bool) -> None:
    problem, (y, *others) = random_point(squared, 0)
    point, step = sparse._at(problem, y, *others), 1e-6
    for axis in range(4):
        change = torch.zeros(4).double()
        change[axis] = step
        more, less = (sparse._at(problem, y + sign * change, *others) for sign in (1, -1))
        torch.testing.assert_close((more.value - less.value) / (2 * step), point.gradient[:, axis], rtol=0, atol=1e-7)
        slope = (more.residuals - less.residuals) / (2 * step)
        torch.testing.assert_close(slope, point.hessian[:, axis], rtol=0, atol=1e-7)


@pytest.mark.parametrize("squared", [False, True])
def test_slopes_in_the_directions_of_the_members_are_those_of_the_features(squared: bool) -> None:
    members, queries, anchors = exact_fits(3, members=9, width=12)
    members[:2] *= torch.tensor([0.0] * 4 + [1.0] * 8)  # two queries lie partly outside of what their members span
    rules = SolverRules(0.02, 0.05, squared, 1e-10, 0, True)
    weights, slopes = _finish(members, queries, anchors, anchors, rules)
    whole = sparse.finish(Problem(members, queries, anchors, 0.02, 0.05, squared), anchors, 1e-10)
    torch.testing.assert_close(weights, whole[0], rtol=0, atol=1e-7)
    missed = (queries - torch.einsum("bm,bmf->bf", weights, members)).norm(dim=1) > 1e-3  # elsewhere slopes are many
    assert int(missed.sum()) >= 2
    torch.testing.assert_close(slopes[missed], whole[1][missed], rtol=0, atol=1e-6)


def test_problems_without_extent() -> None:
    """Members of zeros stay at their anchors, those of a query of zeros go where they cancel; others are unmoved."""
    members, queries, anchors = exact_fits(6)
    members[0] = queries[1] = queries[2] = anchors[2] = 0
    weights, slopes = sparse.finish(Problem(members, queries, anchors, 0.02, 0.05, False), anchors, 1e-9)
    assert torch.equal(weights[0], anchors[0]) and not weights[2].any() and bool(slopes.isfinite().all())
    alone = sparse.finish(Problem(members[3:], queries[3:], anchors[3:], 0.02, 0.05, False), anchors[3:], 1e-9)
    torch.testing.assert_close(weights[3:], alone[0], rtol=0, atol=1e-7)


@pytest.mark.parametrize("seed", [0, 3, 49])
def test_its_objective_is_that_of_many_steps_of_admm_or_lower(seed: int) -> None:
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
    assert bool((ours <= approximate(*problem, *rules, 300, False).objective * (1 + 1e-6)).all())


def test_where_rounding_leaves_no_way_down_no_more_steps_are_tried(evaluations: list[int]) -> None:
    problem, (y, a, r, sigma, tau) = random_point(False, 1)
    y, point = sparse._minimise(problem, y, a, r, sigma, tau, problem.queries.norm(dim=1), 0.0)
    assert float(point.gradient.abs().max()) < 1e-12 and len(evaluations) < 300


PENALTIES = [(0.02, 0.3), (0.3, 0.02), (0.1, 0.1), (0.3, 0.0), (0.0, 0.3)]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the members of every working set that is solved for."""
    found = []

    def counted(members: Tensor, *others: object) -> tuple[Tensor, Tensor, Tensor]:
        found.append(members.shape[1])
        return solve(members, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(sparse, "solve", counted)
    return found


def problems(seed: int, members: int = 90, width: int = 40) -> tuple[Tensor, Tensor, Tensor]:
    """Six queries, of which the last one's anchors have both signs and the first one's last 30 members are none."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6, members, width)) * np.geomspace(1, 0.05, width)
    share = rng.dirichlet(np.full(members, 0.05), 6)
    queries = (share[:, None] @ points)[:, 0] + 0.5 * points[:, 0]
    anchors = rng.dirichlet(np.full(members, 0.05), 6)
    anchors[5] *= rng.choice([-1, 1], members)
    points[0, -30:] = anchors[0, -30:] = 0
    return torch.from_numpy(points), torch.from_numpy(queries), torch.from_numpy(anchors)


@pytest.mark.parametrize(
    ("sparsity", "attraction", "squared"), [(0.02, 0.3, False), (0.3, 0.02, True), (0.1, 0.1, False)]
)
def test_the_optimality_conditions_of_the_whole_problem_hold(sparsity: float, attraction: float, squared: bool) -> None:
    members, queries, anchors = problems(int(100 * sparsity))
    found = sparse.approximate(members, queries, anchors, sparsity, attraction, squared, 1e-9)
    residual = queries - torch.einsum("bm,bmf->bf", found.weights, members)
    pull = torch.einsum("bmf,bf->bm", members, residual)
    if not squared:
        pull = pull / residual.norm(dim=1, keepdim=True)
    near = 1e-7
    low = high = torch.zeros_like(pull)
    for weight, kink in ((sparsity, torch.zeros_like(anchors)), (attraction, anchors)):
        away = found.weights - kink
        low = low + weight * torch.where(away > near, 1.0, -1.0)
        high = high + weight * torch.where(away < -near, -1.0, 1.0)
    assert bool((pull >= low - 1e-5).all()) and bool((pull <= high + 1e-5).all())


def test_few_of_many_members_are_ever_solved_for(sizes: list[int]) -> None:
    sparse.approximate(*problems(1, members=600), 0.02, 0.3)
    assert sizes[:3] == [32, 64, 128] and max(sizes) < 200


def test_where_members_fit_queries_exactly_slopes_still_tell_which_are_pulled(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The residual, which is rounding there, does not: with it, working sets take in most of the members."""
    members, queries, anchors = problems(3, members=300, width=6)
    options = (0.004, 0.002, False, 1e-9)
    found = sparse.approximate(members, queries, anchors, *options)
    assert float((queries - torch.einsum("bm,bmf->bf", found.weights, members)).norm(dim=1).max()) < 1e-6
    assert max(sizes) < 150
    monkeypatch.setattr(sparse, "LEAST_GROWTH", 1000)
    whole = sparse.approximate(members, queries, anchors, *options).objective
    torch.testing.assert_close(found.objective, whole, rtol=1e-6, atol=1e-9)


def test_a_query_that_its_anchors_fit_exactly_keeps_them() -> None:
    members, _, anchors = problems(5)
    queries = torch.einsum("bm,bmf->bf", anchors, members)
    assert torch.equal(sparse.approximate(members, queries, anchors, 0.02, 0.3).weights, anchors)


@pytest.mark.parametrize(("sparsity", "attraction"), PENALTIES)
def test_pulls_that_hold_are_those_after_which_the_penalties_put_a_weight_back(
    sparsity: float, attraction: float
) -> None:
    anchors = torch.tensor([[-0.7, -0.2, 0.0, 0.2, 0.7]]).double()
    home = anchors if attraction >= sparsity else torch.zeros_like(anchors)
    middle, reach = hold(anchors, sparsity, attraction)
    for pull in torch.linspace(-0.83, 0.83, 61, dtype=torch.float64):
        back = shrink(home + pull, anchors, torch.tensor([sparsity]).double(), torch.tensor([attraction]).double())
        assert torch.equal((back - home).abs() < 1e-9, (pull - middle).abs() <= reach), pull
