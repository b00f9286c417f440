"""Features that a backbone still learns reach heads without gradients, too."""

from __future__ import annotations

import pytest
import torch
from some_trees import problem

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.heads import AAKNN, DSNA, MSLP, BoostedTrees, CostSensitiveForest, MaxEnt, StructRF
from ldl.labels import LabelSpace


@pytest.mark.parametrize(
    "head",
    [
        AAKNN(), DSNA(trees=2, depth=3), MSLP(), MSLP(kernel="rbf"), BoostedTrees(rounds=3, depth=2),
        CostSensitiveForest(trees=2, depth=3), MaxEnt(l2=0.1), StructRF(trees=2, depth=3),
    ],
    ids=lambda head: type(head).__name__,
)  # fmt: skip
def test_predictions_are_those_of_detached_features(head: FittedHead) -> None:
    features, target = problem(60)
    head.build(features.shape[1], LabelSpace.nominal(list("abcd")))
    head.fit(features, target, Collective())
    assert torch.equal(head(features.clone().requires_grad_()).detach(), head(features))
