"""Lightning's callbacks have the same effect from the command line as from Python, and in two processes as in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
import yaml
from fakes.forks import run_several
from fakes.processes import TWO
from pytorch_lightning import callbacks as lightning

from ldl.command import main
from ldl.data import TabularLDL
from ldl.heads import Softmax
from ldl.task import Task

pytestmark = pytest.mark.slow

CALLBACKS: dict[str, dict[str, Any]] = {
    "StochasticWeightAveraging": {"swa_lrs": 0.5, "swa_epoch_start": 2},
    "EMAWeightAveraging": {"decay": 0.9, "use_buffers": False},
    "EarlyStopping": {"monitor": "val_kl", "patience": 1, "min_delta": 10.0},
    "BatchSizeFinder": {"init_val": 4, "max_trials": 2, "steps_per_trial": 1},
}
"""Callbacks with their arguments."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    file = tmp_path_factory.mktemp("lightning") / "table.npz"
    np.savez(file, features=rng.normal(size=(50, 5)), labels=rng.dirichlet(np.ones(3), 50))
    return file


def options(table: Path) -> dict[str, Any]:
    return {"path": str(table), "batch_size": 4, "folds": 5, "val_fraction": 0.2}


def from_command_line(table: Path, folder: Path, *callbacks: dict[str, Any], **trainer: Any) -> dict[str, Any]:
    """The last checkpoint of a run."""
    config = {
        "data": {"class_path": "TabularLDL", "init_args": options(table)},
        "model": {"head": "Softmax", "optimizer": {"class_path": "SGD", "init_args": {"lr": 0.5}}},
        "trainer": {
            "accelerator": "cpu", "max_epochs": 4, "logger": False, "enable_progress_bar": False,
            "callbacks": list(callbacks), **trainer,
        },
        "run_dir": str(folder),
    }  # fmt: skip
    (folder.parent / "config.yaml").write_text(yaml.safe_dump(config))
    main(["-c", str(folder.parent / "config.yaml")])
    return torch.load(folder / "checkpoints/last.ckpt", weights_only=True)


def from_python(table: Path, folder: Path, *callbacks: pl.Callback) -> dict[str, Any]:
    pl.seed_everything(0, verbose=False)
    task = Task(Softmax(), optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.5))
    trainer = pl.Trainer(
        accelerator="cpu", max_epochs=4, logger=False, enable_progress_bar=False, enable_model_summary=False,
        use_distributed_sampler=False, enable_checkpointing=False, callbacks=list(callbacks),
    )  # fmt: skip
    trainer.fit(task, datamodule=TabularLDL(**options(table)))
    trainer.save_checkpoint(folder / "python.ckpt")
    return torch.load(folder / "python.ckpt", weights_only=True)


def same_weights(one: dict[str, Any], other: dict[str, Any]) -> bool:
    names = [name for name in one["state_dict"] if name.startswith(("head.", "backbone."))]
    return all(torch.equal(one["state_dict"][name], other["state_dict"][name]) for name in names)


@pytest.mark.parametrize("name", CALLBACKS)
def test_the_command_line_gives_the_weights_of_python(name: str, table: Path, tmp_path: Path, blank: None) -> None:
    arguments = CALLBACKS[name]
    found = from_command_line(table, tmp_path / "run", {"class_path": name, "init_args": arguments})
    expected = from_python(table, tmp_path, getattr(lightning, name)(**arguments))
    assert found["global_step"] == expected["global_step"]
    assert same_weights(found, expected)


def test_two_processes_average_as_one(table: Path, tmp_path: Path, blank: None) -> None:
    """Equal up to the order of summation."""
    name = "EMAWeightAveraging"
    from_command_line(table, tmp_path / "one", {"class_path": name, "init_args": CALLBACKS[name]})
    config = ["-c", str(tmp_path / "config.yaml"), *TWO, "--run_dir", str(tmp_path / "two")]
    run_several([config], tmp_path)
    one, two = (torch.load(tmp_path / run / "checkpoints/last.ckpt", weights_only=True) for run in ("one", "two"))
    for key, value in one["state_dict"].items():
        if key.startswith("head."):
            torch.testing.assert_close(two["state_dict"][key], value, rtol=1e-4, atol=1e-5, msg=key)
