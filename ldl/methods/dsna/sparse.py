"""The sparse neighbour approximation of DSNA (Huang, Loy & Tang 2016, Eq. 6), for many queries at once.

    minimise  ||q - L^T a|| + sparsity ||a||_1 + attraction ||a - anchor||_1

over the weights a of the m members L (m, F) of a query's cluster. The paper prints the plain norm, and so is it here;
with ``squared`` it is ||q - L^T a||^2 / 2.

Of the two penalties the heavier holds nearly all weights where it wants them, at their anchors or at 0. So the problem
is solved for a working set of the others: it takes in the members that the residual pulls away harder than their
penalties hold them, and grows until none is left, when the optimality conditions of the whole problem are met.

ADMM (:mod:`ldl.methods.dsna.admm`) takes the first steps, which are cheap and often enough; Newton's
(:mod:`ldl.methods.dsna.newton`) end the others.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ldl.methods.dsna import newton
from ldl.methods.dsna.admm import RANK, decompose, solve
from ldl.methods.dsna.neighbourhood import in_front
from ldl.methods.dsna.newton import missed_by, slope_at
from ldl.methods.dsna.penalties import hold

FIRST = 32
"""A working set grows by as many members as it has, and by so many at least; of twice as many all are solved for."""

ITERATIONS = 50
"""Of ADMM: what needs more is sooner ended by Newton steps."""

SMALL, EARLIER = 32, 200
"""Clusters of so few members get as many iterations as ever, so that earlier models predict what they did."""


class Rules(NamedTuple):
    """The last arguments of :func:`approximate`."""

    sparsity: float
    attraction: float
    squared: bool
    tolerance: float
    iterations: int
    finished: bool


class Approximation(NamedTuple):
    """Weights (B, m) of the members, the objective (B,) there, and ADMM's iterations (B,) for each query."""

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
    residual = missed_by(members, queries, weights).norm(dim=1)
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
    iterations: int | None = None,
    finished: bool = True,
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
        iterations: ADMM takes at most so many for a working set; None takes 50, or 200 where m is at most 32.
        finished: Whether Newton steps end what ADMM has not ended by then.
    """
    if iterations is None:
        iterations = EARLIER if anchors.shape[1] <= SMALL else ITERATIONS
    rules = Rules(sparsity, attraction, squared, tolerance, iterations, finished)
    if anchors.shape[1] <= 2 * FIRST:
        weights, _, taken = _solve(members, queries, anchors, anchors, torch.zeros_like(anchors), rules)
    else:
        weights, taken = _grow(members, queries, anchors, rules)
    return Approximation(weights, objective(members, queries, weights, anchors, sparsity, attraction, squared), taken)


def _grow(members: Tensor, queries: Tensor, anchors: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """Weights (B, m) and iterations (B,) by working sets."""
    sparsity, attraction, squared, tolerance = rules[:4]
    weights = anchors.clone() if attraction >= sparsity else torch.zeros_like(anchors)
    slopes = slope_at(missed_by(members, queries, weights), squared)
    middle, reach = hold(anchors, sparsity, attraction)
    inside = torch.zeros_like(anchors, dtype=torch.bool)
    taken = torch.zeros(len(anchors), dtype=torch.long, device=anchors.device)
    rows = torch.arange(len(anchors), device=anchors.device)
    own = members
    while True:
        pull = (own @ slopes[rows].unsqueeze(2)).squeeze(2)
        excess = (pull - middle[rows]).abs() - reach[rows]
        excess[inside[rows]] = -torch.inf
        outside = excess > tolerance * (sparsity + attraction)
        some = outside.any(1)
        if not some.any():
            break
        if not some.all():
            rows, own, pull, excess, outside = (x[some] for x in (rows, own, pull, excess, outside))
        rank = excess.argsort(dim=1, descending=True).argsort(dim=1)
        inside[rows] |= outside & (rank < inside[rows].sum(1, keepdim=True).clamp_min(FIRST))
        order, real = in_front(inside[rows])
        start, anchor, dual = (x.gather(1, order) * real for x in (weights[rows], anchors[rows], pull))
        chosen = own.take_along_dim(order.unsqueeze(2), 1) * real.unsqueeze(2)
        left = missed_by(own, queries[rows], weights[rows]) + (start.unsqueeze(1) @ chosen).squeeze(1)
        found, slopes[rows], steps = _solve(chosen, left, anchor, start, dual, rules)
        weights[rows] = weights[rows].scatter(1, order, torch.where(real, found, weights[rows].gather(1, order)))
        taken[rows] += steps
    return weights, taken


def _solve(
    members: Tensor, queries: Tensor, anchors: Tensor, start: Tensor, pull: Tensor, rules: Rules
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights (B, m), slopes of the fit (B, F) and iterations (B,) of problems that are solved whole."""
    weights, taken, left = solve(members, queries, anchors, start, pull, *rules[:5])
    slopes = slope_at(missed_by(members, queries, weights), rules.squared)
    if rules.finished and len(left):
        weights[left], slopes[left] = _finish(members[left], queries[left], anchors[left], weights[left], rules)
    return weights, slopes, taken


def _finish(members: Tensor, queries: Tensor, anchors: Tensor, weights: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """Weights (B, m) and slopes (B, F) by Newton steps, in the directions that the members span and one more.

    The last direction is that of the query's part outside of what they span.
    """
    part = decompose(members, queries)
    outside = torch.where(part.outside > RANK * queries.square().sum(1), part.outside, 0.0).sqrt()[:, None]
    spanned = torch.nn.functional.pad(part.vectors * part.scales.unsqueeze(1), (0, 1))
    problem = newton.Problem(spanned, torch.cat([part.query, outside], 1), anchors, *rules[:3])
    weights, slopes = newton.finish(problem, weights, rules.tolerance)
    along = torch.where(outside > 0, slopes[:, -1:] / outside, 0.0)
    inside = torch.where(part.scales > 0, (slopes[:, :-1] - along * part.query) / part.scales, 0.0)
    shares = (part.vectors @ inside.unsqueeze(2)).mT
    return weights, (shares @ members).squeeze(1) + along * queries
