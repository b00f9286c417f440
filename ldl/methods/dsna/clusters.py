"""Neighbours of queries, their label-aware overlapping clusters, and the affine hull that fits a query best.

Huang, Loy & Tang 2016, section III-A, for B queries at once. The neighbours of a query are padded to the largest number
m; ``real`` marks the others.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ldl.methods.forest.oblique import ObliqueForest
from ldl.methods.torch_utils import eigh


class Neighbourhood(NamedTuple):
    """The neighbours of B queries, padded to the largest number m.

    Attributes:
        rows: (B, m) int64, training rows, rising; 0 for padding.
        real: (B, m) bool, false for padding.
    """

    rows: Tensor
    real: Tensor


def gather_leaves(forest: ObliqueForest, leaves: Tensor) -> Neighbourhood:
    """Return the union of the training rows in the leaves (B, T) of each query (Huang et al. 2016, section III-B)."""
    ends = forest.sizes.long().cumsum(0)
    sizes = forest.sizes.long()[leaves]
    starts = (ends - forest.sizes.long())[leaves]
    longest = int(sizes.max()) if sizes.numel() else 0
    position = torch.arange(longest, device=leaves.device)
    inside = position < sizes.unsqueeze(2)
    # Padding repeats the first row of its leaf, and repetitions are removed below.
    rows = forest.rows.long()[starts.unsqueeze(2) + torch.where(inside, position, 0)].flatten(1).sort(1).values
    first = torch.ones_like(rows, dtype=torch.bool)
    first[:, 1:] = rows[:, 1:] != rows[:, :-1]
    order, real = in_front(first)
    return Neighbourhood(torch.where(real, rows.gather(1, order), 0), real)


def in_front(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Return the columns of the ``chosen`` entries (B, m) bool of each row, rising, and which of them are not padding.

    Both are (B, k) with the largest number k of chosen entries in a row.
    """
    most = int(chosen.sum(1).max()) if len(chosen) else 0
    order = (~chosen).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
    return order, chosen.gather(1, order)


K_MEANS_ROUNDS = 10
"""Most rounds of k-means; few clusterings need more than five."""
ROUNDING = 1e-9
"""Relative difference below which distances are equal, as rounding depends on which queries are solved together."""
FLOOR = 0.05
"""Added to the divisor of the label factor as a share of the largest gap, so that it stays bounded."""


def label_factor(gap: Tensor, widest: Tensor, tau: float, ordered: bool) -> Tensor:
    """Return the factor of the distance of features (Eq. 2).

    If labels have values (``ordered``), g(gap) = tau gap / (widest - gap + floor) with the largest gap ``widest``
    *between labels* of the neighbourhood; the largest label itself, as printed, makes g negative for angles. Else the
    factor is 1 for different labels and 0 for equal ones. ``gap``, distances of labels, and ``widest`` broadcast.
    """
    if not ordered:
        return (gap > 0).to(gap)
    # The label of a query may lie outside of the range of its neighbours.
    widest = torch.maximum(widest, gap.amax(1, keepdim=True)).clamp_min(torch.finfo(gap.dtype).eps)
    return tau * gap / (widest - gap + FLOOR * widest)


def widest_gap(codes: Tensor, real: Tensor) -> Tensor:
    """Return the largest range (B, 1) of the codes (B, m, c) along an axis."""
    high = codes.masked_fill(~real.unsqueeze(2), -torch.inf).amax(1)
    low = codes.masked_fill(~real.unsqueeze(2), torch.inf).amin(1)
    return (high - low).amax(1, keepdim=True)


