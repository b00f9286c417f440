"""Targets that are no distributions are refused by heads that are fitted in one go."""

from __future__ import annotations

import pytest
import torch

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.heads import AAKNN, BoostedTrees, MaxEnt, MeanPredictor
from ldl.labels import LabelSpace

LABELS = LabelSpace.nominal(["a", "b"])


@pytest.mark.parametrize("make", [AAKNN, BoostedTrees, MaxEnt, MeanPredictor])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([0.5, 1.5], "a target of sum 2, least 0.5: training row 2;"),
        ([1.5, -0.5], "a target of sum 1, least -0.5"),
        ([torch.nan, 1.0], "a target of sum nan"),
        ([torch.inf, 0.0], "a target of sum inf"),
    ],
)
def test_targets_are_distributions(make: type[FittedHead], bad: list[float], words: str) -> None:
    head = make()
    head.build(3, LABELS)
    with pytest.raises(LDLError, match=f"{make.__name__} cannot take {words}"):
        head.fit(torch.eye(3), torch.tensor([[1.0, 0.0], [0.5, 0.5004], bad]), Collective())


def test_targets_may_be_whole_numbers() -> None:
    head = AAKNN(1)
    head.build(2, LABELS)
    head.fit(torch.eye(2), torch.eye(2, dtype=torch.int64), Collective())
    assert torch.equal(head(torch.eye(2)), torch.eye(2))


def test_a_mean_of_no_rows_is_refused() -> None:
    head = MeanPredictor()
    head.build(3, LABELS)
    with pytest.raises(LDLError, match=r"MeanPredictor is fitted on the targets .*, got \(0, 2\)"):
        head.fit(torch.zeros(0, 3), torch.zeros(0, 2), Collective())
