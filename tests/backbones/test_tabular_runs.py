"""The default forest on the network for tables: two processes, resuming, checkpoints, raters and ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from fakes.flag_tables import write_flags
from fakes.forks import Ranks
from fakes.rated_items import made_trainer

from ldl.backbones import Tabular
from ldl.callbacks import BestEpoch
from ldl.data import TabularLDL
from ldl.deploy.export import export
from ldl.heads import LDLF
from ldl.inference import Predictor
from ldl.task import Task


def fit(folder: Path, epochs: int, resumed: Path | None = None, dropout: float = 0.2, **options: Any) -> Task:
    """Fit the table of ``folder``'s parent, and write ``folder / "last.ckpt"``."""
    folder.mkdir(exist_ok=True)
    table = str(folder.parent / "t.npz")
    data = TabularLDL(path=table, scaling="ranks", batch_size=11, folds=3, val_fraction=0.25, label_values=[1, 2, 3])
    pl.seed_everything(0, verbose=False)
    network = Tabular(members=3, hidden=[8], dropout=dropout, feature_dropout=dropout)
    head = LDLF(trees=2, depth=3, outputs=None, batches=3)
    task = Task(head, network, optimizer=lambda groups: torch.optim.AdamW(groups, lr=1e-2))
    trainer = made_trainer(epochs, **{"callbacks": [BestEpoch()], **options})
    trainer.fit(task, datamodule=data, ckpt_path=resumed)
    trainer.save_checkpoint(folder / "last.ckpt")
    return task


def assert_same(one: Path, two: Path, tolerance: float = 0.0) -> None:
    first, second = (torch.load(folder / "last.ckpt", weights_only=True)["state_dict"] for folder in (one, two))
    assert first.keys() == second.keys() and first["backbone.numbers"].tolist() == [28, 29]
    for name, tensor in first.items():
        torch.testing.assert_close(second[name], tensor, rtol=tolerance, atol=tolerance, msg=name)


def test_a_resumed_run_ends_as_the_whole_one(tmp_path: Path) -> None:
    """The first part is stopped, not finished: a finished run would have put the best weights in place."""
    write_flags(tmp_path, 28)

    class Stop(pl.Callback):
        def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
            if trainer.current_epoch == 2:
                trainer.save_checkpoint(tmp_path / "part.ckpt")

        def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
            if trainer.current_epoch == 3:
                raise InterruptedError

    fit(tmp_path / "whole", 6)
    with pytest.raises(InterruptedError):
        fit(tmp_path / "part", 6, callbacks=[BestEpoch(), Stop()])
    fit(tmp_path / "resumed", 6, tmp_path / "part.ckpt")
    assert_same(tmp_path / "whole", tmp_path / "resumed")


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path: Path) -> None:
    write_flags(tmp_path, 28)
    ranks = Ranks(lambda: fit(tmp_path / "two", 3, dropout=0.0, devices=2, strategy="ddp"), tmp_path / "log.txt")
    fit(tmp_path / "one", 3, dropout=0.0)
    assert ranks.wait() == 0, (tmp_path / "log.txt").read_text()[-3000:]
    assert ranks.end(), "processes stayed"
    assert_same(tmp_path / "one", tmp_path / "two", 1e-6)


@pytest.mark.slow
def test_a_checkpoint_and_an_onnx_file_predict_the_same(tmp_path: Path) -> None:
    import onnxruntime

    path = write_flags(tmp_path, 28)
    task = fit(tmp_path / "run", 4, precision="32-true").float()
    with np.load(path) as table:
        features = table["features"]
    expected = Predictor(task).predict(features).distribution
    loaded = Predictor.from_checkpoint(tmp_path / "run" / "last.ckpt")
    np.testing.assert_array_equal(loaded.predict(features).distribution, expected)
    assert loaded.evidence(features, 0) is not None
    export(task, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    outputs = session.run(["distribution"], {"input": features.astype(np.float64)})
    np.testing.assert_allclose(outputs[0], expected, atol=1e-6, rtol=0)
