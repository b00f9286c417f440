"""A cross-validation in several processes, in several sittings or from Python is that of one command line."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from distributed import LocalCluster
from fakes.edge_images import bsds
from fakes.inline_executor import run_inline
from pytorch_lightning.callbacks import EarlyStopping

from ldl.backbones.base import Identity
from ldl.checkpoint import AtomicCheckpointIO
from ldl.command import main
from ldl.data import TabularLDL
from ldl.edges import BSDS500
from ldl.errors import LDLError
from ldl.heads import AAKNN, MeanPredictor, Softmax
from ldl.jobs.crossval import crossvalidate
from ldl.metrics.functional import kl
from ldl.task import Task

pytestmark = pytest.mark.usefixtures("blank_charts")

RUN = ["-c", "tabular/aaknn", "--stage=crossval", "--data.folds=2", "--wandb.mode=disabled"]
RUN += ["--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu"]
QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
ONCE = {**QUIET, "max_epochs": 1}


def table(path: Path, size: int) -> Path:
    rng = np.random.default_rng(0)
    np.savez(path, features=rng.normal(size=(size, 3)), labels=rng.dirichlet(np.ones(3), size))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table(tmp_path_factory.mktemp("data") / "table.npz", 90)


@pytest.fixture(scope="module")
def run(path: Path) -> list[str]:
    """The command line of a cross-validation, without its run directory."""
    return [*RUN, f"--data.path={path}"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, run: list[str]) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    main([*run, "--run_dir", str(folder)])
    return folder


@pytest.fixture
def data(path: Path) -> TabularLDL:
    return TabularLDL(path=str(path), folds=3, val_fraction=0.2, batch_size=32)


def figures(folder: Path) -> dict:
    content = json.loads((folder / "results.json").read_text())
    return {name: value for name, value in content.items() if name != "fit_seconds"}


def softmax() -> Task:
    return Task(Softmax(), Identity(), lambda groups: torch.optim.SGD(groups, lr=0.1))


def test_python_is_as_the_command_line(whole: Path, path: Path, tmp_path: Path) -> None:
    rows: list[dict[str, np.ndarray]] = []
    data = TabularLDL(path=str(path), scaling="standard", batch_size=256, val_fraction=0, folds=2)
    make = lambda: Task(AAKNN(neighbours=20))  # noqa: E731
    results = crossvalidate(make, data, trainer=ONCE, folder=tmp_path / "python", rows=rows)
    assert figures(tmp_path / "python") == figures(whole)
    assert [fold["fold"] for fold in results["folds"]] == [0, 1] and data.fold == 1
    assert np.array_equal(np.sort(np.concatenate([part["index"] for part in rows])), np.arange(90))
    true, predicted = (torch.from_numpy(np.concatenate([part[k] for part in rows])) for k in ("target", "prediction"))
    assert results["pooled"]["kl"] == pytest.approx(float(kl(predicted, true).mean()), rel=1e-5)
    for name in ("predictions.csv", "metrics.csv", "checkpoints/last.ckpt", "results.json"):
        assert (tmp_path / "python/fold_1" / name).exists(), name


def test_finished_folds_are_kept(
    run: list[str], whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    before = (folder / "fold_0" / "results.json").stat().st_mtime_ns
    (folder / "results.json").unlink()
    (folder / "fold_1" / "results.json").unlink()
    (folder / "fold_1" / "half.tmp").touch()
    capsys.readouterr()
    main([*run, "--run_dir", str(folder)])
    assert figures(folder) == figures(whole)
    assert (folder / "fold_0" / "results.json").stat().st_mtime_ns == before
    assert not (folder / "fold_1" / "half.tmp").exists()
    assert (folder / "model_card.md").read_text() == (whole / "model_card.md").read_text()
    said = capsys.readouterr().out
    assert "1 of 2 folds are done" in said and "fold 0:" not in said and "fold 1:" in said


@pytest.mark.parametrize("options", [[], ["--model.head.neighbours=3"]])
def test_a_fold_of_version_0_2_0_is_kept(
    run: list[str], whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """The folder was written by that version, with the options of ``run``, where the default held out no rows."""
    fold = tmp_path / "run" / "fold_0"
    shutil.copytree(Path(__file__).with_name("fold_of_0_2_0"), fold)
    content = json.loads((fold / "results.json").read_text())
    content["cell"]["version"] = version("ldl")
    (fold / "results.json").write_text(json.dumps(content))
    (tmp_path / "run" / ".ldl").touch()
    command = [*run, "--data.val_fraction=0", *options, "--run_dir", str(tmp_path / "run")]
    if options:
        with pytest.raises(SystemExit):
            main(command)
        assert "fold_0 has a result of other options" in capsys.readouterr().err
        return
    main(command)
    assert "1 of 2 folds are done" in capsys.readouterr().out
    folds = [json.loads((path / "results.json").read_text())["folds"] for path in (tmp_path / "run", whole)]
    assert folds[0] == folds[1]


@pytest.mark.parametrize(("more", "what"), [("--model.head.neighbours=3", "options"), ("--data.path=OTHER", "data")])
def test_other_folds_are_not_mixed_in(
    run: list[str], whole: Path, tmp_path: Path, more: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    more = more.replace("OTHER", str(table(tmp_path / "other.npz", 80)))
    with pytest.raises(SystemExit) as ended:
        main([*run, more, "--run_dir", str(folder)])
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert ended.value.code == 2 and what in line and "give another --run_dir" in line
    assert figures(folder) == figures(whole)


@pytest.mark.parametrize("inline", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_jobs_are_as_one(
    run: list[str],
    whole: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    inline: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The slow case has real processes."""
    if inline:
        run_inline(monkeypatch)
    main([*run, "--jobs=2", "--run_dir", str(tmp_path / "run")])
    assert figures(tmp_path / "run") == figures(whole)
    said = capfd.readouterr().out
    assert "2 folds of 90 instances, 2 processes" in said and said.count("fold 1: kl") == 1
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in whole.iterdir()}


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same(run: list[str], whole: Path, tmp_path: Path) -> None:
    folder, killed = tmp_path / "run", []

    def kill(cluster: LocalCluster) -> None:
        while not list(folder.glob("fold_*/config.yaml")):
            time.sleep(0.05)
        killed.append(next(iter(cluster.workers.values())).pid)
        os.kill(killed[0], signal.SIGKILL)

    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, processes=True, **options) as cluster:
        killer = threading.Thread(target=kill, args=(cluster,), daemon=True)
        killer.start()
        main([*run, "--scheduler", cluster.scheduler_address, "--run_dir", str(folder)])
        killer.join()
    assert killed and figures(folder) == figures(whole)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--stage=fit", "--jobs=2"], "--jobs and --scheduler distribute folds, and --stage fit has none"),
        (["--jobs=2", "--trainer.devices=2"], "--jobs and --scheduler train each fold in one process"),
        (["--ckpt_path=x.ckpt"], "--stage crossval takes no --ckpt_path"),
        (["--scheduler=127.0.0.1:1"], "no Dask scheduler answers at --scheduler 127.0.0.1:1"),
    ],
)
def test_refusals(
    run: list[str],
    more: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("ldl.jobs.executors.DASK_TIMEOUT", 0.2)
    with pytest.raises(SystemExit) as ended:
        main([*run, *more, "--run_dir", str(tmp_path / "run")])
    assert ended.value.code == 2 and line in capsys.readouterr().err.strip().splitlines()[-1]
    assert not (tmp_path / "run").exists()


def test_without_a_folder_nothing_is_written(data: TabularLDL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = lambda: pl.Trainer(**ONCE, logger=False)  # noqa: E731
    results = crossvalidate(softmax, data, folds=np.array([2, 0]), seed=None, trainer=trainer)
    assert [fold["fold"] for fold in results["folds"]] == [2, 0] and results["seed"] is None
    assert {path.name for path in tmp_path.iterdir()} <= {"checkpoints"}  # those of the trainer, as it came


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folds": []}, r"folds \[\] must be numbers in 0\.\.2, or None for all"),
        ({"folds": [0, 3]}, r"folds \[0, 3\] must be numbers in 0\.\.2"),
        ({"select": "best"}, "select 'best' needs a place for the checkpoints of each fold; give a folder"),
    ],
)
def test_mistakes_are_found_before_a_fold_is_trained(data: TabularLDL, options: dict[str, Any], words: str) -> None:
    tasks: list[Task] = []
    with pytest.raises(LDLError, match=words):
        crossvalidate(lambda: tasks.append(softmax()) or tasks[-1], data, trainer=ONCE, **options)
    assert not tasks


