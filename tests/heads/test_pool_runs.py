"""Pools from YAML: folds, checkpoints, one process and two."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from places import ROOT
from processes import assert_close, run_here, succeed, without_times

from ldl.cli import main
from ldl.heads import Pool
from ldl.task import Task

RUN = """
model:
  head:
    class_path: Pool
    init_args:
      folds: 3
      members:
        - {class_path: StructRF, init_args: {trees: 5, depth: 4, out_of_bag: false}}
        - class_path: Trained
          init_args: {epochs: 4, repeats: 3, scaling: standard, head: {class_path: Softmax, init_args: {hidden: [4]}}}
        - MaxEnt
data: {class_path: TabularLDL, init_args: {path: table.npz, folds: 2, scaling: none, val_fraction: 0}}
trainer: {max_epochs: 1, accelerator: cpu, enable_progress_bar: false, log_every_n_steps: 1}
wandb: {mode: disabled}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(91, 4))
    scores = np.exp(features[:, :3] + features[:, 1:] ** 2 + rng.normal(size=(91, 3)))
    np.savez(tmp_path / "table.npz", features=features, labels=scores / scores.sum(1, keepdims=True))
    (tmp_path / "run.yaml").write_text(RUN)
    return tmp_path


def test_two_processes_give_the_pool_of_one(folder: Path) -> None:
    run_here(["-c", "run.yaml", "--run_dir", "one"], folder)
    both = ["--trainer.devices=2", "--trainer.strategy=ddp"]
    succeed([str(ROOT / "train.py"), "-c", "run.yaml", "--run_dir", "two", *both], folder)
    one, two = (Task.load_from_checkpoint(folder / f"{name}/checkpoints/last.ckpt") for name in ("one", "two"))
    for name, tensor in one.state_dict().items():
        torch.testing.assert_close(two.state_dict()[name], tensor, rtol=0, atol=1e-4, equal_nan=True)
    results = [json.loads((folder / f"{name}/results.json").read_text())["mean"] for name in ("one", "two")]
    assert_close(*map(without_times, results))
    assert isinstance(one.head, Pool) and (one.head.weights > 0).sum() > 1
    logged = (folder / "one/metrics.csv").read_text()
    assert all(f"weight_{name}" in logged for name in ("StructRF", "Softmax", "MaxEnt"))


def test_folds_and_a_test_of_one_of_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_here(["-c", "run.yaml", "--stage", "crossval", "--run_dir", "folds"], folder)
    results = json.loads((folder / "folds/results.json").read_text())
    assert results["head"] == "Pool" and len(results["folds"]) == 2
    last = ["--ckpt_path", "folds/fold_1/checkpoints/last.ckpt"]
    run_here(["-c", "run.yaml", "--stage", "test", *last, "--data.fold", "1", "--run_dir", "test"], folder)
    again = json.loads((folder / "test/results.json").read_text())
    assert again["mean"]["kl"] == pytest.approx(results["folds"][1]["metrics"]["kl"], abs=1e-6)
    other = RUN.replace("hidden: [4]", "hidden: [5]")
    (folder / "other.yaml").write_text(other)
    with pytest.raises(SystemExit):
        main(["-c", str(folder / "other.yaml"), "--data.path", str(folder / "table.npz"), "--data.fold", "1",
              "--ckpt_path", str(folder / last[1]), "--run_dir", str(folder / "other")])  # fmt: skip
    assert "members[1].head.hidden [4] instead of [5]" in capsys.readouterr().err


def test_a_member_that_is_none_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.yaml").write_text(RUN.replace("- MaxEnt", "- {class_path: MaxEnt, init_args: {l2: -1}}"))
    with pytest.raises(SystemExit):
        main(
            ["-c", str(folder / "wrong.yaml"), "--data.path", str(folder / "table.npz"), "--run_dir", str(folder / "w")]
        )
    assert "Pool.members[2] MaxEnt: MaxEnt.l2 -1.0 must be at least 0" in capsys.readouterr().err
