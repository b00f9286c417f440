"""Features that are smoothed over labels: the statistics, what the loss sees, and a resumed run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from ldl.callbacks import FeatureSmoothing, averages
from ldl.collective import Collective
from ldl.data import TabularLDL, TabularValues
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, MeanPredictor, Softmax
from ldl.labels import LabelSpace
from ldl.reports.rows import instances
from ldl.task import Task


class Seen(Softmax):
    """Softmax that notes what its loss is given."""

    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
        if self.training:
            vars(self).setdefault("seen", []).append((features.detach().double().numpy(), extra["value"].numpy()))
        return super().loss(features, target, **extra)


@pytest.fixture
def data(tmp_path: Path) -> TabularValues:
    rng = np.random.default_rng(0)
    ages = rng.integers(0, 6, 60).astype(float)
    ages[ages == 3] = 2
    features = rng.normal(size=(60, 4)) * (1 + ages[:, None]) + ages[:, None]
    np.savez(tmp_path / "ages.npz", features=features, values=ages)
    made = TabularValues(path=str(tmp_path / "ages.npz"), batch_size=16, scaling="none", low=0, high=7)
    made.setup()
    return made


class Saving(FeatureSmoothing):
    """Saves a checkpoint in the middle of the second epoch."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        super().on_train_batch_start(trainer, pl_module, batch, batch_idx)
        if (trainer.current_epoch, batch_idx) == (1, 2):
            trainer.save_checkpoint(self.path)


class Two(Collective):
    """One of two processes, the other of which has measured the sums ``others``."""

    world_size = 2

    def __init__(self, rank: int, others: Tensor) -> None:
        self.rank, self.others = rank, others

    def sum(self, tensor: Tensor) -> Tensor:
        return tensor + self.others


