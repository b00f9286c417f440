"""The weights of a query's neighbours: cluster, affine hull, and rounds of sparse approximation.

Huang, Loy & Tang 2016, section III-A, for many queries at once.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ldl.methods.dsna.clusters import label_factor, nearest_hull, overlapping_clusters, widest_gap
from ldl.methods.dsna.neighbourhood import in_front
from ldl.methods.dsna.sparse import approximate


class Rules(NamedTuple):
    """How neighbours are weighted; the names are explained by :class:`ldl.heads.DSNA`."""

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
    points: Tensor,
    codes: Tensor,
    real: Tensor,
    queries: Tensor,
    start: Tensor | None,
    rules: Rules,
    ordered: bool,
    settled: float,
) -> tuple[Tensor, Tensor]:
    """Weights (B, m) of the neighbours, which sum to 1, and the estimates (B, c) of the queries' labels.

    Features and labels are counted from the mean of the chosen cluster: what its members' weights lack to 1 is shared
    equally among them.

    Args:
        points: (B, m, F) neighbours; any numbers where they are filled up.
        codes: (B, m, c) their labels, values or one-hot.
        real: (B, m), false where neighbours are filled up; their weights are 0.
        queries: (B, F).
        start: (B, c) first estimates; None takes the cluster's mean, or the most frequent label.
        rules: The parameters.
        ordered: Whether codes are values, not one-hot.
        settled: Rounds end when no code moves by more than this.
    """
    count, order = real.shape[1], None
    if rules.clusters > 1:
        members = overlapping_clusters(points, codes, real, rules.clusters, rules.overlap, rules.tau, ordered)
        chosen = nearest_hull(points, queries, members, rules.energy)
        order, real = in_front(members[torch.arange(len(members), device=chosen.device), chosen])
        points, codes = (part.take_along_dim(order.unsqueeze(2), 1) for part in (points, codes))
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
        some = slice(None) if len(open_) == len(queries) else open_  # which needs no copy of the offsets
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
    """An estimate from a combination of codes: labels without values are decided for one."""
    return codes if ordered else torch.nn.functional.one_hot(codes.argmax(1), codes.shape[1]).to(codes)
