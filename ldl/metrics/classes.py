"""Measures of two classes: how often, and how surely, a distribution over two labels is right."""

from __future__ import annotations

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from ldl.metrics.measure import Measure


def right(prediction: Tensor, target: Tensor) -> Tensor:
    """Whether the label of most mass is the target's, 1 or 0; higher is better."""
    return (prediction.argmax(-1) == target.argmax(-1)).to(prediction.dtype)


def cross_entropy(prediction: Tensor, target: Tensor) -> Tensor:
    """-sum d ln g; in [0, inf], and infinite where a label that occurs was given no chance."""
    return -torch.where(target > 0, target * prediction.log(), 0.0).sum(-1)


class AUC(Metric):
    """Area under the ROC curve of the second label, of two; NaN where all rows are of one class or a prediction is NaN.

    ``update(prediction, target)`` takes (..., 2) twice; an instance is of the class of most mass.
    """

    full_state_update = False
    score: list[Tensor]
    label: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.add_state("score", [], dist_reduce_fx="cat")
        self.add_state("label", [], dist_reduce_fx="cat")

    def update(self, prediction: Tensor, target: Tensor) -> None:
        # The ratio tells apart what is all but certain.
        self.score.append((prediction[..., 1].log().double() - prediction[..., 0].log().double()).flatten())
        self.label.append(target.argmax(-1).flatten())

    def compute(self) -> Tensor:
        score, label = dim_zero_cat(self.score), dim_zero_cat(self.label)
        if len(label.unique()) < 2 or score.isnan().any():
            return score.new_tensor(torch.nan)
        limit = torch.finfo(score.dtype).max
        return score.new_tensor(roc_auc_score(label.cpu().numpy(), score.clamp(-limit, limit).cpu().numpy()))


CLASS_MEASURES = (
    Measure("accuracy", right, higher_is_better=True, of="class"),
    Measure("auc", AUC, higher_is_better=True, of="class"),
    Measure("nll", cross_entropy, of="class"),
)