def _trainer(callback: FeatureSmoothing, epochs: int) -> pl.Trainer:
    return pl.Trainer(
        max_epochs=epochs, callbacks=[callback], accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip


def _fit(data: Any, head: Head, callback: FeatureSmoothing, epochs: int, resume: Path | None = None) -> pl.Trainer:
    pl.seed_everything(1)
    task = Task(head, None, lambda p: torch.optim.SGD(p, lr=0.01))
    trainer = _trainer(callback, epochs)
    trainer.fit(task, data, ckpt_path=resume, weights_only=resume is not None)
    return trainer


def _reference(rows: np.ndarray, bins: np.ndarray, width: float) -> np.ndarray:
    """The smoothed features after epochs of the same features, row by row, in float64."""
    known = [b for b in range(8) if (bins == b).sum() > 1]
    mean = {b: rows[bins == b].mean(0) for b in known}
    variance = {b: rows[bins == b].var(0, ddof=1) for b in known}
    done = []
    for row, own in zip(rows, bins):
        if own not in known:
            done.append(row)
            continue
        weights = {b: np.exp(-((b - own) ** 2) / (2 * width**2)) for b in known}
        total = sum(weights.values())
        smooth_mean = sum(weights[b] * mean[b] for b in known) / total
        smooth_variance = sum(weights[b] * variance[b] for b in known) / total
        ratio = np.clip(smooth_variance / variance[own], 0.1, 10)
        done.append((row - mean[own]) * np.sqrt(ratio) + smooth_mean)
    return np.array(done)


def test_the_loss_sees_smoothed_features_after_the_first_epoch(data: TabularValues) -> None:
    head, width = Seen(), 2.0
    _fit(data, head, FeatureSmoothing(width), 3)
    seen = vars(head)["seen"]
    batches = len(seen) // 3
    raw, values = (np.concatenate([part[k] for part in seen[:batches]]) for k in (0, 1))
    expected = _reference(raw, values.astype(int), width)
    for epoch in (1, 2):
        found = np.concatenate([part[0] for part in seen[epoch * batches : (epoch + 1) * batches]])
        # The same rows in another order, and the features do not learn.
        order, other = (np.lexsort(rows.T) for rows in (found, expected))
        np.testing.assert_allclose(found[order], expected[other], rtol=1e-3, atol=1e-3)
    assert "loss" not in vars(head)


def test_a_resumed_run_goes_on_exactly(data: TabularValues, tmp_path: Path) -> None:
    def make() -> Head:
        return LDLF(trees=2, depth=2, outputs=4, batches=2, buffer_rows=50)

    whole = _fit(data, make(), Saving(tmp_path / "amid.ckpt"), 4)
    part = _fit(data, make(), FeatureSmoothing(), 2)
    part.save_checkpoint(tmp_path / "part.ckpt")
    expected = whole.lightning_module.state_dict()
    for path in (tmp_path / "part.ckpt", tmp_path / "amid.ckpt"):
        rest = _fit(data, make(), FeatureSmoothing(), 4, path)
        for name, value in rest.lightning_module.state_dict().items():
            assert torch.equal(value, expected[name]), (path, name)


def test_two_processes_measure_what_one_does_also_resumed_amid_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    features, bins = torch.randn(20, 3, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 3 % 2
    task: Any = type("Fake", (), {"labels": LabelSpace.ordinal([0, 1], "")})
    alone, two = FeatureSmoothing(), [FeatureSmoothing(), FeatureSmoothing()]
    alone._note(features, bins, 2)
    alone.on_train_epoch_end(task, task)

    def collectives() -> Iterator[FeatureSmoothing]:
        """Both, each with its collective."""
        sums = [each._state["sums"] for each in two]
        for rank, each in enumerate(two):
            monkeypatch.setattr(averages, "current_collective", partial(Two, rank, sums[1 - rank]))
            yield each

    def note(rows: slice) -> None:
        for rank, each in enumerate(two):
            each._note(features[rows][rank::2], bins[rows][rank::2], 2)

    note(slice(9))
    for rank, each in enumerate(collectives()):
        saved: dict[str, Any] = {}
        each.on_save_checkpoint(task, task, saved)
        two[rank] = FeatureSmoothing()
        two[rank].on_load_checkpoint(task, task, saved)
    note(slice(9, 20))
    for each in collectives():
        each.on_train_epoch_end(task, task)
        torch.testing.assert_close(each._state, alone._state)


def test_a_weight_is_copies_of_the_row(data: TabularValues) -> None:
    weight, found = torch.arange(20) % 3, []
    batch = instances(data, np.arange(20))
    copies = {name: column.repeat_interleave(weight, 0) for name, column in batch.items()}
    for rows in ({**batch, "weight": weight.float()}, copies):
        callback, task = FeatureSmoothing(), Task(Softmax(), None, lambda p: torch.optim.SGD(p, lr=0.01))
        task.build(data.labels, data.input_shape)
        _trainer(callback, 2).fit(task, DataLoader([rows], batch_size=None))
        found.append(callback._state)
    torch.testing.assert_close(found[0], found[1])


def test_padding_is_not_measured(data: TabularValues) -> None:
    batch, found = instances(data, np.arange(20)), []
    for batches in ([batch], [batch, {**batch, "weight": torch.zeros(20)}]):
        callback, task = FeatureSmoothing(), Task(Softmax(), None, lambda p: torch.optim.SGD(p, lr=0.01))
        task.build(data.labels, data.input_shape)
        _trainer(callback, 2).fit(task, DataLoader(batches, batch_size=None))
        found.append(callback._state)
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def test_heads_and_labels_that_have_no_use_for_it(data: TabularValues, tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="MeanPredictor learns from no rows of features"):
        _fit(data, MeanPredictor(), FeatureSmoothing(), 2)
    np.savez(tmp_path / "a.npz", features=np.ones((20, 2)), labels=np.full((20, 3), 1 / 3))
    with pytest.raises(LDLError, match="needs labels on a line"):
        _fit(TabularLDL(path=str(tmp_path / "a.npz")), Softmax(), FeatureSmoothing(), 2)
