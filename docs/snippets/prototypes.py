"""A distribution at every pixel: its neighbourhood as features, and a head of prototypes."""

import torch
from torch import Tensor, nn

from ldl.backbones.base import Backbone
from ldl.head import Head
from ldl.labels import LabelSpace
from ldl.options import option, options


class Neighbourhood(Backbone):
    """The colours of a pixel and of the eight around it, in [0, 1]."""

    gives_maps = True

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        return 9 * input_shape[0]

    def forward(self, inputs: Tensor) -> Tensor:
        return nn.functional.unfold(inputs / 255, 3, padding=1).unflatten(2, inputs.shape[-2:]).permute(0, 2, 3, 1)


@options
class Prototypes(Head):
    """Mixes the distributions of learned prototypes.

    Args:
        count: How many.
    """

    count: int = option(default=32, least=1)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.nearness = nn.Linear(in_features, self.count)
        self.logits = nn.Parameter(torch.randn(self.count, len(labels)))

    def forward(self, features: Tensor) -> Tensor:
        return (self.nearness(features).to(self.logits).softmax(-1)[..., None] * self.logits.softmax(-1)).sum(-2)
