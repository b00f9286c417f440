"""Checkpoints written before classes moved load, predict what they did, and resume."""

from __future__ import annotations

from pkgutil import resolve_name

import numpy as np
import pytest
import torch
from checkpoints.make import FOLDER, Problem, predictions, sgd, train

from ldl import heads
from ldl.backbones import Backbone
from ldl.backbones.base import Identity
from ldl.head import Head
from ldl.heads import LDLF
from ldl.moved import NAMES as MOVED
from ldl.task import Task

KINDS = {
    "bags": ("milboost", "mplboost", "bagged"),
    "pictures": ("timm", "pixel_features", "haar", "haar_windows", "hog"),
    "picture_bags": ("each_instance",),
}


def problem(name: str) -> Problem:
    return Problem(next((kind for kind, names in KINDS.items() if name in names), "rows"))


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("*.ckpt")))
def test_it_predicts_what_it_did(name: str) -> None:
    data, then = problem(name), np.load(FOLDER / f"{name}.npz")
    task = Task.load_from_checkpoint(FOLDER / f"{name}.ckpt")
    now = predictions(task, data)
    assert now.keys() == then.keys() - {"resumed"}
    for what, values in now.items():
        np.testing.assert_allclose(values, then[what], rtol=0, atol=1e-6)
    task.on_load_checkpoint(torch.load(FOLDER / f"{name}.ckpt", weights_only=True))


def is_model(path: str) -> bool:
    model = resolve_name(path)
    return isinstance(model, type) and issubclass(model, Head | Backbone)


def test_there_is_one_a_head_and_a_backbone() -> None:
    found = {
        torch.load(file, weights_only=True)["ldl"][part]["class_path"]
        for file in FOLDER.glob("*.ckpt")
        for part in ("head", "backbone")
    }
    new = {"BoostedTrees", "Mirrored", "Pool", "Scaled", "StructuredEdges", "Trained"}  # came after the move
    models = {old for old, now in MOVED.items() if now.startswith(("ldl.heads.", "ldl.backbones.")) and is_model(now)}
    assert {old for old in models if old.rpartition(".")[2] not in new} <= found
    assert set(heads.__all__) - new <= {path.rpartition(".")[2] for path in found}
    assert sum(file.stat().st_size for file in FOLDER.iterdir() if file.is_file()) < 500_000


def test_it_resumes_as_it_would_have_then() -> None:
    task, data = Task(LDLF(trees=2, depth=3, outputs=5, batches=3), Identity(), sgd), Problem("rows")
    trainer = train(task, data, 2, FOLDER / "ldlf.ckpt")
    assert trainer.global_step == 8
    then = np.load(FOLDER / "ldlf.npz")
    assert np.abs(then["resumed"] - then["distribution"]).max() > 1e-3
    np.testing.assert_allclose(predictions(task, data)["distribution"], then["resumed"], rtol=0, atol=1e-6)
