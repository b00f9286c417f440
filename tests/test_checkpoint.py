"""Which options a checkpoint may be resumed with: each class says so of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ldl.backbones.base import Backbone, Identity
from ldl.backbones.haar import Haar
from ldl.backbones.timm import Timm
from ldl.bags import Bagged, MILBoost
from ldl.bags.each_instance import EachInstance
from ldl.checkpoint import CHECKPOINT_KEY, check_same_model, describe
from ldl.edges.pixel_features import PixelFeatures
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, Softmax, StructRF
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.spec import to_spec
from ldl.task import Task


@options
class Tuned(Softmax):
    """A head with options of Timm's names.

    Args:
        lr: A rate.
        freeze: A switch.
        mirror: Another, of no consequence.
    """

    lr: float = 0.1
    freeze: bool = False
    mirror: bool = option(default=False, may_change=True)


class Old(Softmax):
    """Tuned, with an ``__init__`` of its own.

    Args:
        lr: A rate.
    """

    def __init__(self, lr: float = 0.1) -> None:
        super().__init__()
        self.lr = lr


def resume(saved: Any, configured: Any) -> None:
    """Hold a checkpoint of one head or backbone against another."""
    parts = [(each, Identity()) if isinstance(each, Head) else (Softmax(), each) for each in (saved, configured)]
    checkpoint = {CHECKPOINT_KEY: {"head": to_spec(parts[0][0]), "backbone": to_spec(parts[0][1])}}
    check_same_model(checkpoint, *parts[1])


@pytest.mark.parametrize(
    ("saved", "configured", "difference"),
    [
        (Tuned(), Tuned(lr=0.2), "head has lr 0.1 instead of 0.2;"),
        (Tuned(), Tuned(freeze=True), "head has freeze False instead of True;"),
        (Old(), Old(lr=0.2), "head has lr 0.1 instead of 0.2;"),
        (Softmax(), LDLF(), "head has Softmax instead of LDLF;"),
        (Bagged(), Bagged(LDLF()), "head has head Softmax instead of LDLF;"),
        (
            Bagged(Softmax(dropout=0.1)),
            Bagged(r=2.0),
            r"head has head.dropout 0.1 instead of 0.0, r 5.0 instead of 2.0;",
        ),
        (StructRF(trees=3), StructRF(trees=4, threads=2), "head has trees 3 instead of 4;"),
        (Timm("resnet18"), Timm("resnet34"), "backbone has name 'resnet18' instead of 'resnet34';"),
        (
            EachInstance(Timm()),
            EachInstance(Timm(drop_rate=0.2)),
            "backbone has backbone.drop_rate 0.0 instead of 0.2;",
        ),
        (EachInstance(), EachInstance(Timm()), "backbone has backbone Identity instead of Timm;"),
        (Haar(seed=1), Haar(seed=2), "backbone has seed 1 instead of 2;"),
        (PixelFeatures(), PixelFeatures(width=8), "backbone has width 32 instead of 8;"),
    ],
)
def test_another_model_is_refused(saved: Head | Backbone, configured: Head | Backbone, difference: str) -> None:
    with pytest.raises(LDLError, match=f"^the checkpoint's {difference} resume with the configuration it was saved"):
        resume(saved, configured)


@pytest.mark.parametrize(
    ("saved", "configured"),
    [
        (Tuned(), Tuned(mirror=True)),
        (
            Timm(),
            Timm(pretrained="auto", weights="x.pth", freeze=True, freeze_groups=2, lr=0.1, mirror=True, compiled=True),
        ),
        (EachInstance(Timm(pretrained=True)), EachInstance(Timm(lr=0.1))),
        (PixelFeatures(), PixelFeatures(pretrained=False, lr=0.1, scales=[0.5], mirror=True)),
        (MILBoost(), MILBoost(threads=2)),
        (Bagged(Tuned(mirror=True)), Bagged(Tuned())),
        (Softmax(hidden=(3,)), Softmax(hidden=[3])),
    ],
)
def test_options_that_may_change_are_accepted(saved: Head | Backbone, configured: Head | Backbone) -> None:
    resume(saved, configured)


def test_scalars_of_numpy_are_read_again(tmp_path: Path) -> None:
    head = LDLF(trees=np.int64(2), hidden=list(np.array([8])), dropout=np.float64(0.1))  # type: ignore[arg-type]
    task = Task(head, Identity())
    task.build(LabelSpace.nominal(list(np.array(["sad", "glad"]))), (3,))
    task.preprocessing = {"margin": np.float64(0.2), "columns": [np.str_("a")], "size": (np.int64(8), 8)}
    torch.save(describe(task), tmp_path / "described.pt")
    again = torch.load(tmp_path / "described.pt", weights_only=True)
    assert again == describe(task) and LabelSpace.from_dict(again["labels"]) == task.labels


def test_a_foreign_checkpoint_is_named() -> None:
    with pytest.raises(LDLError, match="no checkpoint of ldl"):
        check_same_model({}, Softmax(), Identity())
