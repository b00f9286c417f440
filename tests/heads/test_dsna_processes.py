"""DSNA on the command line, in one process and in two."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from places import ROOT
from processes import run_here, succeed

RUN = """
model:
  head: {class_path: DSNA, init_args: {trees: 3, features: 1.0, log_offset: 2.0, min_samples: 20, rounds: 1}}
data: {class_path: TabularValues, init_args: {path: table.npz, folds: 4, scaling: none, val_fraction: 0}}
trainer: {max_epochs: 1, accelerator: cpu, enable_progress_bar: false, log_every_n_steps: 1}
"""


def test_processes_share_the_trees_of_one_forest(tmp_path: Path) -> None:
    """Uneven shares of 3 trees and of the rows."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(121, 5))
    ages = np.clip(np.round(20 + 8 * features[:, 0] + 3 * features[:, 1]), 0, 50)
    np.savez(tmp_path / "table.npz", features=features, age=ages, person=np.arange(121) // 6)
    (tmp_path / "run.yaml").write_text(RUN)
    states = []
    for count in (1, 2):
        command = ["-c", "run.yaml", "--run_dir", f"run{count}", "--wandb.mode=disabled"]
        command += [f"--trainer.devices={count}", "--trainer.strategy=ddp"] if count > 1 else []
        if count == 1:
            run_here(command, tmp_path)
        else:
            succeed([str(ROOT / "train.py"), *command], tmp_path)
        checkpoint = torch.load(tmp_path / f"run{count}/checkpoints/last.ckpt", weights_only=True)
        states.append(checkpoint["state_dict"])
        results = json.loads((tmp_path / f"run{count}/results.json").read_text())
        assert results["mean"]["mae"] < 4 and results["protocol"] == "group_exclusive" and results["leaky"] is False
    assert len(states[0]["head.roots"]) == 3
    assert list(states[0]) == list(states[1])
    for name, tensor in states[0].items():
        assert torch.equal(states[1][name], tensor), name
    # The values themselves were fitted, not the means of the distributions, which the ends of the labels bend.
    values = states[0]["head.codes"].exp() - 2
    torch.testing.assert_close(values, values.round())
