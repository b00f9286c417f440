"""The problem on which the checkpoints of this folder were trained, by the code of commit 0bc56bf.

NAME.ckpt is the checkpoint of the trainer after one epoch. NAME.npz holds the predictions of the model of that time,
and for ``ldlf`` also those after one epoch more. The script that made them is in the history of this file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

from ldl.labels import LabelSpace

FOLDER = Path(__file__).parent


class Problem(pl.LightningDataModule):
    """A small problem: ``rows`` (32, 6), ``bags`` (32, 3, 6), ``pictures`` (32, 3, 32, 32) or bags of such."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        # This generator gives the same numbers in every version of numpy.
        draw = np.random.RandomState(0)
        shapes = {"rows": (6,), "bags": (3, 6), "pictures": (3, 32, 32), "picture_bags": (2, 3, 32, 32)}
        self.shape = shapes[kind]
        if kind.startswith("picture"):
            self.inputs = torch.from_numpy(draw.randint(0, 256, (32, *self.shape)).astype(np.uint8))
        else:
            self.inputs = torch.from_numpy(draw.standard_normal((32, *self.shape)).astype(np.float32))
        plain = self.inputs.float().flatten(1)[:, :6]
        scores = (plain - plain.mean(0)) / plain.std(0) @ torch.from_numpy(draw.standard_normal((6, 4))).float()
        self.target = scores.softmax(-1)
        self.halves = torch.stack([self.target[:, :2].sum(1), self.target[:, 2:].sum(1)], 1)

    def build(self, task: Any) -> None:
        """Build a task for these inputs and four ages, or where the head takes bags for two classes."""
        self.takes_bags = task.head.takes_bags
        classes = LabelSpace.nominal(["no", "yes"])
        labels = classes if self.takes_bags else LabelSpace.ordinal([10, 20, 30, 40], "years")
        task.build(labels, self.shape, load_weights=False)

    def _loader(self) -> DataLoader[Any]:
        rows = [
            {"input": x, "target": y, "weight": torch.tensor(1.0), "index": torch.tensor(row)}
            for row, (x, y) in enumerate(zip(self.inputs, self.halves if self.takes_bags else self.target))
        ]
        return DataLoader(rows, batch_size=8)  # type: ignore[arg-type]

    def train_dataloader(self) -> DataLoader[Any]:
        return self._loader()

    def fit_dataloader(self) -> DataLoader[Any]:
        return self._loader()


def train(task: Any, data: Problem, epochs: int, checkpoint: Path | None = None) -> pl.Trainer:
    """Train without shuffling, from a checkpoint or anew."""
    data.build(task)
    trainer = pl.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False, use_distributed_sampler=False,
    )  # fmt: skip
    trainer.fit(task, datamodule=data, ckpt_path=checkpoint, weights_only=True)
    return trainer


def sgd(groups: Any) -> torch.optim.Optimizer:
    """The optimiser of all of them."""
    return torch.optim.SGD(groups, lr=0.1)


@torch.no_grad()
def predictions(task: Any, data: Problem) -> dict[str, np.ndarray]:
    """``distribution``, of every fourth pixel of a map, and ``value`` where the head has an estimate of its own."""
    task.eval()
    distribution, value = task.head.predict(task.features({"input": data.inputs[:8]}))
    if distribution.ndim == 4:
        distribution = distribution[:, ::4, ::4]
    return {"distribution": distribution.numpy()} | ({} if value is None else {"value": value.numpy()})
