"""ADMM for DSNA's sparse neighbour approximation, for many queries at once; see :mod:`ldl.methods.dsna.sparse`.

There is one splitting, a = z: a takes the residual norm, z both penalties. In the eigenvectors of L L^T the step of a
is closed for the squared norm; for the plain norm one number is missing, the residual norm t that it ends with, the
root of a secular equation as in trust-region methods (More & Sorensen 1983). The step size then costs nothing to
change, and is balanced for each query (Boyd et al. 2011, 3.4.1).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ldl.methods.dsna.penalties import shrink
from ldl.methods.spectrum import eigh

RELAXATION = 1.6
"""Over-relaxation (Boyd et al. 2011, 3.4.3)."""
CHECKED = 10
"""Residuals are looked at, and step sizes changed, once in so many iterations."""
ADAPTED = 200
"""Step sizes change in the first so many iterations; with one that changed for ever ADMM need not converge."""
NEWTON = 30
"""Newton steps for the residual norm, at most; from the last iteration's norm it takes two or three."""
RANK = 1e-12
"""Eigenvalues that are a smaller share of the largest count as 0."""


class Spectrum(NamedTuple):
    """What the problem looks like in the eigenvectors of L L^T.

    Attributes:
        vectors: (B, m, r), r = min(m, F); 0 where the eigenvalue is.
        squares: (B, r) eigenvalues.
        scales: (B, r) their roots.
        query: (B, r) the query in the directions that the members span.
        outside: (B,) squared norm of the part of the query that they do not span.
    """

    vectors: Tensor
    squares: Tensor
    scales: Tensor
    query: Tensor
    outside: Tensor


def solve(
    members: Tensor,
    queries: Tensor,
    anchors: Tensor,
    start: Tensor,
    pull: Tensor,
    sparsity: float,
    attraction: float,
    squared: bool,
    tolerance: float,
    iterations: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights (B, m) of the members, the iterations (B,) that each query took, and the rows of those that need more.

    Args:
        members: (B, m, F); clusters of fewer than m are filled up with rows of zeros, whose weights stay 0.
        queries: (B, F).
        anchors: (B, m), 0 where members are filled up.
        start: (B, m) first weights.
        pull: (B, m) slope of the fit there, members @ residual (over its norm, for the plain norm): the first duals.
        sparsity: Weight of the l1 norm.
        attraction: Weight of the distance to ``anchors``.
        squared: Half the squared norm of the residual in place of the norm.
        tolerance: A query is done when its primal and dual residuals are at most this share of their terms.
        iterations: At most so many.
    """
    tiny = torch.finfo(anchors.dtype).tiny
    part, anchor = decompose(members, queries), anchors
    weights, taken = start.clone(), torch.full(anchors.shape[:1], iterations, device=anchors.device)
    rows = torch.arange(len(anchors), device=anchors.device)
    rho = part.squares.amax(1).clamp_min(tiny).sqrt()
    z, u = start, pull / rho[:, None]
    norm = torch.ones_like(rho) if squared else queries.norm(dim=1).clamp_min(tiny)
    for step in range(1, iterations + 1):
        if not len(rows):
            break
        a, norm = _fit(part, z - u, rho, norm, squared)
        relaxed = RELAXATION * a + (1 - RELAXATION) * z
        before, z = z, shrink(relaxed + u, anchor, sparsity / rho, attraction / rho)
        u = u + relaxed - z
        if step % CHECKED and step < iterations:
            continue
        primal, dual = (a - z).norm(dim=1), rho * (z - before).norm(dim=1)
        primal_scale, dual_scale = torch.maximum(a.norm(dim=1), z.norm(dim=1)), rho * u.norm(dim=1)
        weights[rows] = z
        done = (primal <= tolerance * primal_scale) & (dual <= tolerance * dual_scale)
        taken[rows[done]] = step
        balance = (primal * dual_scale / (dual * primal_scale)).nan_to_num(1.0).clamp(0.01, 100).sqrt()
        unbalanced = ((balance > 2) | (balance < 0.5)) & (step <= ADAPTED)
        factor = torch.where(unbalanced, balance, torch.ones_like(balance))
        rho, u = rho * factor, u / factor[:, None]
        if done.any():
            kept = ~done
            rows, z, u, rho, norm, anchor = (x[kept] for x in (rows, z, u, rho, norm, anchor))
            part = Spectrum(*(x[kept] for x in part))
    return weights, taken, rows


def decompose(members: Tensor, queries: Tensor) -> Spectrum:
    """The problems of members (B, m, F) and queries (B, F) in the eigenvectors of L L^T."""
    tiny = torch.finfo(members.dtype).tiny
    wide = members.shape[1] > members.shape[2]
    squares, vectors = eigh(members.mT @ members if wide else members @ members.mT)
    squares = torch.where(squares > RANK * squares[:, -1:], squares, 0.0)
    scales = squares.sqrt()
    if wide:
        vectors = members @ vectors * torch.where(scales > 0, 1 / scales.clamp_min(tiny), 0.0).unsqueeze(1)
    spanned = (members @ queries.unsqueeze(2)).mT @ vectors
    query = torch.where(scales > 0, spanned.squeeze(1) / scales.clamp_min(tiny), 0.0)
    outside = (queries.square().sum(1) - query.square().sum(1)).clamp_min(0)
    return Spectrum(vectors, squares, scales, query, outside)


def _fit(part: Spectrum, v: Tensor, rho: Tensor, norm: Tensor, squared: bool) -> tuple[Tensor, Tensor]:
    """argmin over a of the residual norm + rho/2 ||a - v||^2, and the residual norm there (1 where squared)."""
    d = (v.unsqueeze(1) @ part.vectors).squeeze(1)
    gap = part.query - part.scales * d
    if not squared:
        norm = _residual_norm(part, gap, rho, norm)
    change = part.scales * gap / (part.squares + (rho * norm)[:, None]).clamp_min(torch.finfo(d.dtype).tiny)
    return v + (part.vectors @ change.unsqueeze(2)).squeeze(2), norm


def _residual_norm(part: Spectrum, gap: Tensor, rho: Tensor, norm: Tensor) -> Tensor:
    """The root t of outside / t^2 + sum rho^2 gap^2 / (squares + rho t)^2 = 1, about 0 where there is none.

    Newton on 1 / sqrt(.), which is nearly linear in t and concave, so that it converges from any t.
    """
    tiny = torch.finfo(gap.dtype).tiny ** 0.25
    # The root lies below this, the norm without any fit.
    most = (part.outside + gap.square().sum(1)).sqrt().clamp_min(tiny)
    t = torch.minimum(norm, most).clamp_min(tiny)
    for _ in range(NEWTON):
        share = rho[:, None] * gap / (part.squares + (rho * t)[:, None])
        alone = part.outside / t.square()
        value = alone + share.square().sum(1)
        slope = alone / t + (share.square() * rho[:, None] / (part.squares + (rho * t)[:, None])).sum(1)
        step = value * (value.sqrt() - 1) / slope.clamp_min(tiny)
        t, before = torch.minimum(t + step, most).clamp_min(tiny), t
        if bool(((t - before).abs() <= 1e-10 * before).all()):
            break
    return t
