"""What all fitted heads share: own memory, detached features, checked targets."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from fakes.trees import problem

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.heads import AAKNN, DSNA, MSLP, BoostedTrees, CostSensitiveForest, MaxEnt, MeanPredictor, StructRF
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows

AGES = LabelSpace.ordinal([10, 20, 30])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("make", [AAKNN, MSLP, partial(DSNA, trees=2, depth=1)])
def test_no_memory_is_shared(make: Any, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    value = (10 + 20 * torch.rand(30, generator=generator)).to(dtype)
    features, target = torch.randn(30, 4, dtype=dtype, generator=generator), AGES.encode(value, 5.0)
    head = make()
    head.build(4, AGES)
    head.fit(Rows(features, target, value), Collective())
    given = {tensor.untyped_storage().data_ptr() for tensor in (features, target, value)}
    for name, tensor in head.state_dict().items():
        assert tensor.untyped_storage().data_ptr() not in given, name
        assert tensor.untyped_storage().nbytes() == tensor.nbytes, name


@pytest.mark.parametrize(
    "head",
    [
        AAKNN(), MSLP(), MSLP(kernel="rbf"), BoostedTrees(rounds=3, depth=2),
        CostSensitiveForest(trees=2, depth=3), MaxEnt(l2=0.1), StructRF(trees=2, depth=3),
    ],
    ids=lambda head: type(head).__name__,
)  # fmt: skip
def test_predictions_are_those_of_detached_features(head: FittedHead) -> None:
    features, target = problem(60)
    head.build(features.shape[1], LabelSpace.nominal(list("abcd")))
    head.fit(Rows(features, target), Collective())
    assert torch.equal(head(features.clone().requires_grad_()).detach(), head(features))


LABELS = LabelSpace.nominal(["a", "b"])


@pytest.mark.parametrize("make", [AAKNN, BoostedTrees, MaxEnt, MeanPredictor])
def test_targets_are_distributions(make: type[FittedHead]) -> None:
    head = make()
    head.build(3, LABELS)
    for bad, words in (
        ([0.5, 1.5], "sum 2, least 0.5: training row 2;"),
        ([1.5, -0.5], "sum 1, least -0.5"),
        ([torch.nan, 1.0], "sum nan"),
    ):
        with pytest.raises(LDLError, match=f"{make.__name__} cannot take a target of {words}"):
            head.fit(Rows(torch.eye(3), torch.tensor([[1.0, 0.0], [0.5, 0.5004], bad])), Collective())


def test_targets_may_be_whole_numbers() -> None:
    head = AAKNN(1)
    head.build(2, LABELS)
    head.fit(Rows(torch.eye(2), torch.eye(2, dtype=torch.int64)), Collective())
    assert torch.equal(head(torch.eye(2)), torch.eye(2))
