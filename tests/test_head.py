"""What the base classes of heads promise."""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.labels import LabelSpace


class Twins(FittedHead):
    """Two buffers that are one tensor until fitted."""

    first: Tensor
    second: Tensor

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.register_buffer("first", torch.zeros(1, len(labels)))
        self.register_buffer("second", self.first)

    def fit(self, features: Tensor, target: Tensor, collective: Collective) -> None:
        self.first, self.second = target, 2 * target

    def forward(self, features: Tensor) -> Tensor:
        return self.first.mean(0).expand(*features.shape[:-1], -1)


def test_buffers_that_begin_as_one_tensor_are_loaded_each() -> None:
    labels = LabelSpace.nominal(["a", "b"])
    fitted, loaded = Twins(), Twins()
    for head in (fitted, loaded):
        head.build(3, labels)
    fitted.fit(torch.zeros(5, 3), torch.full((5, 2), 0.5), Collective())
    loaded.load_state_dict(fitted.state_dict())
    assert torch.equal(loaded.first, fitted.first) and torch.equal(loaded.second, fitted.second)
