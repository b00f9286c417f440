"""Model cards: what they say of real runs, and that the snippet they give predicts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_faces import utkface

from ldl import charts
from ldl.backbones.timm import Timm
from ldl.data import LDLDataModule, TabularLDL, UTKFace
from ldl.heads import MeanPredictor, Softmax
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.reports.card import model_card
from ldl.reports.card.measured import about_leaks
from ldl.running.crossval import crossvalidate
from ldl.running.results import summarize
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
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})
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
    said = sections(card)
    assert card.startswith("# MeanPredictor on emotions\n")
    assert "A distribution over 3 labels without an order, of each instance: a, b, c." in said["What it predicts"]
    assert "`TabularLDL`, emotions: 30 instances, in 10 groups." in said["Data"]
    share = max(fold["leak"] for fold in results["folds"])
    assert f"**This protocol leaks: {share:.1%} of the test instances share a group" in said["Protocol"]
    assert "| 2 | 20 | 0 | 10 |" in said["Protocol"]
    assert f"| kl | {results['mean']['kl']:.4g} | {results['std']['kl']:.2g} | lower |" in said["Results"]
    assert f"| cosine | {results['mean']['cosine']:.4g} | {results['std']['cosine']:.2g} | higher |" in said["Results"]
    assert "rows of 4 features" in said["Model"] and "scaled (`standard`)" in said["Preprocessing"]
    assert "- Data: not known to ldl" in said["Licences"] and "Weights: none but those" in said["Licences"]
    assert "less than 100 test instances" in said["Limits"] and "New groups" in said["Limits"]
    assert all(f"{name} {number}" in said["Versions"] for name, number in results["versions"].items())
    assert "One fold was tested" in (folder / "fold_1/model_card.md").read_text()
    # What it says of its use is so.
    (snippet,) = re.findall(r"```python\n(.*?)```", said["How to use it"], re.S)
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
    said = sections(model_card(results, task, data, "checkpoints/last.ckpt"))
    assert "labels on a line, of each instance: 0 to 116 years." in said["What it predicts"]
    assert "in years: the median of the distribution" in said["What it predicts"]
    assert "UTKFace: https://susanqq.github.io/UTKFace/" in said["Data"] and "not known" in said["Data"]
    assert "**Nobody knows which instances belong together**" in said["Protocol"]
    assert "| mae (years) | 4.5 | lower |" in said["Results"] and "Of 200 test instances" in said["Results"]
    assert "`Timm` (name test_resnet, pretrained auto" in said["Model"] and "pictures of 3 x 32 x 32" in said["Model"]
    assert "32 x 32 pixels" in said["Preprocessing"]
    assert "tempered by 1.25" in said["Calibration"] and "calibrated on 40 validation rows" in said["Calibration"]
    assert (
        "non-commercial research" in said["Licences"]
        and "test_resnet began with pretrained weights; timm gives its own under" in said["Licences"]
    )
    assert "--data PictureFolder --data.path pictures/" in said["How to use it"]
    assert "outside of the labels, 0 to 116 years" in said["Limits"] and "100 test" not in said["Limits"]
    assert "No checkpoint was kept" in model_card(results, task, data)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (
            LabelSpace.nominal([str(number) for number in range(20)]),
            "20 labels without an order, .*: 0, 1, .*5, ..., 19",
        ),
        (LabelSpace.grid([0, 1], [0, 1], "degrees"), "4 labels on a plane, .*in degrees: the expectation"),
        (LabelSpace.ordinal([1, 2, 3]), "3 labels on a line, .*: 1, 2, 3.*in the unit of the labels"),
    ],
)
def test_labels_of_any_kind(labels: LabelSpace, words: str, tmp_path: Path) -> None:
    data = TabularLDL(path="t.npz")
    data.size = 9
    task = Task(MeanPredictor())
    task.build(labels, (5,))
    entry = {"fold": 0, "n_train": 6, "n_val": 0, "n_test": 3, "leak": 0.0, "metrics": {"kl": float("nan")}}
    data.labels, data.columns = labels, {"target": labels_target(labels)}
    data.features = np.zeros((9, 5))
    card = model_card(summarize(task, data, [entry], None, 1.0), task, data)
    assert re.search(words, card, re.S) and "Audited: 0.0% of the test" in card and "no seed" in card
    assert "| kl |" not in card


def labels_target(labels: LabelSpace) -> Any:
    import torch

    return torch.full((9, len(labels)), 1 / len(labels))


def test_a_published_split_without_groups_is_no_leak() -> None:
    found = {"folds": [{"leak": None}], "leaky": False}
    assert about_leaks(found) == "Its parts have nothing in common, as published."
