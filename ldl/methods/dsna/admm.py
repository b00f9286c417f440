"""ADMM for the sparse neighbour approximation of DSNA, for many queries at once; see :mod:`ldl.methods.dsna.sparse`.

There is one splitting, a = z: a takes the residual norm, z both penalties. In the eigenvectors of L L^T the step of a
is closed for the squared norm. For the plain norm one number is missing, the final residual norm t, which is the root
of a secular equation as in trust-region methods (More & Sorensen 1983). A change of the step size then costs nothing,
and it is balanced for each query (Boyd et al. 2011, 3.4.1).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ldl.methods.torch_utils import eigh


def shrink(x: Tensor, anchor: Tensor, sparsity: Tensor, attraction: Tensor) -> Tensor:
    """Return argmin over z of sparsity |z| + attraction |z - anchor| + (z - x)^2 / 2, (B, m); penalties are (B,)."""
    sparsity, attraction = sparsity[:, None], attraction[:, None]
    low, high = anchor.clamp_max(0), anchor.clamp_min(0)
    both = sparsity + attraction
    between = x - anchor.sign() * (sparsity - attraction)
    return (
        torch.minimum(x + both, low)
        + torch.minimum(torch.maximum(between, low), high)
        - low
        + torch.maximum(x - both, high)
        - high
    )


def hold(anchors: Tensor, sparsity: float, attraction: float) -> tuple[Tensor, Tensor]:
    """Return the subdifferential of both penalties at the anchor or at 0, where the heavier penalty keeps a weight.

    Returns:
        Middle and half width, (B, m) each, of the pulls that do not move a weight from there.
    """
    middle = min(sparsity, attraction) * anchors.sign() * (1 if attraction >= sparsity else -1)
    both = sparsity + attraction
    return middle, torch.where(anchors == 0, both, max(sparsity, attraction)).to(anchors)


RELAXATION = 1.6
"""Over-relaxation (Boyd et al. 2011, 3.4.3)."""
CHECK_INTERVAL = 10
"""Iterations between two checks of the residuals and step sizes."""
ADAPTED = 200
"""Iterations in which step sizes change; ADMM need not converge if they always did."""
NEWTON = 30
"""Most Newton steps for the residual norm; from the norm of the last iteration it takes two or three."""
LEAST_EIGENVALUE_SHARE = 1e-12
"""Share of the largest eigenvalue below which an eigenvalue counts as 0."""


class Spectrum(NamedTuple):
    """The problems in the eigenvectors of L L^T.

    Attributes:
        vectors: (B, m, r), r = min(m, F); 0 for an eigenvalue of 0.
        squares: (B, r) eigenvalues.
        scales: (B, r) their roots.
        query: (B, r) the query in the span of the members.
        outside: (B,) squared norm of the part of the query outside of their span.
    """

    vectors: Tensor
    squares: Tensor
    scales: Tensor
    query: Tensor
    outside: Tensor


def solve(
    members: Tensor, queries: Tensor, anchors: Tensor, start: Tensor, pull: Tensor, sparsity: float, attraction: float,
    squared: bool, tolerance: float, iterations: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return weights (B, m) of the members, the iterations (B,) per query, and the rows that have not converged.

    Args:
        members: (B, m, F); smaller clusters are padded with rows of zeros, whose weights stay 0.
        queries: (B, F).
        anchors: (B, m), 0 for padding.
        start: (B, m) initial weights.
        pull: (B, m) gradient of the fit there, members @ residual (over its norm, for the plain norm): initial duals.
        sparsity: Weight of the l1 norm.
        attraction: Weight of the distance to ``anchors``.
        squared: Whether the fit is half the squared norm of the residual instead of the norm.
        tolerance: A query has converged if its primal and dual residuals are at most this share of their terms.
        iterations: Maximum number of iterations.
    """
    tiny = torch.finfo(anchors.dtype).tiny
    spectrum, anchor = decompose(members, queries), anchors
    weights, taken = start.clone(), torch.full(anchors.shape[:1], iterations, device=anchors.device)
    rows = torch.arange(len(anchors), device=anchors.device)
    rho = spectrum.squares.amax(1).clamp_min(tiny).sqrt()
    z, u = start, pull / rho[:, None]
    norm = torch.ones_like(rho) if squared else queries.norm(dim=1).clamp_min(tiny)
    for step in range(1, iterations + 1):
        if not len(rows):
            break
        a, norm = _fit(spectrum, z - u, rho, norm, squared)
        relaxed = RELAXATION * a + (1 - RELAXATION) * z
        before, z = z, shrink(relaxed + u, anchor, sparsity / rho, attraction / rho)
        u = u + relaxed - z
        if step % CHECK_INTERVAL and step < iterations:
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
            spectrum = Spectrum(*(x[kept] for x in spectrum))
    return weights, taken, rows


