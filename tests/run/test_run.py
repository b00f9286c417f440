"""The command line: what a run leaves behind, stages."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest
import torch
from fakes.paths import ROOT

from ldl.command import main
from ldl.task import Task

SMALL = [
    "--data.turns=1", "--data.folds=3", "--trainer.max_epochs=2", "--trainer.enable_progress_bar=false",
    "--model.head.trees=2", "--model.head.depth=3", "--model.head.hidden=[8]", "--wandb.mode=disabled",
]  # fmt: skip
TEN = [
    "kl", "chebyshev", "clark", "canberra", "cosine", "intersection", "euclidean", "sorensen", "squared_chi2",
    "fidelity",
]  # fmt: skip
CHARTS = {
    "distributions",
    "values",
    "cumulative_score",
    "calibration",
    "leaves",
    "learning_curves",
    "pictures",
    "intervals",
}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the default configuration, made small."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    main([*SMALL, "--run_dir", str(folder)])
    return folder


def _results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def test_results(run_dir: Path) -> None:
    results = _results(run_dir)
    assert {
        "head",
        "data",
        "protocol",
        "leaky",
        "seed",
        "folds",
        "mean",
        "std",
        "fit_seconds",
        "versions",
    } <= results.keys()
    assert (results["head"], results["data"], results["leaky"], results["seed"]) == ("LDLF", "RotatedDigits", False, 0)
    (fold,) = results["folds"]
    assert fold["n_train"] + fold["n_val"] + fold["n_test"] == 1797
    assert fold["leak"] == 0
    assert list(fold["metrics"])[:10] == TEN and {"mae", "rmse", "cs5"} <= fold["metrics"].keys()
    assert results["mean"] == fold["metrics"] and set(results["std"].values()) == {0.0, None}
    assert results["std"]["mae_many"] is None and fold["metrics"]["n_many"] == 0


def test_files(run_dir: Path) -> None:
    assert {path.name for path in (run_dir / "checkpoints").iterdir()} == {"last.ckpt", "best.ckpt"}
    charts = {path.stem: matplotlib.image.imread(path) for path in (run_dir / "charts").iterdir()}
    assert charts.keys() == CHARTS
    assert all(min(image.shape[:2]) > 200 and image.std() > 0.01 for image in charts.values())
    rows = list(csv.DictReader((run_dir / "metrics.csv").open()))
    assert {"epoch", "train_loss", "val_kl", "test_kl"} <= rows[0].keys()


def test_predictions_are_those_of_the_results(run_dir: Path) -> None:
    rows = list(csv.DictReader((run_dir / "predictions.csv").open()))
    assert len(rows) == _results(run_dir)["folds"][0]["n_test"] == len({row["index"] for row in rows})
    errors = [abs(float(row["value"]) - float(row["predicted_value"])) for row in rows]
    assert sum(errors) / len(errors) == pytest.approx(_results(run_dir)["mean"]["mae"], rel=1e-5)
    total = sum(float(value) for name, value in rows[0].items() if name.startswith("prediction:"))
    assert total == pytest.approx(1, abs=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("blank")
def test_config_repeats_the_run(run_dir: Path, tmp_path: Path) -> None:
    main(["-c", str(run_dir / "config.yaml"), "--run_dir", str(tmp_path / "again")])
    assert _results(tmp_path / "again")["mean"] == _results(run_dir)["mean"]


@pytest.mark.slow
@pytest.mark.usefixtures("blank")
def test_checkpoint_is_tested_alone(run_dir: Path, tmp_path: Path) -> None:
    checkpoint = run_dir / "checkpoints/last.ckpt"
    main(["--stage=test", "--ckpt_path", str(checkpoint), "--run_dir", str(tmp_path / "test")])
    assert _results(tmp_path / "test")["mean"] == _results(run_dir)["mean"]
    main(["--stage=predict", "--ckpt_path", str(checkpoint), "--run_dir", str(tmp_path / "predict")])
    tested, predicted = (
        list(csv.DictReader((folder / "predictions.csv").open())) for folder in (run_dir, tmp_path / "predict")
    )
    assert len(tested) == len(predicted) > 0
    assert all(row == {name: more[name] for name in row} for row, more in zip(tested, predicted))
    assert Task.load_from_checkpoint(checkpoint).labels.unit == "degrees"
    assert torch.load(checkpoint, weights_only=True)["epoch"] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("blank")
def test_resume_goes_on_in_its_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half a run and the rest of it are one run: its checkpoints, its best one, its curves, its configuration."""
    # A schedule as long as the run would fall to zero in each half.
    options = [*SMALL, "--select=best", "--model.lr_scheduler.T_max=4"]
    main([*options, "--trainer.max_epochs=4", "--run_dir", str(tmp_path / "whole")])
    main([*options, "--run_dir", str(tmp_path / "half")])
    last = str(tmp_path / "half/checkpoints/last.ckpt")
    with pytest.raises(SystemExit):
        main(["--ckpt_path", last, "--trainer.max_epochs=4", "--run_dir", str(tmp_path / "elsewhere")])
    assert "--select best" in capsys.readouterr().err
    main(["--ckpt_path", last, "--trainer.max_epochs=4"])
    assert _results(tmp_path / "half")["mean"] == _results(tmp_path / "whole")["mean"]
    curves = [
        [
            (row["epoch"], row["val_kl"])
            for row in csv.DictReader((tmp_path / name / "metrics.csv").open())
            if row["val_kl"]
        ]
        for name in ("half", "whole")
    ]
    assert curves[0] == curves[1] and len(curves[0]) == 4


