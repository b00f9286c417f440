"""A parameter without a gradient, in two processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = """
import sys
import pytorch_lightning as pl, torch
from ldl.data import TabularLDL
from ldl.heads import Softmax
from ldl.task import Task

class Unused(Softmax):
    def build(self, in_features, labels):
        super().build(in_features, labels)
        self.extra = torch.nn.Linear(2, 2)

trainer = pl.Trainer(
    accelerator="cpu", devices=2, strategy=sys.argv[2], use_distributed_sampler=False, max_epochs=1,
    logger=False, enable_checkpointing=False, enable_progress_bar=False,
)
trainer.fit(Task(Unused()), TabularLDL(path=sys.argv[1], batch_size=8))
"""
LINE = "the loss does not use the parameter head.extra.weight (2 in all)"


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "right"), [("ddp", False), ("ddp_find_unused_parameters_true", True)])
def test_an_unused_parameter_is_named(tmp_path: Path, strategy: str, right: bool) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "table.npz", features=rng.normal(size=(40, 5)), labels=rng.dirichlet(np.ones(3), 40))
    (tmp_path / "fit.py").write_text(SCRIPT, encoding="utf-8")
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "fit.py", "table.npz", strategy],
        capture_output=True, text=True, timeout=600, cwd=tmp_path, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert (done.returncode == 0) == right, done.stderr[-2000:]
    assert (LINE in done.stderr) != right
