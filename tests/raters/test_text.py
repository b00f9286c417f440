"""A model of text and of its raters: two processes, resuming, checkpoints and ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from fakes.comments import comments, save
from fakes.forks import Ranks
from fakes.rated_items import assert_same, made_trainer

pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")

from ldl.checkpoint import CHECKPOINT_KEY
from ldl.data import TabularLDL
from ldl.data.text import find_encoder
from ldl.deploy.export import export
from ldl.deploy.export_columns import pad_tokens
from ldl.heads import Softmax
from ldl.inference import Predictor
from ldl.task import Task


def fit(folder: Path, epochs: int, resumed: Path | None = None, dropout: float = 0.0, **options: object) -> Task:
    """Fit text and raters of ``folder``'s parent, and write ``folder / "last.ckpt"``."""
    folder.mkdir(exist_ok=True)
    table, votes = (str(folder.parent / name) for name in ("comments.csv", "votes.csv"))
    data = TabularLDL(path=table, votes=votes, text_columns="auto", batch_size=11, folds=3, val_fraction=0.25)
    pl.seed_everything(0, verbose=False)
    task = Task(Softmax(dropout=dropout, hidden=[4]), optimizer=torch.optim.AdamW, raters="bias")
    trainer = made_trainer(epochs, **{"precision": "32-true", **options})
    trainer.fit(task, datamodule=data, ckpt_path=resumed)
    trainer.save_checkpoint(folder / "last.ckpt")
    return task


def assert_same_run(one: Path, two: Path, tolerance: float = 0.0) -> None:
    """The weights, and the descriptions of the raters and of the text, of two checkpoints are equal."""
    first, second = (folder / "last.ckpt" for folder in (one, two))
    assert_same(first, second, tolerance)
    encodings = [
        torch.load(file, weights_only=True)[CHECKPOINT_KEY]["preprocessing"]["encoding"] for file in (first, second)
    ]
    assert encodings[0] == encodings[1]


def test_a_resumed_run_ends_as_the_whole_one(tmp_path: Path) -> None:
    save(tmp_path)
    fit(tmp_path / "whole", 4, dropout=0.3)
    fit(tmp_path / "part", 2, dropout=0.3)
    fit(tmp_path / "resumed", 4, tmp_path / "part" / "last.ckpt", dropout=0.3)
    assert_same_run(tmp_path / "whole", tmp_path / "resumed")


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path: Path) -> None:
    save(tmp_path)
    options = {"devices": 2, "strategy": "ddp", "precision": "64-true"}
    ranks = Ranks(lambda: fit(tmp_path / "two", 3, **options), tmp_path / "log.txt")
    fit(tmp_path / "one", 3, precision="64-true")
    assert ranks.wait() == 0, (tmp_path / "log.txt").read_text()[-3000:]
    assert ranks.end(), "processes stayed"
    assert_same_run(tmp_path / "one", tmp_path / "two", 1e-6)


@pytest.mark.slow
def test_a_checkpoint_and_an_onnx_file_give_the_population(tmp_path: Path) -> None:
    import onnxruntime

    save(tmp_path)
    task = fit(tmp_path / "run", 2)
    table, _ = comments()
    predictor = Predictor.from_checkpoint(tmp_path / "run" / "last.ckpt")  # reads with weights_only
    assert predictor.task.raters is not None and task.raters is not None
    assert predictor.task.raters.state() == task.raters.state()
    predicted = predictor.predict(table).distribution
    done = export(predictor.task, tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.apart == 0 and done.parity.largest <= 3e-6
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    tokens = pad_tokens(find_encoder("wordllama").token_ids(list(table["comment"])))  # type: ignore[attr-defined]
    inputs = {"tokens_0": tokens, "numbers": table[["length"]].to_numpy(float)}
    np.testing.assert_allclose(session.run(None, inputs)[0], predicted, atol=3e-6)
