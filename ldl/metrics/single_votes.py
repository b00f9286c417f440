"""Metrics of single votes: how well a model predicts each vote, given who has voted.

They are the perspectivist metrics of LeWiDi 2025 (Leonardelli et al., arXiv 2510.08460), and the negative
log-likelihood of a vote. A model without raters predicts the votes of all raters by the one distribution of the item.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from ldl.labels import KL_FLOOR, LabelSpace
from ldl.metrics.metric import MeanOverRows, Metric

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


def _score(number: int, scores: Tensor) -> Tensor:
    return scores[:, number]


class MeanOfScore(MeanOverRows):
    """Mean of one of :data:`SCORES` over the items with votes, or over the votes.

    Attributes:
        score: Name of the score.
        by_votes: Whether each vote counts the same, and not each item.
    """

    score: ClassVar[str]
    by_votes: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__(partial(_score, SCORES.index(self.score)))

    def update(self, *compared: Tensor, weight: Tensor | None = None) -> None:
        """Add the scores (B, S) of :func:`score_votes`, and weights (B,) of the items."""
        votes = compared[0][:, 0]
        counted = votes if self.by_votes else (votes > 0).to(votes)
        super().update(*compared, weight=counted if weight is None else counted * weight)


class RaterNLL(MeanOfScore):
    """Mean negative log-likelihood of a vote, given its rater."""

    score, by_votes = "nll", True


class RaterError(MeanOfScore):
    """Mean over items of the share of votes that differ from the most probable label of their rater."""

    score = "error"


class RaterDistance(MeanOfScore):
    """Mean over items of the normalised absolute distance between votes and the median of their rater."""

    score = "distance"


def rater_metrics(labels: LabelSpace) -> list[Metric]:
    """Return ``rater_nll``, ``rater_error`` and, for ordinal labels, ``rater_distance``."""
    metrics = [Metric("rater_nll", RaterNLL, of="rater"), Metric("rater_error", RaterError, of="rater")]
    if labels.kind == "ordinal":
        metrics.append(Metric("rater_distance", RaterDistance, of="rater"))
    return metrics
