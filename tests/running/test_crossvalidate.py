"""``crossvalidate`` from plain Python: the same figures as the command line, and nothing carried from fold to fold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from fake_edges import bsds
from fake_faces import utkface
from pytorch_lightning.callbacks import EarlyStopping
from pytorch_lightning.plugins.io import AsyncCheckpointIO

from ldl import charts
from ldl.backbones.base import Identity
from ldl.backbones.timm import Timm
from ldl.checkpoint import AtomicCheckpointIO, write_whole
from ldl.cli import main
from ldl.collective import Collective
from ldl.data import BSDS500, RotatedDigits, TabularLDL, UTKFace
from ldl.errors import LDLError
from ldl.heads import MeanPredictor, Softmax
from ldl.running import together
from ldl.running.crossval import crossvalidate
from ldl.task import Task

pytestmark = pytest.mark.usefixtures("blank_charts")

QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
ONCE = {**QUIET, "max_epochs": 1}


def _task() -> Task:
    optimizer = lambda groups: torch.optim.SGD(groups, lr=0.1)  # noqa: E731
    return Task(Softmax(), Identity(flatten=True), optimizer, decoder="median")


def _digits(**options: object) -> RotatedDigits:
    return RotatedDigits(**{"turns": 1, "folds": 3, **options})  # type: ignore[arg-type]


def test_same_as_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--model.head=Softmax", "--model.optimizer=SGD", "--model.optimizer.lr=0.1", "--trainer.max_epochs=1"]
    options += ["--model.lr_scheduler=null", "--data=RotatedDigits", "--data.turns=1", "--data.folds=2"]
    options += ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled", "--trainer.accelerator=cpu"]
    main([*options, "--stage=crossval", "--run_dir", str(tmp_path / "cli")])
    monkeypatch.setattr("ldl.running.crossval.MOST_DRAWN", 1)
    rows: list[dict[str, np.ndarray]] = []
    data = _digits(folds=2)
    results = crossvalidate(_task, data, trainer=ONCE, folder=tmp_path / "python", rows=rows)
    written = [json.loads((tmp_path / name / "results.json").read_text()) for name in ("cli", "python")]
    for part in written:
        part.pop("fit_seconds")
    assert written[0] == written[1]
    assert [fold["fold"] for fold in results["folds"]] == [0, 1] and data.fold == 1
    assert np.array_equal(np.sort(np.concatenate([part["index"] for part in rows])), np.arange(1797))
    error = np.concatenate([np.abs(part["predicted_value"] - part["value"]) for part in rows]).mean()
    assert results["pooled"]["mae"] == pytest.approx(error, rel=1e-5)
    for name in ("predictions.csv", "metrics.csv", "checkpoints/best.ckpt", "results.json"):
        assert (tmp_path / "python/fold_1" / name).exists(), name
    assert (tmp_path / "python/charts/distributions.png").is_file() and not (tmp_path / "python/fold_1/charts").exists()


class _Behind(Collective):
    """With a second process that trains the first fold after those of this one."""

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        return [tensor, torch.cat([tensor, torch.zeros_like(tensor[:1])])]


def test_processes_that_train_other_folds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them did not see on its disk that the first fold is done."""
    monkeypatch.setattr(together, "current_collective", _Behind)
    with pytest.raises(LDLError, match="process 1 trains folds 2, 1, 0, but process 0 trains folds 2, 1; let --run"):
        crossvalidate(_task, _digits(), [2, 1], trainer=ONCE)


def test_trainers_write_whole_checkpoints(tmp_path: Path) -> None:
    """That of a fold, and one's own, unless it has a plugin of its own."""
    seen: list[object] = []

    class Watch(pl.Callback):
        def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
            seen.append(type(trainer.strategy.checkpoint_io))

        def __deepcopy__(self, memo: object) -> Watch:
            return self

    crossvalidate(_task, _digits(), [0], trainer={**ONCE, "callbacks": Watch()})
    assert seen == [AtomicCheckpointIO]
    own = AsyncCheckpointIO()
    assert write_whole(pl.Trainer(**QUIET, plugins=[own])).strategy.checkpoint_io is own


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = crossvalidate(_task, _digits(), folds=[2, 0], seed=None, trainer=lambda: pl.Trainer(**ONCE, logger=False))
    assert [fold["fold"] for fold in results["folds"]] == [2, 0] and results["seed"] is None
    assert crossvalidate(_task, _digits(), [1], trainer=ONCE)["folds"][0]["metrics"]["kl"] > 0
    assert {path.name for path in tmp_path.iterdir()} <= {"checkpoints"}  # those of the first trainer, as it came


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folds": []}, r"folds \[\] has no fold; give at least one number, or None for all"),
        ({"folds": [0, 3]}, r"fold 3 must be in 0\.\.2, one of the 3 folds"),
        ({"folds": [0, 1.5]}, r"fold 1.5 must be in 0\.\.2"),
        ({"folds": [1, 0, 1]}, "fold 1 is given twice; give each once"),
        ({"select": "best"}, "select 'best' needs a place for the checkpoints of each fold; give a folder"),
    ],
)
def test_mistakes_are_found_before_a_fold_is_trained(options: dict[str, Any], words: str) -> None:
    tasks: list[Task] = []
    with pytest.raises(LDLError, match=words):
        crossvalidate(lambda: tasks.append(_task()) or tasks[-1], _digits(), trainer=ONCE, **options)
    assert not tasks


