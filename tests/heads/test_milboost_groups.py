"""Bags of one group are learned from together, or held out together."""

from __future__ import annotations

import pytest
import torch
from some_bags import LABELS, some_bags

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import MILBoost
from ldl.methods.boosting.packing import pack


def test_groups_are_held_out_whole() -> None:
    features, target = some_bags(3, 60)
    group = torch.arange(60) // 4
    bags = pack("", features, target, None)
    rest, held = MILBoost(validation=0.3, seed=0)._hold_out(bags, group.numpy())
    assert len(held) == 16 and sorted([*rest, *held]) == list(range(60))
    assert not set(group[rest].tolist()) & set(group[held].tolist())
    head = MILBoost(validation=0.3, seed=0, patience=5)
    assert head.uses_group
    head.build(4, LABELS)
    head.fit(features, target, Collective(), group=group)
    assert head.curve[0, 1].isfinite()


def test_too_few_groups_to_hold_out_are_refused() -> None:
    features, target = some_bags(3, 60)
    head = MILBoost(validation=0.3, seed=0)
    head.build(4, LABELS)
    with pytest.raises(LDLError, match=r"MILBoost.validation 0.3 of 1 groups"):
        head.fit(features, target, Collective(), group=torch.zeros(60, dtype=torch.long))
