"""Drives heads that are fitted on extracted features."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.batch import global_rows
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
            raise LDLError(
                f"{name} is fitted on the whole training set; pass Trainer.fit a data module of ldl (fit_dataloader)"
            )
        columns = _extract(trainer, pl_module, loader(), current_collective())
        extra = {"value": columns.get("value")} if pl_module.head.uses_value else {}
        bar = trainer.progress_bar_callback
        pl_module.head.shows_progress = trainer.is_global_zero and getattr(bar, "is_enabled", False)
        pl_module.head.fit(columns["features"], columns["target"], current_collective(), **extra)
        for logger in trainer.loggers:
            if summary := pl_module.head.summary():
                logger.log_metrics(summary, 0)


@torch.no_grad()
def _extract(trainer: pl.Trainer, task: Any, loader: Any, collective: Collective) -> dict[str, Tensor]:
    """``features``, ``target`` and, where the data have it, ``value`` of all rows."""
    training = task.training
    task.eval()
    parts: list[dict[str, Tensor]] = []
    for batch in loader:
        global_rows(batch, task.device, collective)
        batch = trainer.precision_plugin.convert_input(batch)
        real = batch["weight"] > 0
        batch = {name: column.to(task.device) for name, column in batch.items()}
        columns = {name: batch[name][real] for name in ("target", "value") if name in batch}
        parts.append({"features": task.features(batch)[real], **columns})
    task.train(training)
    counts = collective.gather(torch.tensor([len(part["target"]) for part in parts], device=task.device))
    return {name: _in_order(torch.cat([part[name] for part in parts]), counts, collective) for name in parts[0]}


def _in_order(rows: Tensor, counts: list[Tensor], collective: Collective) -> Tensor:
    """The rows of all ranks in the order of the data set; ``counts`` holds each rank's rows of every batch."""
    # Batch by batch, because each is dealt anew from rank 0.
    shares = [part.split(count.tolist()) for part, count in zip(collective.gather(rows), counts)]
    return torch.cat([interleave(list(batch)) for batch in zip(*shares)])
