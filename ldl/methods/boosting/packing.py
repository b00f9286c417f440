"""Bags as tensors, (B, J, F) with missing instances NaN, and as instances one after another."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError
from ldl.methods.boosting.likelihood import Bags
from ldl.methods.rows import check_finite, check_targets


def present(features: Tensor) -> Tensor:
    """Which instances exist, (..., J), of features (..., J, F): a missing one has nothing but NaN."""
    return ~features.isnan().all(-1)


def pack(name: str, features: Tensor, target: Tensor, prior: float | None) -> Bags:
    """Training bags of the head ``name``, checked.

    Args:
        name: The head.
        features: (B, J, F).
        target: (B, 2), negative and positive, on the simplex.
        prior: Weight of positive against negative bags, in (0, 1); None takes the data's.

    Raises:
        LDLError: no bags, an empty bag, bags of one class, a feature that is not finite, or a target off the simplex.
    """
    if features.ndim != 3 or not len(features) or target.shape != (len(features), 2):
        raise LDLError(
            f"{name} is fitted on bags (B, J, F) and labels (B, 2), B at least 1, "
            f"got {tuple(features.shape)} and {tuple(target.shape)}"
        )
    exists = present(features)
    counts = exists.sum(1).cpu().numpy()
    if not counts.all():
        raise LDLError(f"{name} cannot be fitted: training bag {int(counts.argmin())} has no instances; leave it out")
    rows = features[exists].float()
    check_finite(f"{name} cannot take", rows)
    check_targets(name, target)
    mass = target.double().cpu().numpy() / len(target)
    shares = mass.sum(0)
    if not shares.all():
        only = "negative" if shares[1] == 0 else "positive"
        raise LDLError(f"{name} cannot be fitted: all {len(target)} training bags are {only}; both kinds are needed")
    if prior is not None:
        mass = mass / shares * (1 - prior, prior)
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int64)
    negative, positive = np.ascontiguousarray(mass.T)
    return Bags(np.ascontiguousarray(rows.cpu().numpy()), starts, positive, negative)


def choose(bags: Bags, chosen: np.ndarray) -> Bags:
    """The bags with the numbers ``chosen``; their weights stay."""
    spans = [np.arange(bags.starts[i], bags.starts[i + 1]) for i in chosen]
    starts = np.concatenate([[0], np.cumsum([len(span) for span in spans])]).astype(np.int64)
    return Bags(bags.rows[np.concatenate(spans)], starts, bags.positive[chosen], bags.negative[chosen])


def flat_scores(
    rows: Tensor, feature: Tensor, threshold: Tensor, low: Tensor, high: Tensor, group: Tensor, groups: int
) -> Tensor:
    """Sums of the stumps' outputs by group, (N, K), of rows (N, F).

    Raises LDLError where a stump asks for a feature that is NaN.
    """
    asked = rows[:, feature]
    if bool(asked.isnan().any()):
        raise LDLError("boosted stumps ask for a feature that is NaN; fill missing features first")
    outputs = torch.where(asked > threshold, high, low)
    return outputs.new_zeros(len(rows), groups).index_add_(1, group, outputs)


def scores_or_nan(
    rows: Tensor, feature: Tensor, threshold: Tensor, low: Tensor, high: Tensor, group: Tensor, groups: int
) -> Tensor:
    """:func:`flat_scores` of rows (..., F) for a graph, (..., K): a row is NaN where a stump asks for a NaN."""
    asked = rows.index_select(-1, feature)
    outputs = torch.where(asked.isnan(), torch.nan, torch.where(asked > threshold, high, low))
    return outputs @ torch.nn.functional.one_hot(group, groups).to(outputs)
