"""What Lightning forgets between the two parts of a resumed run."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks.early_stopping import EarlyStopping, EarlyStoppingReason
from torch import Tensor

from ldl.batch import seed_batch

MEASURED_KEY = "measured"


class Resume(pl.Callback):
    """Seeds every batch, keeps what was measured in a checkpoint, and leaves stopped what EarlyStopping had ended.

    Schedulers, EarlyStopping and the choice of the best look for the measures of the last validation at the end of its
    epoch: a checkpoint may lie between the two. ``Task`` adds it by itself.
    """

    def __init__(self) -> None:
        self.measured: dict[str, Any] = {}

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint[MEASURED_KEY] = {name: value.cpu() for name, value in trainer.callback_metrics.items()}

    def on_load_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.measured = checkpoint.get(MEASURED_KEY, {})

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if trainer.ckpt_path is None:
            return
        trainer.callback_metrics.update({name: value.to(pl_module.device) for name, value in self.measured.items()})
        stopped = (
            callback.stopping_reason is not EarlyStoppingReason.NOT_STOPPED
            for callback in trainer.callbacks  # type: ignore[attr-defined]
            if isinstance(callback, EarlyStopping)
        )
        trainer.should_stop = trainer.should_stop or any(stopped)

    def on_train_batch_start(self, trainer: pl.Trainer, *args: Any) -> None:
        seed_batch(trainer.fit_loop.total_batch_idx, trainer.global_rank)


def write_down(trainer: pl.Trainer, means: dict[str, Tensor]) -> None:
    """Log the means of an epoch at its end. Lightning would after its checkpoint: a kill in between would lose them."""
    row = {**{name: float(mean) for name, mean in means.items()}, "epoch": trainer.current_epoch}
    for logger in trainer.loggers if means else ():
        logger.log_metrics(row, trainer.fit_loop.epoch_loop._batches_that_stepped - 1)
        logger.save()
