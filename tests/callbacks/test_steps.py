"""A parameter without a gradient, in two processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from fakes.forks import Ranks

from ldl.data import TabularLDL
from ldl.heads import Softmax
from ldl.labels import LabelSpace
from ldl.task import Task

LINE = "the loss does not use the parameter head.extra.weight (2 in all)"


class Unused(Softmax):
    """A head with a layer that it does not use."""

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.extra = torch.nn.Linear(2, 2)


def fit(table: Path, strategy: str) -> None:
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, strategy=strategy, use_distributed_sampler=False, max_epochs=1,
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
    )  # fmt: skip
    trainer.fit(Task(Unused()), TabularLDL(path=str(table), batch_size=8))


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "right"), [("ddp", False), ("ddp_find_unused_parameters_true", True)])
def test_an_unused_parameter_is_named(tmp_path: Path, strategy: str, right: bool) -> None:
    rng = np.random.default_rng(0)
    table, log = tmp_path / "table.npz", tmp_path / "log.txt"
    np.savez(table, features=rng.normal(size=(40, 5)), labels=rng.dirichlet(np.ones(3), 40))
    ranks = Ranks(lambda: fit(table, strategy), log)
    assert (ranks.wait() == 0) == right, log.read_text()[-2000:]
    assert ranks.end(), "processes stayed"
    assert (LINE in log.read_text()) != right
