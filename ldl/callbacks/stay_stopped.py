"""A run that was stopped early stays stopped when it is resumed."""

from __future__ import annotations

import pytorch_lightning as pl
from pytorch_lightning.callbacks.early_stopping import EarlyStopping, EarlyStoppingReason


class StayStopped(pl.Callback):
    """Ends a resumed training at once that EarlyStopping had ended: Lightning would train one epoch more.

    ``Task`` adds it by itself.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        stopped = (
            callback.stopping_reason is not EarlyStoppingReason.NOT_STOPPED
            for callback in trainer.callbacks  # type: ignore[attr-defined]
            if isinstance(callback, EarlyStopping)
        )
        if trainer.ckpt_path is not None and any(stopped):
            trainer.should_stop = True
