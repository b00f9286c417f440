"""Weights of the neighbours of queries: cluster, affine hull, and rounds of sparse approximation.

Huang, Loy & Tang 2016, section III-A, for many queries at once. :func:`descend_weights` computes the same weights by
coordinate descent for the special case of the edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ldl.methods.dsna.clusters import FLOOR, in_front, label_factor, nearest_hull, overlapping_clusters, widest_gap
from ldl.methods.dsna.sparse import approximate
from ldl.methods.numba_kernels import add_row, compiled, dot, inlined


class NeighbourWeighting(NamedTuple):
    """Hyperparameters of the weights; see :class:`ldl.heads.DSNA`."""

    clusters: int
    overlap: float
    tau: float
    energy: float
    width: float
    sparsity: float
    attraction: float
    squared: bool
    rounds: int
    tolerance: float


def neighbour_weights(
    points: Tensor, codes: Tensor, real: Tensor, queries: Tensor, start: Tensor | None, rules: NeighbourWeighting,
    ordered: bool, settled: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the weights (B, m) of the neighbours, which sum to 1, and the estimates (B, c) of the queries' labels.

    Features and labels are relative to the mean of the chosen cluster: the difference of the sum of its weights from 1
    is shared equally among its members.

    Args:
        points: (B, m, F) neighbours; any numbers for padding.
        codes: (B, m, c) their labels, values or one-hot.
        real: (B, m), false for padding, whose weights are 0.
        queries: (B, F).
        start: (B, c) initial estimates; None is the mean of the cluster, or its most frequent label.
        rules: Hyperparameters.
        ordered: Whether codes are values instead of one-hot labels.
        settled: Rounds end when no code moves by more than this.
    """
    count, order = real.shape[1], None
    if rules.clusters > 1:
        members = overlapping_clusters(points, codes, real, rules.clusters, rules.overlap, rules.tau, ordered)
        chosen = nearest_hull(points, queries, members, rules.energy)
        order, real = in_front(members[torch.arange(len(members), device=chosen.device), chosen])
        points, codes = (tensor.take_along_dim(order.unsqueeze(2), 1) for tensor in (points, codes))
    weight = real.to(points)
    share = weight / weight.sum(1, keepdim=True)
    centre = (share.unsqueeze(1) @ points).squeeze(1)
    estimate = _settle((share.unsqueeze(1) @ codes).squeeze(1) if start is None else start.clone(), ordered)
    widest = widest_gap(codes, real)
    # The offsets are the only difference as large as the points.
    distances = torch.cdist(points, queries.unsqueeze(1), compute_mode="donot_use_mm_for_euclid_dist").squeeze(2)
    distances = distances / (distances * share).sum(1, keepdim=True).clamp_min(torch.finfo(distances.dtype).tiny)
    offsets = (points - centre.unsqueeze(1)).mul_(weight.unsqueeze(2))
    whole, open_ = share.clone(), torch.arange(len(queries), device=queries.device)
    for _ in range(rules.rounds):
        some = slice(None) if len(open_) == len(queries) else open_  # a slice does not copy the offsets
        gap = (codes[some] - estimate[some].unsqueeze(1)).norm(dim=2) * weight[some]
        aware = distances[some] * label_factor(gap, widest[some], rules.tau, ordered)
        anchors = (-aware / rules.width).masked_fill(~real[some], -torch.inf).softmax(1)
        weights = approximate(
            offsets[some], (queries - centre)[some], anchors, rules.sparsity, rules.attraction, rules.squared,
            rules.tolerance,
        ).weights  # fmt: skip
        whole[some] = weights + (1 - weights.sum(1, keepdim=True)) * share[some]
        now = _settle((whole[some].unsqueeze(1) @ codes[some]).squeeze(1), ordered)
        moved = ((now - estimate[some]).abs() > settled).any(1)
        estimate[some] = now
        open_ = open_[moved]
        if not len(open_):
            break
    return whole if order is None else whole.new_zeros(len(whole), count).scatter(1, order, whole), estimate


def _settle(codes: Tensor, ordered: bool) -> Tensor:
    """Return an estimate from a combination of codes: for labels without values, the largest one."""
    return codes if ordered else torch.nn.functional.one_hot(codes.argmax(1), codes.shape[1]).to(codes)


SWEEPS = 1000
"""Most sweeps over all coordinates."""


@compiled
def descend_weights(
    points: np.ndarray, codes: np.ndarray, near: np.ndarray, counts: np.ndarray, queries: np.ndarray, tau: float,
    width: float, sparsity: float, attraction: float, tolerance: float, weights: np.ndarray,
) -> None:  # fmt: skip
    """Compute the weights of each query's neighbours by coordinate descent, if one cluster holds all neighbours.

    They equal those of :func:`neighbour_weights` with one cluster, one round, labels with values and the squared norm.
    No problem is decomposed, and a sweep costs 4 m F operations. Both penalties are separable, so descent along the
    coordinates ends in the minimum (Tseng 2001). All arrays are float32.

    Args:
        points: (N, F) features of all rows.
        codes: (N, c) their labels.
        near: (B, m) int32, the neighbours of each query.
        counts: (B,) number of neighbours, at least 1; the others have the weight 0.
        queries: (B, F).
        tau: Trade-off of the label-aware distance.
        width: Width of the anchor.
        sparsity: Weight of the l1 norm.
        attraction: Weight of the distance to the anchor.
        tolerance: Sweeps end when no coordinate moves the fit by more than this share of the norm of the query.
        weights: (B, m), is filled with weights that sum to 1.
    """
    most, size = near.shape[1], points.shape[1]
    members, norms = np.empty((most, size), points.dtype), np.empty(most, points.dtype)
    anchors, residual = np.empty(most, points.dtype), np.empty(size, points.dtype)
    for b in range(len(near)):
        count, row_weights = counts[b], weights[b]
        row_weights[:] = 0
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
            row_weights[i] = anchors[i]
            add_row(residual, members[i], -row_weights[i])
        for _ in range(SWEEPS):
            moved = points.dtype.type(0)
            for i in range(count):
                if norms[i] <= 1e-12:
                    continue
                best = _shrink(
                    row_weights[i] + dot(members[i], residual) / norms[i], anchors[i], sparsity / norms[i],
                    attraction / norms[i],
                )  # fmt: skip
                change = points.dtype.type(best - row_weights[i])
                if change != 0:
                    add_row(residual, members[i], -change)
                    row_weights[i] += change
                    moved = max(moved, abs(change) * np.sqrt(norms[i]))
            if moved <= least:
                break
        lacking = (1 - row_weights[:count].sum()) / count
        for i in range(count):
            row_weights[i] += lacking


@inlined
def _anchor(
    points: np.ndarray, codes: np.ndarray, near: np.ndarray, query: np.ndarray, tau: float, width: float,
    anchors: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``anchors`` with the softmax of the negative label-aware distances (Eq. 2 and 5) for the mean label."""
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
    """Return argmin over z of sparsity |z| + attraction |z - anchor| + (z - x)^2 / 2 for an anchor of at least 0."""
    if x + sparsity + attraction < 0:
        return x + sparsity + attraction
    if x - sparsity - attraction > anchor:
        return x - sparsity - attraction
    return min(max(x - sparsity + attraction, 0.0), anchor)
