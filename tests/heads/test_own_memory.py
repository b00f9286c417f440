"""What a fitted head has learned is its own: no view of the tensors that it was fitted on, nor a part of more."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from ldl.collective import Collective
from ldl.head import wanted_of
from ldl.heads import AAKNN, DSNA, MSLP, CostSensitiveForest
from ldl.labels import LabelSpace

LABELS = LabelSpace.ordinal([10, 20, 30])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("make", [AAKNN, MSLP, partial(CostSensitiveForest, depth=1), partial(DSNA, trees=2, depth=1)])
def test_no_memory_is_shared(make: Any, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    value = (10 + 20 * torch.rand(30, generator=generator)).to(dtype)
    features, target = torch.randn(30, 4, dtype=dtype, generator=generator), LABELS.encode(value, 5.0)
    head = make()
    head.build(4, LABELS)
    head.fit(features, target, Collective(), **wanted_of(head, {"value": value}))
    given = {tensor.untyped_storage().data_ptr() for tensor in (features, target, value)}
    for name, tensor in head.state_dict().items():
        assert tensor.untyped_storage().data_ptr() not in given, name
        assert tensor.untyped_storage().nbytes() == tensor.nbytes, name