def overlapping_clusters(
    points: Tensor, codes: Tensor, real: Tensor, clusters: int, overlap: float, tau: float, ordered: bool
) -> Tensor:
    """Cluster neighbours by k-means with the label-aware distance.

    The initial clusters are equal parts of the neighbours in the order of their labels (along the principal axis of the
    codes). A neighbour joins every centroid within 1 + ``overlap`` times its least distance. The label of a centroid is
    the mean of its members, or the most frequent label. A cluster that loses all members keeps its last ones.

    Args:
        points: (B, m, F).
        codes: (B, m, c), values if ``ordered``, else one-hot labels.
        real: (B, m), false for padding.
        clusters: Number of clusters.
        overlap: At least 0.
        tau: See :func:`label_factor`.
        ordered: Whether codes are values.

    Returns:
        Members (B, clusters, m), bool.
    """
    weight = real.to(points)
    centred = (codes - (weight.unsqueeze(1) @ codes) / weight.sum(1)[:, None, None]) * weight.unsqueeze(2)
    axis = eigh(centred.mT @ centred)[1][..., -1:]
    rank = (centred @ axis).squeeze(2).masked_fill(~real, torch.inf).argsort(dim=1, stable=True).argsort(dim=1)
    cluster = rank * clusters // real.sum(1, keepdim=True)
    members = (cluster.unsqueeze(1) == torch.arange(clusters, device=cluster.device)[:, None]) & real.unsqueeze(1)
    widest = widest_gap(codes, real).unsqueeze(2)
    for _ in range(K_MEANS_ROUNDS):
        share = members.to(points) / members.sum(2, keepdim=True).clamp_min(1)
        centres, labels = share @ points, share @ codes
        if not ordered:
            counts = members.to(codes) @ codes
            labels = torch.nn.functional.one_hot(counts.argmax(2), codes.shape[2]).to(codes)
        distances = torch.cdist(points, centres, compute_mode="donot_use_mm_for_euclid_dist")
        distances = distances * label_factor(torch.cdist(codes, labels), widest, tau, ordered)
        most = (1 + overlap) * (1 + ROUNDING) * distances.amin(2, keepdim=True)
        joined = (distances <= most).mT & real.unsqueeze(1)
        joined = torch.where(joined.any(2, keepdim=True), joined, members)
        if torch.equal(joined, members):
            break
        members = joined
    return members


def nearest_hull(points: Tensor, queries: Tensor, members: Tensor, energy: float) -> Tensor:
    """Return the cluster with the nearest affine hull (Eq. 3), of equally near ones the first: (B,), int64.

    A hull keeps the principal directions of its members that carry the share ``energy``, in (0, 1], of their variance.
    With all directions, the distance to a hull of more members than dimensions would be 0. ``points`` are (B, m, F),
    ``queries`` (B, F), ``members`` (B, K, m) bool.
    """
    distances, offsets = [], []
    for k in range(members.shape[1]):
        # The eigenvectors cost the cube of the rows, so rows of other clusters are removed.
        order, inside = in_front(members[:, k])
        weight = inside.to(points).unsqueeze(2)
        some = points.take_along_dim(order.unsqueeze(2), 1)
        # With fewer rows than clusters, some clusters are empty.
        mean = weight.mT @ some / weight.sum(1, keepdim=True).clamp_min(1)
        centred = some.sub_(mean).mul_(weight)
        offset = queries - mean.squeeze(1)
        wide = centred.shape[1] > centred.shape[2]
        squares, vectors = eigh(centred.mT @ centred if wide else centred @ centred.mT)
        squares = squares.clamp_min(0).flip(1)
        before = squares.cumsum(1) - squares
        kept = (before < energy * squares.sum(1, keepdim=True)) & (squares > 1e-12 * squares[:, :1])
        if wide:
            along = (offset.unsqueeze(1) @ vectors).squeeze(1).flip(1).square()
        else:
            inner = ((centred @ offset.unsqueeze(2)).mT @ vectors).squeeze(1).flip(1)
            along = inner.square() / squares.clamp_min(torch.finfo(squares.dtype).tiny)
        offsets.append(offset.square().sum(1))
        distances.append(offsets[k] - torch.where(kept, along, 0.0).sum(1))
    empty = ~members.any(2)
    distance = torch.stack(distances, 1).masked_fill(empty, torch.inf)
    # A distance is a difference, and as uncertain as its terms.
    rounding = ROUNDING * torch.stack(offsets, 1).masked_fill(empty, 0.0).amax(1, keepdim=True)
    return (distance <= distance.amin(1, keepdim=True) + rounding).int().argmax(1)


def onto_simplex(rows: Tensor) -> Tensor:
    """Project rows (B, C) onto the simplex by Euclidean distance (Duchi et al. 2008, Figure 1)."""
    descending = rows.sort(dim=1, descending=True).values
    surplus = descending.cumsum(1) - 1
    count = torch.arange(1, rows.shape[1] + 1, device=rows.device, dtype=rows.dtype)
    kept = (descending * count > surplus).sum(1, keepdim=True)
    kept = kept.clamp_min(1)  # a row of NaN stays one
    return (rows - surplus.gather(1, kept - 1) / kept).clamp_min(0)
