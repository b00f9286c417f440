"""Proportional odds (McCullagh 1980): one score, and rising thresholds between ordered labels."""

import torch
from torch import Tensor, nn

from ldl.errors import LDLError
from ldl.head import Head
from ldl.labels import LabelSpace
from ldl.options import options


@options
class ProportionalOdds(Head):
    """P(label <= k) = sigmoid(threshold_k - score): few parameters, for few rows.

    Args:
        hidden: Width of a hidden layer before the score; 0 for none.
    """

    hidden: int = 0

    def build(self, in_features: int, labels: LabelSpace) -> None:
        if labels.kind != "ordinal" or len(labels) < 2:
            found = f"{len(labels)} {labels.kind}"
            raise LDLError(f"ProportionalOdds needs ordinal labels, two at least, not {found}; use Softmax")
        super().build(in_features, labels)
        layers = [nn.Linear(in_features, self.hidden), nn.ReLU()] if self.hidden else []
        self.score = nn.Sequential(*layers, nn.Linear(self.hidden or in_features, 1))
        self.first = nn.Parameter(torch.tensor(-2.0))
        self.gaps = nn.Parameter(torch.zeros(len(labels) - 2))

    def forward(self, features: Tensor) -> Tensor:
        score = self.score(features)
        with torch.autocast(features.device.type, enabled=False):
            score = score.to(torch.promote_types(score.dtype, torch.float32))
            steps = nn.functional.softplus(self.gaps).to(score).cumsum(0)
            thresholds = torch.cat([self.first.to(score)[None], self.first.to(score) + steps])
            below = torch.sigmoid(thresholds - score)
            edges = nn.functional.pad(nn.functional.pad(below, (0, 1), value=1.0), (1, 0))
            return edges.diff(dim=-1)
