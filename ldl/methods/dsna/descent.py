"""DSNA's weights of many queries by coordinate descent, where one cluster holds all neighbours.

The same weights as :func:`ldl.methods.dsna.weights.neighbour_weights` with one cluster, one round, labels that are
values and the squared norm: no problem is decomposed, and a sweep costs 4 m F operations. Both penalties are separable,
so that descent along the coordinates ends in the minimum (Tseng 2001).
"""

from __future__ import annotations

import numpy as np

from ldl.methods.dsna.clusters import FLOOR
from ldl.methods.forest.compiled import compiled, inlined
from ldl.methods.forest.vectors import add_row, dot

SWEEPS = 1000
"""Sweeps over all coordinates, at most."""


@compiled
def descend_weights(
    points: np.ndarray,
    codes: np.ndarray,
    near: np.ndarray,
    counts: np.ndarray,
    queries: np.ndarray,
    tau: float,
    width: float,
    sparsity: float,
    attraction: float,
    tolerance: float,
    weights: np.ndarray,
) -> None:
    """Fill in ``weights`` (B, m) of each query's neighbours, which sum to 1; float32 as the others.

    Args:
        points: (N, F) features of all rows.
        codes: (N, c) their labels.
        near: (B, m) int32, the rows that are a query's neighbours.
        counts: (B,) how many there are, at least 1; the others have the weight 0.
        queries: (B, F).
        tau: As the next three, of :class:`ldl.methods.dsna.weights.Rules`.
        width: Falls off the anchor.
        sparsity: Weight of the l1 norm.
        attraction: Weight of the distance to the anchor.
        tolerance: Sweeps end when no coordinate moves the fit by more, as a share of the query's norm.
        weights: The result.
    """
    most, size = near.shape[1], points.shape[1]
    members, norms = np.empty((most, size), points.dtype), np.empty(most, points.dtype)
    anchors, residual = np.empty(most, points.dtype), np.empty(size, points.dtype)
    for b in range(len(near)):
        count, own = counts[b], weights[b]
        own[:] = 0
        _anchor(points, codes, near[b, :count], queries[b], tau, width, anchors)
        residual[:] = 0
        for i in range(count):
            members[i] = points[near[b, i]]
            add_row(residual, members[i], points.dtype.type(1 / count))
        centre = residual.copy()
        residual[:] = queries[b] - centre
        least = tolerance * np.sqrt(dot(residual, residual))
        for i in range(count):
            members[i] -= centre
            norms[i] = dot(members[i], members[i])
            own[i] = anchors[i]
            add_row(residual, members[i], -own[i])
        for _ in range(SWEEPS):
            moved = points.dtype.type(0)
            for i in range(count):
                if norms[i] <= 1e-12:
                    continue
                best = _shrink(
                    own[i] + dot(members[i], residual) / norms[i], anchors[i], sparsity / norms[i],
                    attraction / norms[i],
                )  # fmt: skip
                change = points.dtype.type(best - own[i])
                if change != 0:
                    add_row(residual, members[i], -change)
                    own[i] += change
                    moved = max(moved, abs(change) * np.sqrt(norms[i]))
            if moved <= least:
                break
        lacking = (1 - own[:count].sum()) / count
        for i in range(count):
            own[i] += lacking


@inlined
def _anchor(
    points: np.ndarray, codes: np.ndarray, near: np.ndarray, query: np.ndarray, tau: float, width: float,
    anchors: np.ndarray,
) -> None:  # fmt: skip
    """Fill in the softmax of minus the label-aware distances (Eq. 2 and 5) for the estimate of the mean label."""
    count, widest = len(near), 0.0
    estimate = np.zeros(codes.shape[1], np.float64)
    for c in range(codes.shape[1]):
        low, high = codes[near[0], c], codes[near[0], c]
        for i in range(count):
            value = codes[near[i], c]
            low, high = min(low, value), max(high, value)
            estimate[c] += value / count
        widest = max(widest, np.float64(high - low))
    mean = 0.0
    for i in range(count):
        away = 0.0
        for f in range(len(query)):
            away += (points[near[i], f] - query[f]) ** 2
        anchors[i] = np.sqrt(away)
        mean += anchors[i] / count
    gaps = np.empty(count)
    for i in range(count):
        gap = 0.0
        for c in range(codes.shape[1]):
            gap += (codes[near[i], c] - estimate[c]) ** 2
        gaps[i] = np.sqrt(gap)
    widest = max(widest, gaps.max(), 1e-7)
    closest = np.inf
    for i in range(count):
        factor = tau * gaps[i] / (widest - gaps[i] + FLOOR * widest)
        gaps[i] = factor * anchors[i] / max(mean, 1e-30) / width
        closest = min(closest, gaps[i])
    total = 0.0
    for i in range(count):
        gaps[i] = np.exp(closest - gaps[i])
        total += gaps[i]
    for i in range(count):
        anchors[i] = gaps[i] / total


@inlined
def _shrink(x: float, anchor: float, sparsity: float, attraction: float) -> float:
    """argmin over z of sparsity |z| + attraction |z - anchor| + (z - x)^2 / 2, where the anchor is at least 0."""
    if x + sparsity + attraction < 0:
        return x + sparsity + attraction
    if x - sparsity - attraction > anchor:
        return x - sparsity - attraction
    return min(max(x - sparsity + attraction, 0.0), anchor)
