"""Drives heads that are fitted on extracted features."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.collective import Collective, current_collective, interleave
from ldl.errors import LDLError
from ldl.head import FittedHead


class FitHead(pl.Callback):
    """Fits a ``FittedHead`` on the features of the whole training set, before anything else happens.

    ``Task`` adds it by itself. Every process extracts the features of its share, with the transforms of
    evaluation; all processes then get all rows, in the order of the data set. The training loop that follows is
    one batch long, so that validation, logging and checkpoints take their usual course.
    """

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module.head, FittedHead)
        trainer.fit_loop.max_epochs = 1
        trainer.limit_train_batches = 1
        if trainer.ckpt_path is not None:
            return
        loader = getattr(getattr(trainer, "datamodule", None), "fit_dataloader", None)
        if loader is None:
            name = type(pl_module.head).__name__
            raise LDLError(f"{name} is fitted on the whole training set; pass Trainer.fit a data module of ldl, with fit_dataloader()")
        features, target = _extract(pl_module, loader(), current_collective())
        pl_module.head.fit(features, target, current_collective())


@torch.no_grad()
def _extract(task: pl.LightningModule, loader: Any, collective: Collective) -> tuple[Tensor, Tensor]:
    training = task.training
    task.eval()
    parts: list[tuple[Tensor, Tensor]] = []
    for batch in loader:
        real = batch["weight"] > 0
        parts.append((task.backbone(batch["input"].to(task.device))[real], batch["target"][real].to(task.device)))
    task.train(training)
    features, target = (interleave(collective.gather(torch.cat(column))) for column in zip(*parts))
    return features, target
