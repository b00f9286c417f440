"""A backbone of every instance: features of existing ones, NaN for missing ones, and inputs that are no bags."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ldl.backbones.base import Backbone, Identity
from ldl.bags import EachInstance
from ldl.errors import LDLError


class Norms(Backbone):
    """The norm of each row."""

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        return 1

    def forward(self, inputs: Tensor) -> Tensor:
        assert not inputs.isnan().any()
        return inputs.flatten(1).norm(dim=1, keepdim=True)


def test_missing_instances_stay_missing() -> None:
    each = EachInstance(Norms())
    assert each.build((-1, 2)) == 1 and each.gives_bags
    bags = torch.tensor([[[3.0, 4.0], [0.0, 2.0]], [[6.0, 8.0], [torch.nan, torch.nan]]])
    torch.testing.assert_close(each(bags), torch.tensor([[[5.0], [2.0]], [[10.0], [torch.nan]]]), equal_nan=True)


@pytest.mark.parametrize(
    ("backbone", "shape", "message"),
    [
        (Identity(), (4,), r"needs bags \(instances, ...\), got inputs of shape \(4,\)"),
        (EachInstance(Identity()), (3, 2, 4), "EachInstance.backbone EachInstance must give one row of features"),
    ],
)
def test_what_is_no_bag_of_rows_is_named(backbone: Backbone, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        EachInstance(backbone).build(shape)
