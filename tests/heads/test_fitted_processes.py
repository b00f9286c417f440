"""Fitted heads on the command line: two processes, which share their work, end with what one ends with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes.forks import run_several
from fakes.paths import ROOT
from fakes.pool import pool_run
from fakes.processes import TWO, assert_close, run_here, weights, without_times

pytestmark = [pytest.mark.usefixtures("blank_charts"), pytest.mark.slow]

DSNA = """
model:
  head:
    class_path: DSNA
    init_args: {trees: 3, features: 1.0, log_offset: 2.0, min_samples: 20, rounds: 1, kernel: sum}
data: {class_path: TabularValues, init_args: {path: ages.npz, folds: 4, scaling: none, val_fraction: 0}}
trainer: {max_epochs: 1, accelerator: cpu, enable_progress_bar: false, log_every_n_steps: 1}
wandb: {mode: disabled}
"""

BOOSTED = [
    *("-c", str(ROOT / "configs/runs/tabular/boostedtrees.yaml"), "--data.path=missing.npz", "--data.missing=keep"),
    *("--model.head.rounds=4", "--model.head.depth=2", "--model.head.learning_rate=0.3"),
    *("--trainer.enable_progress_bar=false", "--wandb.mode=disabled", "--trainer.accelerator=cpu"),
]

STRUCTRF = [
    *("-c", str(ROOT / "configs/runs/tabular/structrf_paper.yaml"), "--data.path=table.npz", "--model.head.trees=5"),
    *("--trainer.enable_progress_bar=false", "--wandb.mode=disabled", "--trainer.accelerator=cpu"),
]

RUNS = {"dsna": ["-c", "dsna.yaml"], "pool": ["-c", "run.yaml"], "boosted": BOOSTED, "structrf": STRUCTRF}

TREES = {"dsna": 3, "boosted": 4, "structrf": 5}


def ages(folder: Path) -> None:
    """121 rows and 3 trees: uneven shares of both."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(121, 5))
    age = np.clip(np.round(20 + 8 * features[:, 0] + 3 * features[:, 1]), 0, 50)
    np.savez(folder / "ages.npz", features=features, age=age, person=np.arange(121) // 6)
    (folder / "dsna.yaml").write_text(DSNA)


def missing(folder: Path) -> None:
    """201 rows, of whose 7 features a tenth is missing."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(201, 7))
    scores = np.exp(2 * features[:, :4] + 0.3 * rng.normal(size=(201, 4)))
    features[rng.random(features.shape) < 0.1] = np.nan
    np.savez(folder / "missing.npz", features=features, labels=scores / scores.sum(1, keepdims=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders one/ and two/ with the same runs by one process and by two, which torchrun started once for all."""
    folder = pool_run(tmp_path_factory.mktemp("fitted"))
    ages(folder)
    missing(folder)
    for name, command in RUNS.items():
        run_here([*command, "--run_dir", f"one/{name}"], folder)
    run_several([[*command, *TWO, "--run_dir", f"two/{name}"] for name, command in RUNS.items()], folder)
    return folder


def results(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads((folder / count / name / "results.json").read_text()) for count in ("one", "two")]


def same_trees(folder: Path, name: str, several: str) -> None:
    one, other = (weights(folder / count / name) for count in ("one", several))
    assert len(one["head.roots"]) == TREES[name]
    assert list(one) == list(other)
    for key, tensor in one.items():
        assert torch.equal(other[key], tensor), key


@pytest.mark.parametrize("name", TREES)
def test_two_processes_grow_the_trees_of_one(folder: Path, name: str) -> None:
    same_trees(folder, name, "two")


def test_three_processes_grow_the_trees_of_one(folder: Path) -> None:
    """Two, two and one."""
    three = ["--trainer.devices=3", "--trainer.strategy=ddp", "--run_dir", "three/structrf"]
    run_several([[*STRUCTRF, *three]], folder, 3)
    same_trees(folder, "structrf", "three")


def test_two_processes_give_the_pool_of_one(folder: Path) -> None:
    one, two = (weights(folder / count / "pool") for count in ("one", "two"))
    assert list(one) == list(two)
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=0, atol=1e-4, equal_nan=True)
    assert (one["head.weights"] > 0).sum() > 1
    logged = (folder / "one/pool/metrics.csv").read_text()
    assert all(f"weight_{name}" in logged for name in ("StructRF", "Softmax", "MaxEnt"))


@pytest.mark.parametrize("name", RUNS)
def test_two_processes_measure_what_one_measures(folder: Path, name: str) -> None:
    assert_close(*(without_times(each["mean"]) for each in results(folder, name)))
