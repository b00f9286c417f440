"""Label-aware overlapping clusters of neighbours, and the affine hull that fits a query best.

Huang, Loy & Tang 2016, section III-A. Everything is for B queries at once, whose m neighbours are filled up with rows
that are not ``real``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.methods.dsna.neighbourhood import in_front
from ldl.methods.spectrum import eigh

ROUNDS = 10
"""At most so many rounds of k-means; few clusterings need more than five."""
ROUNDING = 1e-9
"""Distances that differ by this share are equal: rounding depends on which queries are asked together."""
FLOOR = 0.05
"""Keeps the reciprocal of the label distance from growing without bounds, as a share of the largest gap."""


def label_factor(gap: Tensor, widest: Tensor, tau: float, ordered: bool) -> Tensor:
    """What the distance of features is multiplied by (Eq. 2).

    Where labels have values, that is are ``ordered``, g(gap) = tau gap / (widest - gap + floor), with ``widest`` the
    largest gap *between labels* of the neighbourhood (the largest label itself, as printed, makes g negative for
    angles). Else 1 where labels differ. ``gap``, distances of labels, has any shape, ``widest`` one that broadcasts.
    """
    if not ordered:
        return (gap > 0).to(gap)
    # A query's label may lie outside of its neighbours'.
    widest = torch.maximum(widest, gap.amax(1, keepdim=True)).clamp_min(torch.finfo(gap.dtype).eps)
    return tau * gap / (widest - gap + FLOOR * widest)


def widest_gap(codes: Tensor, real: Tensor) -> Tensor:
    """The largest extent (B, 1) of the codes (B, m, c) along an axis."""
    high = codes.masked_fill(~real.unsqueeze(2), -torch.inf).amax(1)
    low = codes.masked_fill(~real.unsqueeze(2), torch.inf).amin(1)
    return (high - low).amax(1, keepdim=True)


def overlapping_clusters(
    points: Tensor, codes: Tensor, real: Tensor, clusters: int, overlap: float, tau: float, ordered: bool
) -> Tensor:
    """Members (B, clusters, m), bool, of k-means under the label-aware distance.

    The first clusters are equal parts of the neighbours in the order of their labels (along the principal axis of
    the codes). A neighbour joins every centroid whose distance is at most 1 + ``overlap`` times the least. The label of
    a centroid is its members' mean, or the most frequent one. A cluster that lost all members keeps its last ones.

    ``points`` (B, m, F) have the ``codes`` (B, m, c), values where they are ``ordered``, else one-hot labels; ``real``
    (B, m) says which there are. ``overlap`` is at least 0, ``tau`` as in :func:`label_factor`.
    """
    weight = real.to(points)
    centred = (codes - (weight.unsqueeze(1) @ codes) / weight.sum(1)[:, None, None]) * weight.unsqueeze(2)
    axis = eigh(centred.mT @ centred)[1][..., -1:]
    place = (centred @ axis).squeeze(2).masked_fill(~real, torch.inf).argsort(dim=1, stable=True).argsort(dim=1)
    part = place * clusters // real.sum(1, keepdim=True)
    members = (part.unsqueeze(1) == torch.arange(clusters, device=part.device)[:, None]) & real.unsqueeze(1)
    widest = widest_gap(codes, real).unsqueeze(2)
    for _ in range(ROUNDS):
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
    """Which cluster's affine hull (Eq. 3) is nearest to the query, of equally near ones the first: (B,), int64.

    A hull keeps the principal directions of its members that carry the share ``energy``, in (0, 1], of their variance:
    with all of them, a hull of more members than dimensions would leave no distance. ``points`` are (B, m, F),
    ``queries`` (B, F), ``members`` (B, K, m) bool.
    """
    distances, offsets = [], []
    for k in range(members.shape[1]):
        # The spectrum takes the cube of the rows: those of other clusters stay outside.
        order, inside = in_front(members[:, k])
        weight = inside.to(points).unsqueeze(2)
        some = points.take_along_dim(order.unsqueeze(2), 1)
        # A neighbourhood of fewer rows than clusters leaves some empty.
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
    found = torch.stack(distances, 1).masked_fill(empty, torch.inf)
    # A distance is a difference, and as uncertain as what it is taken from.
    rounding = ROUNDING * torch.stack(offsets, 1).masked_fill(empty, 0.0).amax(1, keepdim=True)
    return (found <= found.amin(1, keepdim=True) + rounding).int().argmax(1)
