"""Pure functions from the distribution of an item, and the parameters of a rater, to the distribution of a vote.

Every function takes ``log_p`` (..., N, C), the logarithms of N distributions, and ``theta`` (..., P), the parameters of
one rater for all N of them, and returns the logarithms of the rater's distributions (..., N, C).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from ldl.labels import LabelSpace

DIAGONAL = 3.0
"""Logits on the diagonal of the mean rater's confusion matrix at the start of training; the others are 0."""
SHIFT, SCALE, BIAS = 1.5, 0.5, 0.7
"""Factors of the parameters of ordinal labels, which are all shrunk alike: thresholds differ more than their scale."""
LEAST_LOG = -80.0
"""Smallest logarithm of a probability in cumulative logits: smaller ones would become subnormal in float32."""


class Transform(NamedTuple):
    """One kind of model of a rater.

    Attributes:
        apply: The function from ``log_p`` and ``theta`` to the logarithms of the rater's distributions.
        start: Returns the parameters (P,) of the mean rater before training, from the number of labels.
        posterior: Returns the distributions (..., N, C) of the item's label after ``vote`` (...), from ``log_p``,
            ``theta`` and ``vote``; None if the model has no such label.
    """

    apply: Callable[[Tensor, Tensor], Tensor]
    start: Callable[[int], Tensor]
    posterior: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None


def shift_logits(log_p: Tensor, theta: Tensor) -> Tensor:
    """Add a bias per label: softmax(log p + b), with theta = b (..., C)."""
    return (log_p + theta.unsqueeze(-2)).log_softmax(-1)


def shift_thresholds(log_p: Tensor, theta: Tensor) -> Tensor:
    """Add a bias per label, then shift and scale the cumulative logits: sigmoid(exp(a) logit F(k) + t).

    F is the cumulative distribution of softmax(log p + ``BIAS`` b), t = ``SHIFT`` d and a = ``SCALE`` c, with theta =
    (d, c, b) (..., 2 + C). A positive d moves mass to lower labels, and a positive c sharpens the distribution. The
    parameters 0 leave it unchanged.
    """
    shift, log_scale, bias = theta.unsqueeze(-2).tensor_split((1, 2), -1)
    log_p = (log_p + BIAS * bias).log_softmax(-1).clamp_min(LEAST_LOG)
    shift, scale = SHIFT * shift, (SCALE * log_scale).exp()
    p = log_p.exp()
    below = p.cumsum(-1)[..., :-1].log()
    above = p.flip(-1).cumsum(-1).flip(-1)[..., 1:].log()
    logits = scale * (below - above) + shift
    # The difference of two logits, log(1 + p(k) / (F(k-1) (1 - F(k)))), without cancellation.
    gaps = scale * softplus(log_p[..., 1:-1] - below[..., :-1] - above[..., 1:])
    # sigmoid(u) - sigmoid(v) = sigmoid(u) sigmoid(-v) (1 - exp(v - u)).
    middle = logsigmoid(logits[..., 1:]) + logsigmoid(-logits[..., :-1]) + (-torch.expm1(-gaps)).log()
    return torch.cat([logsigmoid(logits[..., :1]), middle, logsigmoid(-logits[..., -1:])], -1)


def confuse(log_p: Tensor, theta: Tensor) -> Tensor:
    """Multiply by a confusion matrix: p M, where M is the row-wise softmax of A + 1 b^T (Rodrigues & Pereira 2018).

    theta = (A, b) (..., C * C + C). The bias b per column, which is not in the paper, lets a rater with few votes
    differ from the others by C numbers.
    """
    mixed = log_p.exp() @ _log_confusion(theta, log_p.shape[-1]).exp()
    return mixed.clamp_min(torch.finfo(mixed.dtype).tiny).log()


def confused_posterior(log_p: Tensor, theta: Tensor, vote: Tensor) -> Tensor:
    """Return the distribution of the item's label after a vote: proportional to p(c) M(c, vote)."""
    matrix = _log_confusion(theta, log_p.shape[-1])
    column = vote[..., None, None].expand(*matrix.shape[:-1], 1)
    likelihood = matrix.gather(-1, column).squeeze(-1)
    return (log_p + likelihood.unsqueeze(-2)).softmax(-1)


def _log_confusion(theta: Tensor, labels: int) -> Tensor:
    """Return the logarithms of confusion matrices (..., C, C), rows by the label of the item."""
    matrix, bias = theta.split((labels * labels, labels), -1)
    return (matrix.unflatten(-1, (labels, labels)) + bias.unsqueeze(-2)).log_softmax(-1)


def _near_identity(labels: int) -> Tensor:
    """Return (A, b) of the mean rater with ``DIAGONAL`` on the diagonal of A."""
    return torch.cat([(DIAGONAL * torch.eye(labels)).flatten(), torch.zeros(labels)])


TRANSFORMS = {
    "bias": Transform(shift_logits, torch.zeros),
    "bias of ordinal labels": Transform(shift_thresholds, lambda labels: torch.zeros(2 + labels)),
    "confusion": Transform(confuse, _near_identity, confused_posterior),
}
"""The kinds of models; ordinal labels of two or more have a bias of their own."""


def find_transform(kind: str, labels: LabelSpace) -> Transform:
    """Return the transform of ``kind``, ``bias`` or ``confusion``, for these labels."""
    is_ordinal = kind == "bias" and labels.kind == "ordinal" and len(labels) > 1
    return TRANSFORMS["bias of ordinal labels" if is_ordinal else kind]
