"""Model cards: what they say of real runs, and that the snippet they give predicts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.blank_charts import leave_out_charts
from fakes.face_releases import utkface

from ldl.backbones.timm import Timm
from ldl.data import LDLDataModule, TabularLDL
from ldl.faces import UTKFace
from ldl.heads import MeanPredictor, Softmax
from ldl.jobs.crossval import crossvalidate
from ldl.methods.conformal import Conformal
from ldl.reports.card import about_leaks, model_card
from ldl.run.results import summarize
from ldl.task import Task

QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "max_epochs": 1}


def sections(card: str) -> dict[str, str]:
    return dict(zip(re.findall(r"^## (.*)$", card, re.M), re.split(r"^## .*$", card, flags=re.M)[1:]))


@pytest.fixture
def leaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, Any]]:
    """Three folds of rows at random, whose persons are known."""
    rng = np.random.default_rng(0)
    columns = {"features": rng.normal(size=(30, 4)), "labels": rng.dirichlet(np.ones(3), 30)}
    np.savez(tmp_path / "emotions.npz", **columns, group=np.arange(30) // 3)
    leave_out_charts(monkeypatch)
    data = TabularLDL(
        path=str(tmp_path / "emotions.npz"),
        protocol="random_kfold",
        folds=3,
        val_fraction=0.0,
        label_names=["a", "b", "c"],
    )
    folder = tmp_path / "run"
    return folder, crossvalidate(lambda: Task(MeanPredictor()), data, trainer=QUIET, folder=folder)


def test_a_card_of_folds_that_leak(leaky: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, results = leaky
    card = (folder / "model_card.md").read_text()
    texts = sections(card)
    assert card.startswith("# MeanPredictor on emotions\n")
    assert "A distribution over 3 labels (nominal), for each instance: a, b, c." in texts["What it predicts"]
    assert "`TabularLDL`, emotions: 30 instances, in 10 groups." in texts["Data"]
    share = max(fold["leak"] for fold in results["folds"])
    assert f"**This protocol leaks: {share:.1%} of the test instances share a group" in texts["Protocol"]
    assert "Sizes of the sets: train 20, val 0, test 10." in texts["Protocol"]
    assert f"| kl | {results['mean']['kl']:.4g} | {results['std']['kl']:.2g} |" in texts["Results"]
    assert "- Input: 4\n" in texts["Model"] and "scaled (`standard`)" in texts["Preprocessing"]
    assert "- Data: unknown to ldl" in texts["Licences"] and "Weights: none but those" in texts["Licences"]
    assert "new groups" in texts["Limits"]
    assert all(f"{name} {number}" in texts["Versions"] for name, number in results["versions"].items())
    assert "One fold was tested" in (folder / "fold_1/model_card.md").read_text()
    # What it says of its use is so.
    (snippet,) = re.findall(r"```python\n(.*?)```", texts["How to use it"], re.S)
    (folder / "new.csv").write_text("0,1,2,3\n1,2,3,4\n5,6,7,8\n")
    monkeypatch.chdir(folder)
    scope: dict[str, Any] = {}
    exec(snippet, scope)
    assert scope["found"].distribution.shape == (2, 3)


def test_a_card_of_pictures(tmp_path: Path) -> None:
    utkface(tmp_path)
    data: LDLDataModule = UTKFace(root=str(tmp_path), crop_size=32, folds=2, cache_dir=str(tmp_path / "cache"))
    data.setup()
    task = Task(Softmax(), Timm("test_resnet", pretrained="auto"), decoder="median")
    task.build(data.labels, data.input_shape, load_weights=False)
    task.preprocessing, task.temperature = data.preprocessing, 1.25
    task.calibration = Conformal.fit(data.labels, np.full((40, 117), 1 / 117), np.linspace(1, 99, 40))
    entry = {"fold": 0, "n_train": 300, "n_val": 30, "n_test": 200, "leak": None, "metrics": {"kl": 1.0, "mae": 4.5}}
    results = summarize(task, data, [entry], 0, 1.0)
    texts = sections(model_card(results, task, data, "checkpoints/last.ckpt"))
    assert "labels (ordinal), for each instance: 0 to 116 years." in texts["What it predicts"]
    assert "in years, by the head's own estimate or the median" in texts["What it predicts"]
    assert "UTKFace: https://susanqq.github.io/UTKFace/" in texts["Data"] and "unknown" in texts["Data"]
    assert "**The groups of the instances (such as persons) are unknown**" in texts["Protocol"]
    assert "| mae (years) | 4.5 |" in texts["Results"] and "On 200 test instances" in texts["Results"]
    assert "`Timm` (name test_resnet, pretrained auto" in texts["Model"] and "- Input: 3 x 32 x 32" in texts["Model"]
    assert "resized to 32 pixels" in texts["Preprocessing"]
    assert "temperature 1.25" in texts["Calibration"] and "calibrated on 40 validation rows" in texts["Calibration"]
    assert (
        "non-commercial research" in texts["Licences"]
        and "test_resnet began with pretrained weights; timm gives its own under" in texts["Licences"]
    )
    assert "--data PictureFolder --data.path pictures/" in texts["How to use it"]
    assert "outside of the labels, 0 to 116 years" in texts["Limits"]
    assert "No checkpoint was kept" in model_card(results, task, data)


def test_a_published_split_without_groups_is_no_leak() -> None:
    results = {"folds": [{"leak": None}], "leaky": False}
    assert about_leaks(results) == "Its sets have nothing in common, as published."
