"""Nearest neighbours, exactly, in parts that fit into memory."""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.methods.traced import traced

PART = 2**24
"""Distances that are held at a time."""
GRAIN = 2.0**-30
"""Squared distances that differ by less, as a share of the squared norms of both, are equal."""


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
        return _nearest(queries, points, k, exclude_self)


def _nearest(queries: Tensor, points: Tensor, k: int, exclude_self: bool) -> Tensor:
    # Distances are computed from dot products, whose rounding grows with the distance from the origin.
    points, queries = points.double(), queries.double()
    centre = points.mean(0)
    points, queries = points - centre, queries - centre
    squares = points.square().sum(1)
    if traced():
        return _distances(queries, points, squares).topk(k, largest=False).indices
    found = torch.empty(len(queries), k, dtype=torch.int64, device=points.device)
    step = max(1, PART // len(points))
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        distances = _distances(part, points, squares)
        if exclude_self:
            own = torch.arange(len(part), device=points.device)
            distances[own, own + start] = float("inf")
        found[start : start + step] = distances.topk(k, largest=False).indices
    return found


def _distances(queries: Tensor, points: Tensor, squares: Tensor) -> Tensor:
    """Squared distances (B, N), without the digits that rounding may change: it depends on the shape of a product."""
    sums = squares + queries.square().sum(1, keepdim=True)
    grain = (GRAIN * sums).clamp_min(torch.finfo(sums.dtype).tiny)
    return ((sums - 2 * queries @ points.T) / grain).round() * grain
