"""Ends a run whose last step went wrong where no batch follows that would."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl

from ldl.checks.precision import warn_of_bf16
from ldl.collective import current_collective


class Settle(pl.Callback):
    """Looks at what ``Task`` has noted of its last step before it is measured or saved, on all processes together.

    ``Task`` adds it by itself.
    """

    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        warn_of_bf16(str(trainer.precision), pl_module.device)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        pl_module.watch.settle(pl_module.device, current_collective())

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        pl_module.watch.settle(pl_module.device, current_collective())

    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        pl_module.watch.settle(pl_module.device, current_collective())

    def on_predict_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        pl_module.watch.settle(pl_module.device, current_collective())

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        # Called on every rank, although rank 0 alone writes the file.
        pl_module.watch.settle(pl_module.device, current_collective())
