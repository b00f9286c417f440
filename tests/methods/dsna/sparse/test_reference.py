"""The solver of DSNA against a convex reference, and what must not change its result."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from ldl.methods.dsna.sparse import approximate, objective


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
