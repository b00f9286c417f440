"""Trained tasks that are small, for whatever is done with a model afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.data.tables.scaling import FeatureScaler, Scaling
from ldl.head import FittedHead, Head
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.task import Task

EMOTIONS = LabelSpace.nominal(["happy", "sad", "angry"])
NO_YES = LabelSpace.nominal(["no", "yes"])
AGES = LabelSpace.ordinal([10, 20, 30, 40, 50, 60], "years")
POSES = LabelSpace.grid([-30, 0, 30], [-60, 0, 60], "degrees")
WIDTH = 6


def rows(count: int = 60, seed: int = 0) -> np.ndarray:
    """Features (``count``, 6) as they might be in a table: skewed, of several magnitudes, none below 0."""
    magnitudes = 10.0 ** np.arange(-2, WIDTH - 2)
    return np.random.default_rng(seed).gamma(2.0, size=(count, WIDTH)) * magnitudes


def small_task(head: Head, labels: LabelSpace = EMOTIONS, scaling: Scaling = "standard") -> Task:
    """A task on rows, or on bags of rows where the head takes them, whose head has learned something."""
    torch.manual_seed(0)
    scaler = FeatureScaler(scaling, None)
    scaler.fit(rows())
    task = Task(head)
    features = scaler.apply(rows(), "rows")
    if head.takes_bags:
        features = features.reshape(20, 3, WIDTH)
        features[::2, 1:] = torch.nan
    task.build(labels, (-1, WIDTH) if head.takes_bags else (WIDTH,))
    learn(head, features, labels)
    task.preprocessing = {"features": None, "key": None, "scaling": scaler.state_dict()}
    return task.eval()


def saved(task: Task, path: Path) -> Path:
    """A checkpoint of a task as it is."""
    options = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = pl.Trainer(accelerator="cpu", enable_checkpointing=False, **options)  # type: ignore[arg-type]
    trainer.strategy.connect(task)
    trainer.save_checkpoint(path)
    return path


def fitted_checkpoint(head: Head, data: pl.LightningDataModule, path: Path) -> Path:
    """A checkpoint of a head that was fitted on some data."""
    trainer = pl.Trainer(
        max_epochs=1, logger=False, enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
        use_distributed_sampler=False, accelerator="cpu",
    )  # fmt: skip
    trainer.fit(Task(head), datamodule=data)
    trainer.save_checkpoint(path)
    return path


def learn(head: Head, features: Tensor, labels: LabelSpace) -> None:
    """Fit a head on distributions that follow the features; others are left with random numbers in all weights."""
    first = features.nan_to_num().amax(1) if head.takes_bags else features
    target = torch.softmax(3 * first @ torch.randn(WIDTH, len(labels)), -1)
    if head.takes_bags:
        target = torch.eye(2)[(target[:, 1] > 0.5).long()]
    if isinstance(head, FittedHead):
        value = labels.decode(target) if labels.has_values else None
        head.fit(Rows(features, target, value), Collective())
    if "leaves" in dict(head.named_buffers()):
        head.leaves.copy_(torch.softmax(3 * torch.randn_like(head.leaves), -1))