def test_folds_in_any_order_are_the_same() -> None:
    """Weights, the trainer's state and the order of the batches begin anew."""
    stopping = EarlyStopping("val_kl", patience=1, min_delta=100)
    several = crossvalidate(_task, _digits(), [1, 2], trainer={**QUIET, "max_epochs": 5, "callbacks": [stopping]})
    alone = crossvalidate(_task, _digits(fold=1), [2], trainer={**QUIET, "max_epochs": 5, "callbacks": stopping})
    assert json.dumps(several["folds"][1]) == json.dumps(alone["folds"][0])  # NaN equals NaN there
    assert stopping.stopped_epoch == 0


def test_the_best_weights_are_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})

    made: list[Task] = []

    def task() -> Task:
        # Diverges: the first epoch is the best one.
        made.append(Task(Softmax(), Identity(flatten=True), optimizer=lambda groups: torch.optim.SGD(groups, lr=5e3)))
        return made[-1]

    trainer, key = {**QUIET, "max_epochs": 3}, {"of": "these"}
    last = crossvalidate(task, _digits(), np.arange(1), trainer=trainer, folder=tmp_path / "last")
    best = crossvalidate(task, _digits(), [0], trainer=trainer, folder=tmp_path / "best", select="best", key=key)
    kept = torch.load(tmp_path / "best/fold_0/checkpoints/best.ckpt", weights_only=True)
    assert kept["epoch"] < 2 and best["mean"]["kl"] != last["mean"]["kl"]
    again = crossvalidate(task, _digits(), [0], trainer=trainer, folder=tmp_path / "best", select="best", key=key)
    assert again["mean"] == best["mean"]
    torch.testing.assert_close(dict(made[-1].state_dict()), dict(kept["state_dict"]), rtol=0, atol=0)
    with pytest.raises(LDLError, match=r"--select best needs a validation part"):
        crossvalidate(task, _digits(val_fraction=0), trainer=trainer, folder=tmp_path / "none", select="best")


def test_sets_without_folds_say_so(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="BSDS500 has a published split and no folds"):
        crossvalidate(_task, BSDS500(path=str(bsds(tmp_path)), crop=32), trainer=ONCE)
    with pytest.raises(LDLError, match=r"fold 3 must be in 0\.\.2"):
        crossvalidate(_task, _digits(), [3], trainer=ONCE)


class Pictures(UTKFace):
    """Counts how often pictures, and not their features, are asked for."""

    asked = 0

    def dataset(self, rows: np.ndarray, train: bool) -> object:  # type: ignore[override]
        type(self).asked += 1
        return super().dataset(rows, train)


def _faces(tmp_path: Path) -> Pictures:
    root = utkface(tmp_path / "data", 24)
    Pictures.asked = 0
    return Pictures(root=str(root), crop_size=32, protocol="stratified", folds=3, val_fraction=0, batch_size=8)


def _frozen(freeze: bool = True) -> Task:
    return Task(MeanPredictor(), Timm("mobilenetv2_035", freeze=freeze))


def test_features_of_equal_weights_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    data = _faces(tmp_path)
    crossvalidate(_frozen, data, trainer=ONCE)
    assert Pictures.asked == 1 and data.backbone_features is not None
    before = data.backbone_features
    crossvalidate(_frozen, data, [0], seed=5, trainer=ONCE)
    assert not torch.equal(data.backbone_features, before)
    crossvalidate(lambda: _frozen(freeze=False), data, [0], trainer=ONCE)
    assert data.backbone_features is None


class Fixed(Identity):
    """As if it had parameters that never change."""

    is_fixed = True


def test_features_of_scaled_rows_are_those_of_the_fold(tmp_path: Path) -> None:
    """What is learned of the training part changes the inputs."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "rows.npz", features=rng.exponential(size=(30, 4)), labels=rng.dirichlet(np.ones(3), 30))
    data = TabularLDL(str(tmp_path / "rows.npz"), scaling="standard", folds=2, val_fraction=0)
    seen = []
    for fold in range(2):
        crossvalidate(lambda: Task(MeanPredictor(), Fixed()), data, [fold], trainer=ONCE)
        assert data.backbone_features is not None
        assert torch.equal(data.backbone_features, data.scaled)
        seen.append(data.scaled)
    assert not torch.equal(*seen)
