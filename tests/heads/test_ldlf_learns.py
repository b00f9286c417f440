"""LDLF learns: it beats the constant predictor on small real problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.data import RotatedDigits, TabularLDL
from ldl.heads import LDLF, MeanPredictor
from ldl.metrics.functional import kl


def learned(data: TabularLDL | RotatedDigits, head: LDLF, steps: int) -> tuple[float, float]:
    """KL on the test fold of a trained head, and that of the constant predictor."""
    data.setup()

    def rows(part: Any) -> tuple[Tensor, Tensor]:
        inputs = data.inputs(part, np.zeros(len(part), int), train=False)
        return inputs.flatten(1), data.columns["target"][part]

    (features, target), (test_features, test_target) = rows(data.split.train), rows(data.split.test)
    mean = MeanPredictor()
    for each in (head, mean):
        each.build(features.shape[1], data.labels)
    mean.fit(features, target, Collective())
    optimizer = torch.optim.AdamW(head.parameters(), 3e-3)
    for _ in range(steps):
        pick = torch.randint(len(features), (64,))
        optimizer.zero_grad()
        losses = head.loss(features[pick], target[pick])
        losses["loss"].backward()
        optimizer.step()
        head.observe(losses["memory"], target[pick])
        if head.update_due:
            head.update(Collective())
    head.eval()
    with torch.no_grad():
        return kl(head(test_features), test_target).mean().item(), kl(mean(test_features), test_target).mean().item()


def test_it_learns_sjaffe(ldl_data: Path) -> None:
    torch.manual_seed(0)
    data = TabularLDL("ldl/SJAFFE.mat", root=str(ldl_data), protocol="shuffled", val_fraction=0)
    forest, constant = learned(data, LDLF(depth=5, batches=20), 400)
    assert forest < 0.75 * constant


@pytest.mark.parametrize(
    "options", [{"hidden": [64]}, {"objective": "forest"}, {"ensemble": "alternating", "outputs": None}], ids=str
)
def test_it_learns_the_angle_of_digits(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    forest, constant = learned(RotatedDigits(turns=1), LDLF(depth=6, batches=20, **options), 300)
    assert forest < 0.8 * constant
