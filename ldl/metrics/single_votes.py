"""Metrics of single votes: how well a model predicts each vote, given who has voted.

They are the perspectivist metrics of LeWiDi 2025 (Leonardelli et al., arXiv 2510.08460), and the negative
log-likelihood of a vote. A model without raters predicts the votes of all raters by the one distribution of the item.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.labels import KL_FLOOR, LabelSpace

SCORES = ("votes", "nll", "error", "distance")
"""Columns of :func:`score_votes`."""


def score_votes(prediction: Tensor, vote: Tensor, labels: LabelSpace) -> Tensor:
    """Return the scores (B, S) of the votes on each item, float64, in the order of :data:`SCORES`.

    The first is the number of votes. The others are means over these votes, and 0 for an item without votes: -ln of the
    probability of the vote, at least 1e-12; the share of votes for another label than the most probable one; and for
    ordinal labels the absolute difference between the vote and the median of the prediction as a share of the range of
    the labels, in [0, 1].

    Args:
        prediction: (B, V, C) distribution that is predicted for each vote, or (B, 1, C) for all votes on an item.
        vote: (B, V) numbers of the labels; -1 is no vote.
        labels: The label space.
    """
    present, label = vote >= 0, vote.clamp_min(0)
    likelihood = prediction.expand(*vote.shape, -1).gather(-1, label.unsqueeze(-1)).squeeze(-1)
    scores = [-likelihood.double().clamp_min(KL_FLOOR).log(), (prediction.argmax(-1) != label).double()]
    if labels.kind == "ordinal":
        axis = torch.tensor(labels.axes[0], dtype=torch.float64, device=vote.device)
        median = labels.decode(prediction.double(), "median")
        scores.append((axis[label] - median).abs() / (axis[-1] - axis[0] if len(axis) > 1 else 1.0))
    votes = present.sum(1).double()
    means = [torch.where(present, score, 0.0).sum(1) / votes.clamp_min(1) for score in scores]
    return torch.stack([votes, *means], 1)
