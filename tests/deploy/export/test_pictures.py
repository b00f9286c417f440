"""Models of pictures: normalised inside of the graph, each instance of a bag by itself, and what has no graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import albumentations as A
import pytest
import torch
from fakes.tasks import AGES, NO_YES

from ldl.backbones import HOG, Identity
from ldl.backbones.timm import Timm
from ldl.bags import Bagged, EachInstance
from ldl.data.images.transforms import Pipeline
from ldl.deploy.export import Deployed, export
from ldl.errors import LDLError
from ldl.heads import MaxEnt, Softmax
from ldl.task import Task


@pytest.mark.slow
@pytest.mark.parametrize(
    "known",
    [
        {"dtype": "uint8"},
        {"crop_size": 24, "margin": None, "alignment": "none", "transforms": Pipeline([]).to_dict()},
    ],
    ids=["pictures", "faces"],
)
def test_pixels_are_normalised_inside(known: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    task = Task(Softmax(), Timm("test_resnet", mirror=True, enlarge=1.5), decoder="median").eval()
    task.build(AGES, (3, 24, 32))
    task.preprocessing = known
    model = Deployed(task)
    assert model.input_shape == (24, 32, 3) and model.input_dtype == torch.uint8
    done = export(task, tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.largest <= 1e-5 and done.parity.apart == 0


@pytest.mark.slow
def test_every_instance_of_a_bag(tmp_path: Path) -> None:
    torch.manual_seed(0)
    task = Task(Bagged(), EachInstance(Timm("test_resnet"))).eval()
    task.build(NO_YES, (2, 3, 24, 24))
    done = export(task, tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.largest <= 1e-5 and done.parity.apart == 0


def test_a_backbone_without_a_graph_is_refused(tmp_path: Path) -> None:
    task = Task(MaxEnt(), HOG())
    task.build(AGES, (1, 28, 28))
    with pytest.raises(LDLError, match="^HOG cannot be exported: its histograms are scikit-image's, not torch's$"):
        export(task, tmp_path / "model.onnx")


def test_transforms_of_evaluation_are_refused() -> None:
    task = Task(Softmax(), Identity(flatten=True))
    task.build(AGES, (3, 8, 8))
    task.preprocessing = {"crop_size": 8, "transforms": Pipeline([]).to_dict()}
    assert Deployed(task).takes_pictures
    task.preprocessing["transforms"] = Pipeline([A.ToGray(p=1), A.CLAHE(p=1)]).to_dict()
    with pytest.raises(LDLError, match="^data.eval_transforms ToGray, CLAHE cannot be exported: .*; train without"):
        Deployed(task)