def decompose(members: Tensor, queries: Tensor) -> Spectrum:
    """Return the problems of members (B, m, F) and queries (B, F) in the eigenvectors of L L^T."""
    tiny = torch.finfo(members.dtype).tiny
    wide = members.shape[1] > members.shape[2]
    squares, vectors = eigh(members.mT @ members if wide else members @ members.mT)
    squares = torch.where(squares > LEAST_EIGENVALUE_SHARE * squares[:, -1:], squares, 0.0)
    scales = squares.sqrt()
    if wide:
        vectors = members @ vectors * torch.where(scales > 0, 1 / scales.clamp_min(tiny), 0.0).unsqueeze(1)
    spanned = (members @ queries.unsqueeze(2)).mT @ vectors
    query = torch.where(scales > 0, spanned.squeeze(1) / scales.clamp_min(tiny), 0.0)
    outside = (queries.square().sum(1) - query.square().sum(1)).clamp_min(0)
    return Spectrum(vectors, squares, scales, query, outside)


def _fit(spectrum: Spectrum, v: Tensor, rho: Tensor, norm: Tensor, squared: bool) -> tuple[Tensor, Tensor]:
    """Return the argmin over a of the residual norm + rho/2 ||a - v||^2, and the residual norm there (1 if squared)."""
    d = (v.unsqueeze(1) @ spectrum.vectors).squeeze(1)
    gap = spectrum.query - spectrum.scales * d
    if not squared:
        norm = _residual_norm(spectrum, gap, rho, norm)
    change = spectrum.scales * gap / (spectrum.squares + (rho * norm)[:, None]).clamp_min(torch.finfo(d.dtype).tiny)
    return v + (spectrum.vectors @ change.unsqueeze(2)).squeeze(2), norm


def _residual_norm(spectrum: Spectrum, gap: Tensor, rho: Tensor, norm: Tensor) -> Tensor:
    """Return the root t of outside / t^2 + sum rho^2 gap^2 / (squares + rho t)^2 = 1, or about 0 if there is none.

    Newton steps on 1 / sqrt(.), which is nearly linear in t and concave, converge from any t.
    """
    tiny = torch.finfo(gap.dtype).tiny ** 0.25
    # An upper bound of the root: the norm without a fit.
    most = (spectrum.outside + gap.square().sum(1)).sqrt().clamp_min(tiny)
    t = torch.minimum(norm, most).clamp_min(tiny)
    for _ in range(NEWTON):
        share = rho[:, None] * gap / (spectrum.squares + (rho * t)[:, None])
        alone = spectrum.outside / t.square()
        value = alone + share.square().sum(1)
        slope = alone / t + (share.square() * rho[:, None] / (spectrum.squares + (rho * t)[:, None])).sum(1)
        step = value * (value.sqrt() - 1) / slope.clamp_min(tiny)
        t, before = torch.minimum(t + step, most).clamp_min(tiny), t
        if bool(((t - before).abs() <= 1e-10 * before).all()):
            break
    return t
