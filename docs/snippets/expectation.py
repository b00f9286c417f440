"""A softmax with a loss of its own: the KL divergence, and the squared error of the expected label."""

from typing import Any

import torch
from torch import Tensor

from ldl.heads import Softmax
from ldl.metrics.functional import kl, mean_of
from ldl.options import option, options


@options
class Expectation(Softmax):
    """A softmax that also learns the expectation of ordered labels.

    Args:
        strength: Weight of the squared error of the expectation, in steps between labels.
    """

    strength: float = option(default=0.1, least=0)

    def loss(
        self, features: Tensor, target: Tensor, value: Tensor | None = None, weight: Tensor | None = None, **extra: Any
    ) -> dict[str, Tensor]:
        prediction = self(features)
        steps = torch.arange(target.shape[-1], dtype=prediction.dtype, device=prediction.device)
        error = ((prediction - target.to(prediction)) @ steps) ** 2
        losses = {"loss_kl": kl(prediction, target), "loss_expectation": self.strength * error}
        means = {name: mean_of(rows, weight) for name, rows in losses.items()}
        return {"loss": means["loss_kl"] + means["loss_expectation"], **means}
