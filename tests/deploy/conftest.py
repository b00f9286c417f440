"""Checkpoints that several files of tests deploy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl
from fakes.tasks import AGES, WIDTH, fitted_checkpoint, small_task

from ldl.callbacks import Calibrate
from ldl.command.console import command
from ldl.data import TabularValues
from ldl.heads import MaxEnt, StructRF
from ldl.methods.conformal import Conformal

CONFIG = "data: {class_path: ldl.data.TabularLDL, init_args: {path: ldl/SJAFFE.mat}}"


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder with a checkpoint of a table of ages, whose intervals are calibrated."""
    folder = tmp_path_factory.mktemp("run")
    task = small_task(MaxEnt(), AGES)
    assert task.preprocessing is not None
    task.preprocessing["features"] = [f"feature {number}" for number in range(WIDTH)]
    rng = np.random.default_rng(0)
    task.calibration = Conformal.fit(AGES, rng.dirichlet(np.ones(6), 30), rng.choice(AGES.axes[0], 30))
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = pl.Trainer(accelerator="cpu", callbacks=[Calibrate()], **options)
    trainer.strategy.connect(task)
    trainer.save_checkpoint(folder / "checkpoints" / "last.ckpt")
    (folder / "config.yaml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="session")
def model(run: Path) -> Path:
    """The ONNX file of ``run``."""
    command(["export", str(run / "checkpoints" / "last.ckpt"), "--out", str(run / "model.onnx")])
    return run / "model.onnx"


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A forest on a table of three named features."""
    folder = tmp_path_factory.mktemp("rows")
    rows = np.random.default_rng(0).normal([50, 1, -3], [10, 0.1, 1], (80, 3))
    values = np.round(20 + 0.4 * rows[:, :1] + 3 * rows[:, 2:])
    lines = [",".join(map(repr, row)) for row in np.hstack([rows, values]).tolist()]
    (folder / "table.csv").write_text("\n".join(["age,ratio,change,value", *lines]))
    data = TabularValues(str(folder / "table.csv"), step=1.0, value_key="value")
    return fitted_checkpoint(StructRF(trees=20), data, folder / "forest.ckpt")
