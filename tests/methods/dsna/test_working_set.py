"""Working sets of DSNA's solver: they end where the whole problem does, and hold few of its members."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.methods.dsna import sparse
from ldl.methods.dsna.admm import solve
from ldl.methods.dsna.penalties import hold, shrink

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


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(("sparsity", "attraction"), PENALTIES)
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


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(("sparsity", "attraction"), PENALTIES)
def test_the_objective_is_that_of_the_solver_on_all_members(sparsity: float, attraction: float, squared: bool) -> None:
    members, queries, anchors = problems(7)
    options = (sparsity, attraction, squared)
    start = torch.zeros_like(anchors)
    whole = solve(members, queries, anchors, start, start, *options, 1e-9, 20_000)[0]
    least = sparse.objective(members, queries, whole, anchors, *options)
    ours = sparse.approximate(members, queries, anchors, *options, 1e-9).objective
    torch.testing.assert_close(ours, least, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("sparsity", "attraction"), [(0.02, 0.3), (0.3, 0.02)])
def test_few_of_many_members_are_ever_solved_for(sparsity: float, attraction: float, sizes: list[int]) -> None:
    sparse.approximate(*problems(1, members=600), sparsity, attraction)
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
    monkeypatch.setattr(sparse, "FIRST", 1000)
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
