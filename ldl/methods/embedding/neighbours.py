"""Nearest neighbours, exactly, in parts that fit into memory."""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.methods.traced import traced

PART = 2**24
"""Distances that are held at a time."""


def nearest(queries: Tensor, points: Tensor, k: int, exclude_self: bool = False) -> Tensor:
    """Rows of the ``k`` nearest points of each query by Euclidean distance, nearest first: (B, k), int64.

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
    centre = points.mean(0)
    points, queries = points - centre, queries - centre
    squares = points.square().sum(1)
    if traced():
        return (squares - 2 * queries @ points.T).topk(k, largest=False).indices
    found = torch.empty(len(queries), k, dtype=torch.int64, device=points.device)
    step = max(1, PART // len(points))
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        distances = torch.addmm(squares, part, points.T, alpha=-2)
        if exclude_self:
            own = torch.arange(len(part), device=points.device)
            distances[own, own + start] = float("inf")
        found[start : start + step] = distances.topk(k, largest=False).indices
    return found
