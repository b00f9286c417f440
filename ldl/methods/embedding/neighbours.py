"""Nearest neighbours, exactly, in parts that fit into memory."""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.methods.traced import pick, traced

PART = 2**24
"""Distances that are held at a time."""
GRAIN = 2.0**-30
"""Squared distances that differ by less, as a share of the squared norms of both, are equal."""
COARSE = 2.0**-20
"""A grain that is a larger share of the squared distance itself hides which point is nearer."""
SPARE = 16
"""Points beyond those asked for that a graph measures by differences."""


def nearest(queries: Tensor, points: Tensor, k: int, exclude_self: bool = False) -> Tensor:
    """Rows of the ``k`` nearest points of each query by Euclidean distance, nearest first: (B, k), int64.

    Which of equally near points are taken depends on the points and the query alone, not on what else is asked.

    Args:
        queries: (B, F).
        points: (N, F), N at least k, or k + 1 where a point may not be its own neighbour.
        k: How many.
        exclude_self: The queries are the points, and none is its own neighbour.
    """
    with torch.autocast(points.device.type, enabled=False):  # distances of 16 bits find others
        return _nearest(queries.double(), points.double(), k, exclude_self)


def _nearest(queries: Tensor, points: Tensor, k: int, exclude_self: bool) -> Tensor:
    # Distances are computed from dot products, whose rounding grows with the distance from the origin.
    centre = points.mean(0)
    centred = points - centre
    squares = centred.square().sum(1)
    if traced():
        likely = min(k + SPARE, len(points))
        distances, rounding = _distances(queries - centre, centred, squares)
        candidates = (distances - rounding).topk(likely, largest=False).indices.sort(1).values
        measured = (queries[:, None] - pick(points, candidates)).square().sum(2)
        return candidates.gather(1, measured.topk(k, largest=False).indices)
    found = torch.empty(len(queries), k, dtype=torch.int64, device=points.device)
    step = max(1, PART // len(points))
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        own = torch.arange(start, start + len(part), device=points.device)[:, None]
        distances, grain = _distances(part - centre, centred, squares)
        if exclude_self:
            distances.scatter_(1, own, torch.inf)
        nearby = distances.topk(k, largest=False)
        found[start : start + step] = nearby.indices
        coarse = (grain.gather(1, nearby.indices[:, -1:]) > COARSE * nearby.values[:, -1:]).any(1)
        if bool(coarse.any()):
            distances = torch.cdist(part[coarse], points, compute_mode="donot_use_mm_for_euclid_dist")
            if exclude_self:
                distances.scatter_(1, own[coarse], torch.inf)
            found[start : start + step][coarse] = distances.argsort(dim=1, stable=True)[:, :k]
    return found


def _distances(queries: Tensor, points: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distances (B, N), and their grains: rounded to these, as rounding depends on the shape of a product."""
    sums = squares + queries.square().sum(1, keepdim=True)
    grain = (GRAIN * sums).clamp_min(torch.finfo(sums.dtype).tiny)
    return ((sums - 2 * queries @ points.T) / grain).round() * grain, grain