def test_another_head_is_not_resumed(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(
            [
                "--ckpt_path",
                str(run_dir / "checkpoints/last.ckpt"),
                "--model.head=Softmax",
                "--run_dir",
                str(tmp_path / "run"),
            ]
        )
    assert "the checkpoint's head has LDLF instead of Softmax" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(
            [
                "--ckpt_path",
                str(run_dir / "checkpoints/last.ckpt"),
                "--model.head.trees=3",
                "--run_dir",
                str(tmp_path / "run"),
            ]
        )
    assert "trees 2 instead of 3" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("blank")
def test_best_checkpoint_is_tested_when_selected(tmp_path: Path) -> None:
    main([*SMALL, "--select=best", "--model.optimizer.lr=1", "--trainer.max_epochs=4", "--run_dir", str(tmp_path)])
    rows = [row for row in csv.DictReader((tmp_path / "metrics.csv").open()) if row["val_kl"]]
    best = min(range(4), key=lambda epoch: float(rows[epoch]["val_kl"]))
    assert torch.load(tmp_path / "checkpoints/best.ckpt", weights_only=True)["epoch"] == best
    main(["--stage=test", "--ckpt_path", str(tmp_path / "checkpoints/best.ckpt"), "--run_dir", str(tmp_path / "test")])
    assert _results(tmp_path / "test")["mean"] == _results(tmp_path)["mean"]


@pytest.mark.slow
@pytest.mark.usefixtures("blank")
def test_callbacks_of_the_configuration_come_first(tmp_path: Path) -> None:
    """One's own checkpoints by the same rule as ours, a second progress bar, early stopping."""
    own = tmp_path / "own.yaml"
    own.write_text(
        "trainer:\n  callbacks:\n"
        f"  - {{class_path: ModelCheckpoint, init_args: {{dirpath: {tmp_path}/mine, monitor: val_kl, mode: min}}}}\n"
        "  - {class_path: RichProgressBar, init_args: {leave: true}}\n"
        "  - {class_path: EarlyStopping, init_args: {monitor: val_kl, patience: 1, min_delta: 100}}\n"
    )
    options = [option for option in SMALL if "progress_bar" not in option and "epochs" not in option]
    more = ["-c", str(ROOT / "configs/default.yaml"), "-c", str(own), "--trainer.max_epochs=9", "--select=best"]
    main([*more, *options, "--run_dir", str(tmp_path / "run")])
    assert torch.load(tmp_path / "run/checkpoints/last.ckpt", weights_only=True)["epoch"] == 1
    (mine,) = (tmp_path / "mine").iterdir()
    main(["--stage=test", "--ckpt_path", str(mine), "--data.turns=1", "--data.folds=3", "--model.decoder=median"]
         + ["--wandb.mode=disabled", "--run_dir", str(tmp_path / "test")])  # fmt: skip
    assert _results(tmp_path / "test")["mean"] == _results(tmp_path / "run")["mean"]


@pytest.mark.slow
def test_script_from_an_empty_folder(tmp_path: Path) -> None:
    """``train.py`` as a script, offline wandb by itself, its own run directory."""
    options = [option for option in SMALL if "wandb" not in option]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), *options],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert (done.stdout + done.stderr).count("wandb") == 4  # its one line: what to do, and the folder
    assert "leaked" not in done.stderr  # as triton says at the end of a process that has not cleared away
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_RotatedDigits_LDLF", folder.name)
    assert _results(folder)["mean"]["kl"] > 0
    assert f"{folder.relative_to(tmp_path)}/results.json" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} <= {"runs", ".cache", ".config", ".local"}
    (offline,) = (folder / "wandb").glob("offline-run-*")
    media = {
        path.name.rpartition("_")[0].rpartition("_")[0] for path in (offline / "files/media/images/charts").iterdir()
    }
    assert media == CHARTS
    assert list((offline / "files/media/table").glob("predictions*.json"))


@pytest.mark.slow
@pytest.mark.usefixtures("blank")
def test_a_named_logger_leaves_metrics_csv_and_intervals_may_be_shares(tmp_path: Path) -> None:
    logger = {"class_path": "pytorch_lightning.loggers.CSVLogger", "init_args": {"save_dir": str(tmp_path / "own")}}
    options = ["--trainer.val_check_interval", "0.5", "--trainer.logger", json.dumps(logger)]
    main([*SMALL, *options, "--trainer.max_epochs=1", "--run_dir", str(tmp_path / "run")])
    rows = list(csv.DictReader((tmp_path / "run" / "metrics.csv").open()))
    steps = [int(row["step"]) for row in rows if row["val_kl"]]
    assert len(steps) == 2 and abs(steps[1] - 2 * steps[0]) <= 2
    assert list((tmp_path / "own").rglob("metrics.csv"))