def test_folds_in_any_order_are_the_same(data: TabularLDL) -> None:
    """Weights, the trainer's state and the order of the batches begin anew."""
    stopping = EarlyStopping("val_kl", patience=1, min_delta=100)
    several = crossvalidate(softmax, data, [1, 2], trainer={**QUIET, "max_epochs": 5, "callbacks": [stopping]})
    alone = crossvalidate(softmax, data, [2], trainer={**QUIET, "max_epochs": 5, "callbacks": stopping})
    assert json.dumps(several["folds"][1]) == json.dumps(alone["folds"][0])  # NaN equals NaN there
    assert stopping.stopped_epoch == 0


class Spoil(pl.Callback):
    """Makes the first epoch the best one; checkpoints are written whole."""

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert type(trainer.strategy.checkpoint_io) is AtomicCheckpointIO
        for parameter in pl_module.parameters() if trainer.current_epoch else ():
            parameter.data.mul_(-50)


def test_the_best_weights_are_tested(data: TabularLDL, tmp_path: Path) -> None:
    made: list[Task] = []
    options = {"folds": [0], "trainer": {**QUIET, "max_epochs": 2, "callbacks": [Spoil()]}}
    last = crossvalidate(softmax, data, folder=tmp_path / "last", **options)
    options |= {"folder": tmp_path / "best", "select": "best", "key": {"of": "these"}}
    best = crossvalidate(softmax, data, **options)
    assert best["mean"]["kl"] != last["mean"]["kl"]
    again = crossvalidate(lambda: made.append(softmax()) or made[0], data, **options)  # reads the finished fold
    kept = torch.load(tmp_path / "best/fold_0/checkpoints/best.ckpt", weights_only=True)
    assert kept["epoch"] == 0 and again["mean"] == best["mean"]
    torch.testing.assert_close(dict(made[0].state_dict()), dict(kept["state_dict"]), rtol=0, atol=0)


def test_sets_without_folds_say_so(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="BSDS500 has a published split and no folds"):
        crossvalidate(softmax, BSDS500(path=str(bsds(tmp_path)), crop=32), trainer=ONCE)


class Fixed(Identity):
    """As if it had parameters that never change."""

    is_frozen = True


def test_features_of_scaled_rows_are_those_of_the_fold(path: Path) -> None:
    """What is learned of the training part changes the inputs."""
    data = TabularLDL(str(path), scaling="standard", folds=2, val_fraction=0)
    seen = []
    for fold in range(2):
        crossvalidate(lambda: Task(MeanPredictor(), Fixed()), data, [fold], trainer=ONCE)
        assert data.backbone_features is not None
        assert torch.equal(data.backbone_features, data.scaled)
        seen.append(data.scaled)
    assert not torch.equal(*seen)
