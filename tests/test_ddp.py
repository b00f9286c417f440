"""The law of several processes: two give the same leaves, weights and metrics as one on the same global batches."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.data.rotated_digits import RotatedDigits
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace

ROOT = Path(__file__).parents[1]
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
        "--trainer.max_epochs",
        "1",
    ],
    "mean": ["--model.head", "test_ddp.RampPredictor"],
}


class RampPredictor(FittedHead):
    """A mean in which later rows weigh more: it tells whether rows were dropped, doubled or in another order."""

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.register_buffer("mean", torch.full((len(labels),), 1 / len(labels)))
        self.register_buffer("brightness", torch.zeros(in_features))

    def fit(self, features: Tensor, target: Tensor, collective: Collective) -> None:
        ramp = torch.arange(1.0, len(target) + 1, dtype=torch.float64)
        self.mean.copy_(ramp @ target.double() / ramp.sum())
        self.brightness.copy_(ramp @ features.double() / ramp.sum())

    def forward(self, features: Tensor) -> Tensor:
        return self.mean.expand(*features.shape[:-1], -1)


def launch(command: Sequence[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "tests"), **environment}
    for name in ("PL_GLOBAL_SEED", "LDL_RUN_DIR", "LOCAL_RANK", "WORLD_SIZE"):
        env.pop(name, None)
    return subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def succeed(command: Sequence[str], folder: Path) -> None:
    done = launch(command, folder)
    assert done.returncode == 0, done.stderr[-3000:]


def command_lines(folder: Path, *options: str) -> list[list[str]]:
    return [[*RUN, *head, *options, "--run_dir", str(folder / name)] for name, head in HEADS.items()]


CROSSVAL = [
    *(*LEAVES, "--model.head.batches", "5", "--trainer.max_epochs", "1"),
    *("--data.folds", "2", "--data.batch_size", "75", "--stage", "crossval"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders one/ and two/ with the same runs by one process and by two, which torchrun started.

    The two processes end with a run whose data are refused; stderr.txt is what they said.
    """
    folder = tmp_path_factory.mktemp("ddp")
    one, two = folder / "one.json", folder / "two.json"
    one.write_text(
        json.dumps([*command_lines(folder / "one"), [*RUN, *CROSSVAL, "--run_dir", str(folder / "one" / "crossval")]])
    )
    two.write_text(json.dumps([*command_lines(folder / "two", *TWO), [*RUN, *TWO, "--data.step", "7"]]))
    script = str(ROOT / "tests" / "several_runs.py")
    succeed([script, str(one)], folder)
    done = launch(["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", script, str(two)], folder)
    (folder / "stderr.txt").write_text(done.stderr)
    return folder


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


@pytest.mark.parametrize("head", HEADS)
def test_two_processes_end_with_the_weights_and_leaves_of_one(runs: Path, head: str) -> None:
    one, two = weights(runs / "one" / head), weights(runs / "two" / head)
    assert list(one) == list(two)
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=TOLERANCE, atol=TOLERANCE, msg=name)


@pytest.mark.parametrize("head", HEADS)
def test_two_processes_measure_what_one_measures(runs: Path, head: str) -> None:
    one, two = runs / "one" / head, runs / "two" / head
    assert_close(*(without_times(json.loads((run / "results.json").read_text())) for run in (one, two)))
    assert_close(logged(one / "metrics.csv"), logged(two / "metrics.csv"))


@pytest.mark.parametrize("head", HEADS)
def test_two_processes_predict_every_test_instance_once_in_order(runs: Path, head: str) -> None:
    one, two = (logged(runs / number / head / "predictions.csv") for number in ("one", "two"))
    index = [row["index"] for row in two]
    assert len(index) == 599 and index == sorted(set(index))
    assert_close(one, two)


def test_metrics_count_real_rows_alone(runs: Path) -> None:
    """Computed anew from the predictions: a padding row in the mean would show."""
    rows = logged(runs / "two" / "softmax" / "predictions.csv")
    errors = np.array([abs(row["predicted_value"] - row["value"]) for row in rows])
    metrics = json.loads((runs / "two" / "softmax" / "results.json").read_text())["mean"]
    assert metrics["mae"] == pytest.approx(errors.mean(), rel=1e-4)
    assert metrics["cs5"] == pytest.approx((errors <= 5).mean(), abs=1e-9)


def test_leaves_were_updated_several_times(runs: Path) -> None:
    checkpoint = torch.load(runs / "two" / "ldlf" / "checkpoints" / "last.ckpt", weights_only=True)
    leaves = checkpoint["state_dict"]["head.leaves"]
    assert (leaves - 1 / leaves.shape[-1]).abs().max() > 0.01
    # 94 batches, one update every 10: 4 were seen since the ninth, and the ring holds the last 10.
    assert int(checkpoint["state_dict"]["head.steps"]) == 94
    assert int(checkpoint["leaf_update"]["observed"]) == 4
    assert checkpoint["leaf_update"]["rows"].tolist() == [23] * 9 + [1]


def test_gathered_ring_has_the_rows_of_one_process_in_order(runs: Path) -> None:
    one, two = (
        torch.load(runs / n / "ldlf" / "checkpoints" / "last.ckpt", weights_only=True)["leaf_update"]
        for n in ("one", "two")
    )
    assert torch.equal(one["target"], two["target"])
    torch.testing.assert_close(two["kept"], one["kept"], rtol=TOLERANCE, atol=TOLERANCE)


def test_crossval_of_two_processes_ends_with_the_results_of_one(runs: Path, tmp_path: Path) -> None:
    succeed([str(ROOT / "train.py"), *RUN, *CROSSVAL, *TWO, "--run_dir", "run"], tmp_path)
    one, two = (json.loads((run / "results.json").read_text()) for run in (runs / "one" / "crossval", tmp_path / "run"))
    assert [fold["fold"] for fold in two["folds"]] == [0, 1]
    assert_close(without_times(one), without_times(two))
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["charts", "fold_0", "fold_1", "results.json"]


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


def test_bad_setting_is_said_once_by_two_processes(runs: Path) -> None:
    said = (runs / "stderr.txt").read_text()
    assert re.findall(r"^error:.*$", said, re.MULTILINE) == ["error: data.step 7 must divide max_angle 120"], said[
        -3000:
    ]
    assert len(re.findall(r"exitcode *: 2 ", said)) == 1, said[-3000:]


def test_data_error_in_one_share_ends_all_processes_with_one_line(tmp_path: Path) -> None:
    damaged = ["--data", "test_ddp.DamagedDigits", "--data.num_workers", "1"]
    done = launch([str(ROOT / "train.py"), *RUN, *HEADS["softmax"], *TWO, *damaged, "--run_dir", "run"], tmp_path)
    assert done.returncode == 2, done.stderr[-3000:]
    assert re.findall(r"^error:.*$", done.stderr, re.MULTILINE) == [
        "error: digit.png cannot be read as an image; replace the file"
    ]
    assert "Traceback" not in done.stderr
