"""The sparse neighbour approximation of DSNA (Huang, Loy & Tang 2016, Eq. 6), for many queries at once.

    minimise  ||q - L^T a|| + sparsity ||a||_1 + attraction ||a - anchor||_1

over the weights a of the m members L (m, F) of a query's cluster. The paper prints the plain norm, and so is it here;
with ``squared`` it is ||q - L^T a||^2 / 2.

Of the two penalties the heavier holds nearly all weights where it wants them, at their anchors or at 0. So the problem
is solved for a working set of the others: it takes in the members that the residual pulls away harder than their
penalties hold them, and grows until none is left, when the optimality conditions of the whole problem are met.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ldl.methods.dsna.admm import solve
from ldl.methods.dsna.neighbourhood import in_front

FIRST = 32
"""A working set grows by as many members as it has, and by so many at least; of so few all are solved for."""


class Approximation(NamedTuple):
    """Weights (B, m) of the members, the objective (B,) there, and the iterations (B,) that each query took."""

    weights: Tensor
    objective: Tensor
    iterations: Tensor


def objective(
    members: Tensor,
    queries: Tensor,
    weights: Tensor,
    anchors: Tensor,
    sparsity: float,
    attraction: float,
    squared: bool = False,
) -> Tensor:
    """What is minimised, (B,); the arguments as in :func:`approximate`."""
    residual = _residual(members, queries, weights).norm(dim=1)
    fit = residual.square() / 2 if squared else residual
    return fit + sparsity * weights.abs().sum(1) + attraction * (weights - anchors).abs().sum(1)


def approximate(
    members: Tensor,
    queries: Tensor,
    anchors: Tensor,
    sparsity: float,
    attraction: float,
    squared: bool = False,
    tolerance: float = 1e-6,
    iterations: int = 1000,
) -> Approximation:
    """Solve the problem of every query.

    Args:
        members: (B, m, F) members of each query's cluster, float64 for the stated precision; clusters of fewer than m
            are filled up with rows of zeros, whose weights stay 0.
        queries: (B, F).
        anchors: (B, m) the weights of the third term; 0 where members are filled up.
        sparsity: Weight of the l1 norm, lambda.
        attraction: Weight of the distance to ``anchors``, gamma.
        squared: Half the squared norm of the residual in place of the norm.
        tolerance: ADMM is done when its primal and dual residuals are at most this share of their terms, and a member
            stays where it is when it is pulled by at most this share more than its penalties.
        iterations: ADMM takes at most so many for a working set.
    """
    rules = sparsity, attraction, squared, tolerance, iterations
    if anchors.shape[1] <= FIRST:
        weights, taken = solve(members, queries, anchors, anchors, torch.zeros_like(anchors), *rules)
    else:
        weights, taken = _grow(members, queries, anchors, rules)
    return Approximation(weights, objective(members, queries, weights, anchors, sparsity, attraction, squared), taken)


def _grow(
    members: Tensor, queries: Tensor, anchors: Tensor, rules: tuple[float, float, bool, float, int]
) -> tuple[Tensor, Tensor]:
    """Weights (B, m) and iterations (B,) by working sets; ``rules`` are the last arguments of :func:`approximate`."""
    sparsity, attraction, squared, tolerance, _ = rules
    weights = anchors.clone() if attraction >= sparsity else torch.zeros_like(anchors)
    middle, reach = _hold(anchors, sparsity, attraction)
    inside = torch.zeros_like(anchors, dtype=torch.bool)
    taken = torch.zeros(len(anchors), dtype=torch.long, device=anchors.device)
    rows = torch.arange(len(anchors), device=anchors.device)
    own = members
    while True:
        residual = _residual(own, queries[rows], weights[rows])
        pull = (own @ residual.unsqueeze(2)).squeeze(2)
        if not squared:
            pull = pull / residual.norm(dim=1, keepdim=True).clamp_min(torch.finfo(pull.dtype).tiny)
        excess = (pull - middle[rows]).abs() - reach[rows]
        excess[inside[rows]] = -torch.inf
        outside = excess > tolerance * (sparsity + attraction)
        some = outside.any(1)
        if not some.any():
            break
        if not some.all():
            rows, own, residual, pull, excess, outside = (x[some] for x in (rows, own, residual, pull, excess, outside))
        rank = excess.argsort(dim=1, descending=True).argsort(dim=1)
        inside[rows] |= outside & (rank < inside[rows].sum(1, keepdim=True).clamp_min(FIRST))
        order, real = in_front(inside[rows])
        start, anchor, dual = (x.gather(1, order) * real for x in (weights[rows], anchors[rows], pull))
        chosen = own.gather(1, order.unsqueeze(2).expand(-1, -1, own.shape[2])) * real.unsqueeze(2)
        left = residual + (start.unsqueeze(1) @ chosen).squeeze(1)
        found, steps = solve(chosen, left, anchor, start, dual, *rules)
        weights[rows] = weights[rows].scatter(1, order, torch.where(real, found, weights[rows].gather(1, order)))
        taken[rows] += steps
    return weights, taken


def _residual(members: Tensor, queries: Tensor, weights: Tensor) -> Tensor:
    return queries - (weights.unsqueeze(1) @ members).squeeze(1)


def _hold(anchors: Tensor, sparsity: float, attraction: float) -> tuple[Tensor, Tensor]:
    """Middle and reach, (B, m) each, of the pulls that move no weight from where the heavier penalty holds it.

    They are the subdifferential of both penalties at the anchor or at 0.
    """
    middle = min(sparsity, attraction) * anchors.sign() * (1 if attraction >= sparsity else -1)
    both = sparsity + attraction
    return middle, torch.where(anchors == 0, both, max(sparsity, attraction)).to(anchors)
