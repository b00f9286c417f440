"""The sparse neighbour approximation of DSNA (Huang, Loy & Tang 2016, Eq. 6), for many queries at once.

    minimise  ||q - L^T a|| + sparsity ||a||_1 + attraction ||a - anchor||_1

over the weights a of the m members L (m, F) of a query's cluster. The paper prints the plain norm, and so it is here;
with ``squared`` the fit is ||q - L^T a||^2 / 2.

Of the two penalties, the heavier one keeps nearly all weights at their anchors or at 0. So the problem is solved for a
working set of the others. The set takes in the members that the residual pulls harder than their penalties hold them,
and grows until there are none, when the optimality conditions of the whole problem hold.

ADMM (:mod:`ldl.methods.dsna.admm`) takes the first steps, which are cheap and often enough. If members fit a query
exactly, or nearly, the problem is a linear program, as the plain norm has its kink there, and ADMM may need ten
thousand steps. The proximal point algorithm (Rockafellar 1976) solves these problems in a few rounds. Each round
minimises a differentiable function of the dual slope y by semismooth Newton steps, as for the lasso (Li, Sun & Toh
2018) and for the norm (Tang, Wang, Sun & Toh 2020): with weights a and residual r,

    r(y) = prox of the fit at r_k + tau y,    a(y) = prox of both penalties at a_k + sigma L y,    r(y) + L^T a(y) = q.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ldl.methods.dsna.admm import LEAST_EIGENVALUE_SHARE, decompose, hold, shrink, solve
from ldl.methods.dsna.clusters import in_front

PROXIMAL_ROUNDS = 12
"""Most rounds of the proximal point algorithm; five to eight are usual."""
GROWTH = 5.0
"""Factor of the proximal steps from one round to the next."""
NEWTON_STEPS = 50
"""Most Newton steps of a round."""
HALVINGS = 30
"""Most halvings of a Newton step until it descends enough."""
DAMPING, LEAST = 1e-6, 1e-12
"""Damping of the Hessian as shares of its diagonal: times the relative residual of the query, and at least."""


class Problem(NamedTuple):
    """Problems of B queries: members (B, m, d), queries (B, d), anchors (B, m), penalties, and the kind of fit."""

    members: Tensor
    queries: Tensor
    anchors: Tensor
    sparsity: float
    attraction: float
    squared: bool

    def rows(self, some: Tensor) -> Problem:
        """Return the problems ``some``, bool (B,)."""
        return self._replace(members=self.members[some], queries=self.queries[some], anchors=self.anchors[some])


class Point(NamedTuple):
    """Functions of the slopes y (B, d): weights (B, m), residuals (B, d), the dual value (B,), its gradient (B, d).

    ``hessian`` (B, d, d) is the part of the residuals.
    """

    weights: Tensor
    residuals: Tensor
    value: Tensor
    gradient: Tensor
    hessian: Tensor


def _missed_by(members: Tensor, queries: Tensor, weights: Tensor) -> Tensor:
    """Return the residuals (B, d) of queries (B, d) after weights (B, m) of members (B, m, d)."""
    return queries - (weights.unsqueeze(1) @ members).squeeze(1)


def _slope_at(residual: Tensor, squared: bool) -> Tensor:
    """Return the gradient (B, d) of the fit in the residual; its product with a member is the pull on its weight."""
    if squared:
        return residual
    return residual / residual.norm(dim=1, keepdim=True).clamp_min(torch.finfo(residual.dtype).tiny)


def finish(problem: Problem, weights: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """Return weights (B, m) and slopes (B, d) that solve the problems.

    Args:
        problem: The problems.
        weights: (B, m) initial weights.
        tolerance: A query has converged if its residual equation holds to a tenth of this share of the query, and the
            pull on every member is optimal to this share of both penalties.
    """
    weights, slopes = weights.clone(), torch.zeros_like(problem.queries)
    rows = torch.arange(len(weights), device=weights.device)
    tiny = torch.finfo(weights.dtype).tiny ** 0.25
    a, r = weights, _missed_by(problem.members, problem.queries, weights)
    length = problem.queries.norm(dim=1).clamp_min(tiny)
    y = _slope_at(r, problem.squared)
    tau = torch.ones_like(length) if problem.squared else length
    sigma = tau / problem.members.norm(dim=2).amax(1).clamp_min(tiny).square()
    for _ in range(PROXIMAL_ROUNDS):
        y, point = _minimise(problem, y, a, r, sigma, tau, length, tolerance)
        open_ = (point.weights - a).abs().amax(1) / sigma > tolerance * (problem.sparsity + problem.attraction)
        a, r = point.weights, point.residuals
        weights[rows], slopes[rows] = a, y
        if not open_.any():
            break
        problem = problem.rows(open_)
        rows, a, r, y, length, sigma, tau = (x[open_] for x in (rows, a, r, y, length, sigma, tau))
        sigma, tau = GROWTH * sigma, GROWTH * tau
    return weights, slopes


def _minimise(
    problem: Problem, y: Tensor, a: Tensor, r: Tensor, sigma: Tensor, tau: Tensor, length: Tensor, tolerance: float
) -> tuple[Tensor, Point]:
    """Return slopes with a gradient of at most ``tolerance`` / 10 times the ``length`` of a query, and their point."""
    point = _at(problem, y, a, r, sigma, tau)
    stuck = torch.zeros_like(length, dtype=torch.bool)
    for _ in range(NEWTON_STEPS):
        missed = point.gradient.norm(dim=1) / length
        open_ = (missed > tolerance / 10) & ~stuck
        if not open_.any():
            break
        free = ((point.weights != 0) & (point.weights != problem.anchors)).to(y) * sigma[:, None]
        hessian = point.hessian + (problem.members * free.unsqueeze(2)).mT @ problem.members
        diagonal = hessian.diagonal(dim1=1, dim2=2).amax(1).maximum(tau)
        damped = diagonal * (DAMPING * missed.clamp_max(1) + LEAST)
        hessian.diagonal(dim1=1, dim2=2).add_(damped[:, None])
        step = -torch.linalg.solve(hessian, point.gradient)
        slope = (step * point.gradient).sum(1)
        share = open_.to(y)
        for _ in range(HALVINGS):
            tried = _at(problem, y + share[:, None] * step, a, r, sigma, tau)
            high = tried.value > point.value + 1e-4 * share * slope + 1e-13 * point.value.abs()
            if not high.any():
                break
            share = torch.where(high, share / 2, share)
        else:  # rounding allows no descent
            stuck, share = stuck | high, torch.where(high, 0.0, share)
            tried = _at(problem, y + share[:, None] * step, a, r, sigma, tau)
        y, point = y + share[:, None] * step, tried
    return y, point


def _at(problem: Problem, y: Tensor, a: Tensor, r: Tensor, sigma: Tensor, tau: Tensor) -> Point:
    members, queries, anchors, sparsity, attraction, squared = problem
    pull = (members @ y.unsqueeze(2)).squeeze(2)
    weights = shrink(a + sigma[:, None] * pull, anchors, sparsity * sigma, attraction * sigma)
    w = r + tau[:, None] * y
    eye = torch.eye(y.shape[1], dtype=y.dtype, device=y.device)
    if squared:
        residuals = w / (1 + tau)[:, None]
        fit, hessian = residuals.square().sum(1) / 2, (tau / (1 + tau))[:, None, None] * eye
    else:
        norm = w.norm(dim=1).clamp_min(torch.finfo(y.dtype).tiny)
        kept = (1 - tau / norm).clamp_min(0)
        residuals = kept[:, None] * w
        fit = residuals.norm(dim=1)
        unit = w / norm[:, None]
        curved = torch.where(kept > 0, tau * (1 - kept), 0.0)[:, None, None] * unit.unsqueeze(2) * unit.unsqueeze(1)
        hessian = (tau * kept)[:, None, None] * eye + curved
    penalties = sparsity * weights.abs().sum(1) + attraction * (weights - anchors).abs().sum(1)
    near = (residuals - r).square().sum(1) / (2 * tau) + (weights - a).square().sum(1) / (2 * sigma)
    value = (y * (residuals - queries)).sum(1) + (pull * weights).sum(1) - fit - penalties - near
    return Point(weights, residuals, value, residuals + (weights.unsqueeze(1) @ members).squeeze(1) - queries, hessian)


LEAST_GROWTH = 32
"""Least growth of a working set, which else doubles; problems of at most twice as many members are solved whole."""
ITERATIONS = 50
"""Iterations of ADMM; problems that need more are solved faster by Newton steps."""
SMALL, EARLIER = 32, 200
"""Largest cluster that gets the 200 iterations of earlier versions, so that old models predict the same."""


class SolverRules(NamedTuple):
    """The hyperparameters of :func:`approximate`."""

    sparsity: float
    attraction: float
    squared: bool
    tolerance: float
    iterations: int
    finished: bool


class Approximation(NamedTuple):
    """Weights (B, m) of the members, the objective (B,), and the ADMM iterations (B,) of each query."""

    weights: Tensor
    objective: Tensor
    iterations: Tensor


def objective(
    members: Tensor, queries: Tensor, weights: Tensor, anchors: Tensor, sparsity: float, attraction: float,
    squared: bool = False,
) -> Tensor:  # fmt: skip
    """Return the objective (B,). For the arguments, see :func:`approximate`."""
    residual = _missed_by(members, queries, weights).norm(dim=1)
    fit = residual.square() / 2 if squared else residual
    return fit + sparsity * weights.abs().sum(1) + attraction * (weights - anchors).abs().sum(1)


def approximate(
    members: Tensor, queries: Tensor, anchors: Tensor, sparsity: float, attraction: float, squared: bool = False,
    tolerance: float = 1e-6, iterations: int | None = None, finished: bool = True,
) -> Approximation:  # fmt: skip
    """Solve the problem of every query.

    Args:
        members: (B, m, F) members of each query's cluster, float64 for the stated precision; smaller clusters are
            padded with rows of zeros, whose weights stay 0.
        queries: (B, F).
        anchors: (B, m) the weights of the third term; 0 for padding.
        sparsity: Weight of the l1 norm, lambda.
        attraction: Weight of the distance to ``anchors``, gamma.
        squared: Whether the fit is half the squared norm of the residual instead of the norm.
        tolerance: ADMM has converged if its primal and dual residuals are at most this share of their terms. A member
            keeps its weight if its pull exceeds its penalties by at most this share.
        iterations: Maximum number of ADMM iterations for a working set; None is 50, or 200 if m is at most 32.
        finished: Whether Newton steps solve the problems for which ADMM has not converged.
    """
    if iterations is None:
        iterations = EARLIER if anchors.shape[1] <= SMALL else ITERATIONS
    rules = SolverRules(sparsity, attraction, squared, tolerance, iterations, finished)
    if anchors.shape[1] <= 2 * LEAST_GROWTH:
        weights, _, taken = _solve(members, queries, anchors, anchors, torch.zeros_like(anchors), rules)
    else:
        weights, taken = _grow(members, queries, anchors, rules)
    return Approximation(weights, objective(members, queries, weights, anchors, sparsity, attraction, squared), taken)


def _grow(members: Tensor, queries: Tensor, anchors: Tensor, rules: SolverRules) -> tuple[Tensor, Tensor]:
    """Return weights (B, m) and iterations (B,) by working sets."""
    sparsity, attraction, squared, tolerance = rules[:4]
    weights = anchors.clone() if attraction >= sparsity else torch.zeros_like(anchors)
    slopes = _slope_at(_missed_by(members, queries, weights), squared)
    middle, reach = hold(anchors, sparsity, attraction)
    inside = torch.zeros_like(anchors, dtype=torch.bool)
    taken = torch.zeros(len(anchors), dtype=torch.long, device=anchors.device)
    rows = torch.arange(len(anchors), device=anchors.device)
    candidates = members
    while True:
        pull = (candidates @ slopes[rows].unsqueeze(2)).squeeze(2)
        excess = (pull - middle[rows]).abs() - reach[rows]
        excess[inside[rows]] = -torch.inf
        outside = excess > tolerance * (sparsity + attraction)
        some = outside.any(1)
        if not some.any():
            break
        if not some.all():
            rows, candidates, pull, excess, outside = (x[some] for x in (rows, candidates, pull, excess, outside))
        rank = excess.argsort(dim=1, descending=True).argsort(dim=1)
        inside[rows] |= outside & (rank < inside[rows].sum(1, keepdim=True).clamp_min(LEAST_GROWTH))
        order, real = in_front(inside[rows])
        start, anchor, dual = (x.gather(1, order) * real for x in (weights[rows], anchors[rows], pull))
        chosen = candidates.take_along_dim(order.unsqueeze(2), 1) * real.unsqueeze(2)
        left = _missed_by(candidates, queries[rows], weights[rows]) + (start.unsqueeze(1) @ chosen).squeeze(1)
        solution, slopes[rows], steps = _solve(chosen, left, anchor, start, dual, rules)
        weights[rows] = weights[rows].scatter(1, order, torch.where(real, solution, weights[rows].gather(1, order)))
        taken[rows] += steps
    return weights, taken


def _solve(
    members: Tensor, queries: Tensor, anchors: Tensor, start: Tensor, pull: Tensor, rules: SolverRules
) -> tuple[Tensor, Tensor, Tensor]:
    """Return weights (B, m), slopes of the fit (B, F) and iterations (B,) of problems that are solved whole."""
    weights, taken, left = solve(members, queries, anchors, start, pull, *rules[:5])
    slopes = _slope_at(_missed_by(members, queries, weights), rules.squared)
    if rules.finished and len(left):
        weights[left], slopes[left] = _finish(members[left], queries[left], anchors[left], weights[left], rules)
    return weights, slopes, taken


def _finish(
    members: Tensor, queries: Tensor, anchors: Tensor, weights: Tensor, rules: SolverRules
) -> tuple[Tensor, Tensor]:
    """Return weights (B, m) and slopes (B, F) by Newton steps, in the span of the members and one more direction.

    The last direction is that of the part of the query outside of the span.
    """
    spectrum = decompose(members, queries)
    outside = torch.where(
        spectrum.outside > LEAST_EIGENVALUE_SHARE * queries.square().sum(1), spectrum.outside, 0.0
    ).sqrt()[:, None]
    spanned = torch.nn.functional.pad(spectrum.vectors * spectrum.scales.unsqueeze(1), (0, 1))
    problem = Problem(spanned, torch.cat([spectrum.query, outside], 1), anchors, *rules[:3])
    weights, slopes = finish(problem, weights, rules.tolerance)
    along = torch.where(outside > 0, slopes[:, -1:] / outside, 0.0)
    inside = torch.where(spectrum.scales > 0, (slopes[:, :-1] - along * spectrum.query) / spectrum.scales, 0.0)
    shares = (spectrum.vectors @ inside.unsqueeze(2)).mT
    return weights, (shares @ members).squeeze(1) + along * queries
