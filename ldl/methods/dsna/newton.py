"""DSNA's sparse neighbour approximation to the end, where ADMM is slow; see :mod:`ldl.methods.dsna.sparse`.

Where a query's members fit it exactly, or nearly, the plain norm has its kink there, the problem is a linear program,
and ADMM may need ten thousand steps. The proximal point algorithm (Rockafellar 1976) ends such problems within a few
rounds, each of which minimises a differentiable function of the dual slope y by semismooth Newton steps, as for the
lasso (Li, Sun & Toh 2018) and for the norm (Tang, Wang, Sun & Toh 2020): with weights a and residual r,

    r(y) = prox of the fit at r_k + tau y,    a(y) = prox of both penalties at a_k + sigma L y,    r(y) + L^T a(y) = q.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ldl.methods.dsna.penalties import shrink

ROUNDS = 12
"""Rounds of the proximal point algorithm, at most; five to eight are usual."""
GROWTH = 5.0
"""Each round's proximal steps are so much longer than the last one's."""
STEPS = 50
"""Newton steps of a round, at most."""
HALVINGS = 30
"""A Newton step is halved so many times, at most, until it descends enough."""
DAMPING, LEAST = 1e-6, 1e-12
"""The Hessian is damped by these shares of its diagonal: times the share of the query that is missed, and at least."""


class Problem(NamedTuple):
    """Problems of B queries: members (B, m, d), queries (B, d), anchors (B, m), penalties, and what the fit is."""

    members: Tensor
    queries: Tensor
    anchors: Tensor
    sparsity: float
    attraction: float
    squared: bool

    def rows(self, some: Tensor) -> Problem:
        """The problems ``some``, bool (B,)."""
        return self._replace(members=self.members[some], queries=self.queries[some], anchors=self.anchors[some])


class Point(NamedTuple):
    """What belongs to slopes y (B, d): weights (B, m), residuals (B, d), the dual value (B,) and its gradient (B, d).

    ``hessian`` (B, d, d) is that of the residuals alone, in y.
    """

    weights: Tensor
    residuals: Tensor
    value: Tensor
    gradient: Tensor
    hessian: Tensor


def missed_by(members: Tensor, queries: Tensor, weights: Tensor) -> Tensor:
    """Residuals (B, d) that weights (B, m) of members (B, m, d) leave of queries (B, d)."""
    return queries - (weights.unsqueeze(1) @ members).squeeze(1)


def slope_at(residual: Tensor, squared: bool) -> Tensor:
    """By what members are pulled, (B, d): the gradient of the fit in the residual."""
    if squared:
        return residual
    return residual / residual.norm(dim=1, keepdim=True).clamp_min(torch.finfo(residual.dtype).tiny)


def finish(problem: Problem, weights: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """Weights (B, m) and slopes (B, d) that solve the problems; a member's pull is its product with the slope.

    Args:
        problem: What is solved.
        weights: (B, m) the first.
        tolerance: A query is done when it is missed by at most a tenth of this share of it, and no member is pulled by
            more than this share of both penalties otherwise than these and the fit allow.
    """
    weights, slopes = weights.clone(), torch.zeros_like(problem.queries)
    rows = torch.arange(len(weights), device=weights.device)
    tiny = torch.finfo(weights.dtype).tiny ** 0.25
    a, r = weights, missed_by(problem.members, problem.queries, weights)
    length = problem.queries.norm(dim=1).clamp_min(tiny)
    y = slope_at(r, problem.squared)
    tau = torch.ones_like(length) if problem.squared else length
    sigma = tau / problem.members.norm(dim=2).amax(1).clamp_min(tiny).square()
    for _ in range(ROUNDS):
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
    """Slopes by whose point a query is missed by at most a tenth of ``tolerance`` of its ``length``, and the point."""
    point = _at(problem, y, a, r, sigma, tau)
    stuck = torch.zeros_like(length, dtype=torch.bool)
    for _ in range(STEPS):
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
        else:  # rounding leaves no way down
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
