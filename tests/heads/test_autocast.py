"""Runs of 16 bits, mixed or true: what is no network's own is computed as without."""

from __future__ import annotations

import copy

import pytest
import torch
from fakes.trees import problem

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.heads import AAKNN, DSNA, MSLP, CostSensitiveForest, MaxEnt, MeanPredictor, Softmax
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows

YEARS = LabelSpace.ordinal(range(1950, 2021), "year")
POSE = LabelSpace.grid([-30, 0, 30], [-90, 0, 90.5], "degree")


@pytest.mark.parametrize("labels", [YEARS, POSE], ids=["line", "grid"])
def test_values_are_decoded_in_full(labels: LabelSpace) -> None:
    rows = torch.rand(20, len(labels), generator=torch.Generator().manual_seed(0)).softmax(-1)
    with torch.autocast("cpu", torch.bfloat16):
        found = labels.decode(rows), labels.deviation(rows)
    assert torch.equal(found[0], labels.decode(rows)) and torch.equal(found[1], labels.deviation(rows))
    assert found[0].dtype == found[1].dtype == torch.float32


def test_values_are_learned_in_full() -> None:
    head = Softmax("dldl_v2")
    head.build(3, YEARS)
    assert torch.equal(head.bfloat16().points, YEARS.points)


@pytest.mark.parametrize(
    "head", [AAKNN(neighbours=1), MSLP(neighbours=1), MSLP(kernel="rbf", neighbours=1), MaxEnt(l2=0.01)]
)
def test_fitted_heads_answer_as_they_were_fitted(head: FittedHead) -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(300, 20, generator=generator)
    target = (features @ torch.randn(20, 4, generator=generator)).softmax(-1)
    head.build(20, LabelSpace.nominal(list("abcd")))
    head.fit(Rows(features, target), Collective())
    queries = torch.randn(200, 20, generator=generator)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found = head(queries)
    assert torch.equal(found, head(queries)) and found.dtype == torch.float32


@pytest.mark.parametrize(
    "head",
    [
        AAKNN(), MSLP(), MSLP(kernel="rbf"), CostSensitiveForest(trees=2, kernel="rbf"), DSNA(trees=1, depth=3),
        MeanPredictor(),
    ],
    ids=lambda head: type(head).__name__,
)  # fmt: skip
def test_what_was_fitted_keeps_its_precision(head: FittedHead) -> None:
    features, target = problem(40)
    head = copy.deepcopy(head)
    head.build(features.shape[1], LabelSpace.ordinal([1997, 1998, 1999, 2000]))
    head.fit(Rows(features, target), Collective())
    distribution, value = head.predict(features.bfloat16())
    rounded = head.bfloat16().predict(features.bfloat16())
    assert torch.equal(rounded[0], distribution) and distribution.dtype == torch.float32
    assert value is None or (rounded[1] is not None and torch.equal(rounded[1], value))
