"""A worked example of your own head: everything it takes is in this file."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ldl.errors import LDLError
from ldl.head import Head
from ldl.labels import LabelSpace
from ldl.options import option, options


@options
class Binomial(Head):
    """Binomial distribution over ordered labels: always one peak (Beckham & Pal 2017).

    Args:
        temperature: Sharpness of the peak: the log probabilities are divided by it, so 0.5 is sharper, 2 flatter.
    """

    temperature: float = option(default=1.0, above=0)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the layer for the success probability. Raises LDLError for labels without an order."""
        if labels.kind != "ordinal":
            raise LDLError(f"Binomial needs ordinal labels, not {labels.kind} ones; use Softmax or LDLF")
        super().build(in_features, labels)
        self.score = nn.Linear(in_features, 1)
        successes = torch.arange(len(labels), dtype=torch.float64)
        trials = torch.tensor(len(labels) - 1, dtype=torch.float64)
        choose = torch.lgamma(trials + 1) - torch.lgamma(successes + 1) - torch.lgamma(trials - successes + 1)
        self.register_buffer("successes", successes.float())
        self.register_buffer("log_choose", choose.float())

    def forward(self, features: Tensor) -> Tensor:
        """Features (..., F) to distributions (..., C)."""
        score = self.score(features)
        with torch.autocast(features.device.type, enabled=False):
            score = score.to(torch.promote_types(score.dtype, torch.float32))
            # log C(n, k) + k log p + (n - k) log(1 - p), with p = sigmoid(score).
            log_p = self.log_choose + self.successes * score - (len(self.labels) - 1) * nn.functional.softplus(score)
            return torch.softmax(log_p / self.temperature, dim=-1)
