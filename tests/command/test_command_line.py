"""A configuration with ``-c`` beside ``--ckpt_path``, through a pipe, and options that append to a list."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fakes.paths import ROOT

from ldl.command import main
from ldl.command.arguments import tokenize, words_of
from ldl.command.command_line import Command, parse_anew
from ldl.command.configs import read_streams
from ldl.errors import LDLError

pytestmark = pytest.mark.usefixtures("blank_charts")

QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one epoch with labels whose names and decoder are not the usual ones."""
    folder = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    np.savez(folder / "a.npz", features=rng.normal(size=(40, 3)), labels=rng.dirichlet(np.ones(3), 40))
    options = [f"--data.path={folder / 'a.npz'}", "--data.label_names=[on, 01, x]", "--data.fold_seed=5"]
    head = ["--model.head=Softmax", "--model.head.hidden=[7]", "--model.decoder=argmax", "--data=TabularLDL"]
    main([*head, *options, "--trainer.max_epochs=1", f"--run_dir={folder / 'run'}", "-c", "logger/csv", *QUIET])
    return folder / "run"


def test_the_last_value_of_an_option_counts() -> None:
    command = Command(tokenize(["--model.lr=-1", "--model.lr", "-2", "--data.path", "x"]))
    assert command.value("model.lr") == "-2" and command.value("model") is None


def written(folder: Path) -> dict[str, Any]:
    return yaml.safe_load((folder / "config.yaml").read_text())


def test_options_of_a_logger_leave_the_rest_to_the_checkpoint(run: Path, tmp_path: Path) -> None:
    last = str(run / "checkpoints/last.ckpt")
    (tmp_path / "part.yaml").write_text("trainer: {enable_progress_bar: false}\n")
    parts = ["-c", "logger/csv", "-c", str(tmp_path / "part.yaml")]
    for stage in ("predict", "test"):
        main(["--stage", stage, "--ckpt_path", last, *parts, "--run_dir", str(tmp_path / stage)])
        one, other = written(tmp_path / stage), written(run)
        assert one["data"] == other["data"] and one["model"]["decoder"] == "argmax"
        assert one["model"]["head"]["init_args"] == other["model"]["head"]["init_args"]
    assert (tmp_path / "predict/predictions.csv").read_text().startswith("index,")


def test_options_of_data_replace_just_these(run: Path, tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text("data: {init_args: {batch_size: 3}}\ntrainer: {max_epochs: 2}\n")
    last = str(run / "checkpoints/last.ckpt")
    args = ["--ckpt_path", last, "-c", str(tmp_path / "part.yaml"), "--run_dir", str(tmp_path / "more")]
    main([*args, *QUIET])
    one, other = written(tmp_path / "more"), written(run)
    assert one["data"]["init_args"] == other["data"]["init_args"] | {"batch_size": 3}
    assert one["model"]["decoder"] == "argmax" and one["trainer"]["max_epochs"] == 2


def test_a_whole_configuration_stands_alone(run: Path, tmp_path: Path) -> None:
    path = run.parent / "a.npz"
    given = {
        "data": {"class_path": "TabularLDL", "init_args": {"path": str(path), "label_names": ["on", "01", "x"]}},
        "model": {"head": {"class_path": "Softmax", "init_args": {"hidden": [7]}}},
    }
    (tmp_path / "whole.yaml").write_text(yaml.safe_dump(given))
    last = str(run / "checkpoints/last.ckpt")
    options = ["--stage=predict", "--ckpt_path", last, "-c", str(tmp_path / "whole.yaml")]
    main([*options, "--run_dir", str(tmp_path / "new"), *QUIET])
    assert written(tmp_path / "new")["data"]["init_args"]["fold_seed"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_configuration_is_read_from_the_standard_input(name: str) -> None:
    command = [sys.executable, "-m", "ldl", "-c", name, "-c", "heads/softmax", "--print_config"]
    text = "data: {class_path: RotatedDigits, init_args: {turns: 3}}\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["data"]["init_args"]["turns"] == 3


def test_a_configuration_is_read_from_a_pipe_once() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"trainer: {max_epochs: 3}\n")
    os.close(writer)
    try:
        args = words_of(read_streams(tokenize(["-c", f"/dev/fd/{reader}", "-c=logger/csv", "--stage", "fit"])))
    finally:
        os.close(reader)
    assert args == ["-c", "trainer: {max_epochs: 3}\n\n", "-c=logger/csv", "--stage", "fit"]
    assert words_of(read_streams(tokenize(args))) == args


def test_a_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    args = ["-c", str(tmp_path / "pipe")]
    assert words_of(read_streams(tokenize(args))) == args
    with pytest.raises(LDLError, match="which is no regular file"):
        parse_anew(args)


def config(*args: str) -> Any:
    return parse_anew(["-c", str(ROOT / "configs/default.yaml"), *args])


def test_a_logger_is_added_to_the_usual_ones(run: Path, tmp_path: Path) -> None:
    """Also by the configuration that the run writes."""
    args = ["--stage=test", "--ckpt_path", str(run / "checkpoints/last.ckpt"), "--wandb.mode=offline"]
    adds = ["--trainer.logger+=pytorch_lightning.loggers.CSVLogger", f"--trainer.logger.save_dir={tmp_path / 'csv'}"]
    main([*args, *adds, "--run_dir", str(tmp_path / "new")])
    assert (tmp_path / "new/metrics.csv").is_file() and list((tmp_path / "new/wandb").glob("offline-run-*"))
    assert list((tmp_path / "csv").rglob("metrics.csv"))
    main(["-c", str(tmp_path / "new/config.yaml"), "--run_dir", str(tmp_path / "again")])
    assert (tmp_path / "again/metrics.csv").is_file() and list((tmp_path / "again/wandb").glob("offline-run-*"))
    named = [
        each.class_path.rpartition(".")[2]
        for each in config("--trainer.logger=false", adds[0], adds[1]).values.trainer.logger
    ]
    assert named == ["CSVLogger"]


def test_callbacks_are_added_to_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("trainer: {callbacks: [{class_path: Timer}]}\n")
    adds = ["--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor=val_kl"]
    callbacks = config("-c", str(tmp_path / "a.yaml"), *adds).values.trainer.callbacks
    assert [each.class_path.rpartition(".")[2] for each in callbacks] == ["Timer", "EarlyStopping"]
    assert callbacks[1].init_args.monitor == "val_kl"
