"""Runs that several tests list and compare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes.blank_charts import leave_out_charts

from ldl.command import main

RNG = np.random.default_rng(0)
OPTIONS = ["--trainer.max_epochs=1", "--trainer.enable_checkpointing=false", "--wandb.mode=disabled", "--data.folds=2"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cross-validations on the same folds, one run on others."""
    folder = tmp_path_factory.mktemp("runs")
    np.savez(folder / "votes.npz", features=RNG.normal(size=(45, 3)), labels=RNG.dirichlet(np.ones(3), 45))
    monkeypatch = pytest.MonkeyPatch()
    leave_out_charts(monkeypatch)
    monkeypatch.setattr("ldl.jobs.crossval.MAX_DRAWN", 0)
    common = ["--data.path", str(folder / "votes.npz"), *OPTIONS]
    for name, head, more in (
        ("mean", "meanpredictor", ["--stage=crossval"]),
        ("near", "aaknn", ["--stage=crossval", "--model.head.neighbours=3"]),
        ("once", "meanpredictor", ["--data.fold_seed=1"]),
    ):
        main(["-c", f"tabular_{head}", *common, *more, "--run_dir", str(folder / "made" / name)])
    monkeypatch.undo()
    return folder / "made"
