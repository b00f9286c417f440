"""Runs in processes of their own, one or several, and how their outcomes are compared."""

from __future__ import annotations

import contextlib
import csv
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fakes.paths import ROOT
from ldl.collective import Collective
from ldl.command import main
from ldl.data.base import Loaded
from ldl.data.synthetic import RotatedDigits
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows

TOLERANCE = 1e-5

# 1059 training, 139 validation and 599 test instances are 1 more than a multiple of 23, which is odd: every batch is
# uneven, and the last of every pass has one row, so that the second process holds nothing but padding.
DATA = [
    "--data",
    "RotatedDigits",
    "--data.turns",
    "1",
    "--data.folds",
    "3",
    "--data.val_fraction",
    "0.116",
    "--data.batch_size",
    "23",
]

RUN = [
    *("-c", str(ROOT / "configs" / "default.yaml"), "--wandb.mode", "disabled", "--trainer.accelerator", "cpu"),
    *(
        "--trainer.enable_progress_bar",
        "false",
        "--trainer.enable_model_summary",
        "false",
        "--trainer.log_every_n_steps",
        "10",
    ),
    *(
        "--trainer.precision",
        "64-true",
        "--model.optimizer",
        "SGD",
        "--model.optimizer.lr",
        "0.5",
        "--model.lr_scheduler",
        "null",
        *DATA,
    ),
]

TWO = ["--trainer.devices", "2", "--trainer.strategy", "ddp"]

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]

LEAVES = ["--model.head", "LDLF", "--model.head.trees", "2", "--model.head.depth", "4", "--model.head.outputs", "9"]

HEADS = {
    "ldlf": [*LEAVES, "--model.head.batches", "10", "--trainer.max_epochs", "2"],
    "softmax": [
        "--model.head",
        "Softmax",
        "--model.head.objective",
        "dldl_v2",
        "--model.head.expectation_weight",
        "0.01",
        "--model.calibrate",
        "true",
        "--trainer.max_epochs",
        "1",
    ],
    # All that an optimiser step goes through; a layer more, and a rate that falls by what the validation measures.
    "steps": [
        *("--model.head", "Softmax", "--model.head.hidden", "[16]", "--trainer.max_epochs", "3"),
        *("--trainer.accumulate_grad_batches", "3", "--trainer.gradient_clip_val", "0.1"),
        *("--model.optimizer", "AdamW", "--model.optimizer.lr", "0.01"),
        *("--model.lr_scheduler", "torch.optim.lr_scheduler.ReduceLROnPlateau", "--model.lr_scheduler.patience", "0"),
        *("--model.lr_scheduler.threshold", "0.9"),
    ],
    "mean": ["--model.head", "fakes.processes.RampPredictor"],
    # Every row has another weight, in training and in metrics.
    "weighted": [
        *(
            "--data",
            "fakes.processes.WeightedDigits",
            *LEAVES,
            "--model.head.batches",
            "10",
            "--trainer.max_epochs",
            "1",
        ),
        *("--model.mixup", "0", "--model.calibrate", "true"),
    ],
    "weighted_mean": ["--data", "fakes.processes.WeightedDigits", "--model.head", "MeanPredictor"],
}


class RampPredictor(FittedHead):
    """A mean in which later rows weigh more: it tells whether rows were dropped, doubled or in another order."""

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.register_buffer("mean", torch.full((len(labels),), 1 / len(labels)))
        self.register_buffer("brightness", torch.zeros(in_features))

    def fit(self, rows: Rows, collective: Collective) -> None:
        ramp = torch.arange(1.0, len(rows) + 1, dtype=torch.float64)
        self.mean.copy_(ramp @ rows.target.double() / ramp.sum())
        self.brightness.copy_(ramp @ rows.features.double() / ramp.sum())

    def forward(self, features: Tensor) -> Tensor:
        return self.mean.expand(*features.shape[:-1], -1)


def launch(command: Sequence[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", **environment}
    for name in ("PL_GLOBAL_SEED", "LDL_RUN_DIR", "LOCAL_RANK", "WORLD_SIZE"):
        env.pop(name, None)
    return subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def run_here(arguments: Sequence[str], folder: Path) -> None:
    """A run of this process, which has paid for the imports."""
    with contextlib.chdir(folder):
        main(list(arguments))


def weights(run: Path) -> dict[str, Tensor]:
    return torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]


def logged(path: Path) -> list[dict[str, float]]:
    with path.open() as file:
        return [
            {name: float(value) for name, value in row.items() if value and ":" not in value}
            for row in csv.DictReader(file)
        ]


def without_times(results: Any) -> Any:
    return {name: value for name, value in results.items() if name != "fit_seconds"}


def assert_close(one: Any, two: Any) -> None:
    """Equal but for rounding, at any depth."""
    if isinstance(one, dict):
        assert list(one) == list(two)
        for name in one:
            assert_close(one[name], two[name])
    elif isinstance(one, list):
        assert len(one) == len(two)
        for pair in zip(one, two):
            assert_close(*pair)
    else:
        assert one == (pytest.approx(two, rel=TOLERANCE, abs=TOLERANCE, nan_ok=True) if isinstance(one, float) else two)


class WeightedDigits(RotatedDigits):
    """Instances with weights of several magnitudes."""

    def load(self) -> Loaded:
        loaded = super().load()
        weight = 10 ** np.random.default_rng(0).normal(0, 0.3, loaded.size)
        return replace(loaded, columns={**loaded.columns, "weight": torch.tensor(weight, dtype=torch.float32)})


class DamagedDigits(RotatedDigits):
    """One instance, of the second process's share, cannot be read."""

    def dataset(self, rows: np.ndarray, train: bool) -> Any:
        return _Damaged(super().dataset(rows, train), self.split.train)


class _Damaged(torch.utils.data.Dataset[Any]):
    def __init__(self, instances: Any, rows: np.ndarray) -> None:
        self.instances = instances
        order = np.random.default_rng([0, 0]).permutation(len(rows))
        self.bad = int(order[23 * 2 + 1])

    def __getitem__(self, draw: Any) -> Any:
        if draw.row == self.bad:
            raise LDLError("digit.png cannot be read as an image; replace the file")
        return self.instances[draw]

    def __len__(self) -> int:
        return len(self.instances)
