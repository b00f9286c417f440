"""Specifications rebuild their objects, and tell them apart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from checkpoints.make import FOLDER

import ldl.command.classes  # noqa: F401  all classes with options
from ldl.backbones.timm import Timm
from ldl.bags.each_instance import EachInstance
from ldl.checkpoint import CHECKPOINT_KEY, check_same_model
from ldl.errors import LDLError
from ldl.heads import LDLF, Softmax
from ldl.spec import differences, to_spec


def test_an_option_that_came_later_had_its_default() -> None:
    spec = torch.load(FOLDER / "ldlf.ckpt", weights_only=True)["ldl"]["head"]
    assert "members" not in spec["init_args"]
    same: dict[str, Any] = {"trees": 2, "depth": 3, "outputs": 5, "batches": 3}
    assert differences(spec, LDLF(**same)) == []
    assert differences(spec, LDLF(**same, members=2)) == ["members 1 instead of 2"]


def test_a_class_that_moved_is_the_same() -> None:
    saved = to_spec(EachInstance(Timm(pretrained=True)))
    saved["class_path"] = "ldl.each_instance.EachInstance"
    saved["init_args"]["backbone"]["class_path"] = "ldl.backbone.Timm"
    checkpoint = {CHECKPOINT_KEY: {"head": to_spec(Softmax()), "backbone": saved}}
    check_same_model(checkpoint, Softmax(), EachInstance(Timm()))
    with pytest.raises(LDLError, match="backbone.name 'resnet18' instead of 'resnet34'"):
        check_same_model(checkpoint, Softmax(), EachInstance(Timm("resnet34")))
