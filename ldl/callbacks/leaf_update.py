"""Drives heads that alternate gradient steps with closed-form updates."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from torch import Tensor

from ldl.checks.numbers import without_nan
from ldl.collective import current_collective
from ldl.head import AlternatingHead

STATE_KEY = "leaf_update"
FIX = "lower model.optimizer.lr, or regularise the update (of LDLF: leaf_smoothing, leaf_floor)"


class LeafUpdate(pl.Callback):
    """Shows every batch to an ``AlternatingHead``, and runs its update when it is due, over all processes.

    ``Task`` adds it by itself. The head's recent samples, gathered from all processes, go into the checkpoint,
    so that a resumed run updates the leaves as if it had never stopped. Any other fit begins without samples.
    """

    def __init__(self) -> None:
        self._saved: dict[str, Tensor] | None = None

    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        head = _head(pl_module)
        if self._saved is None:
            head.forget()
        else:
            # Here the model is on its device, which it is not when the checkpoint is read.
            head.load_memory_state(self._saved, current_collective())
            self._saved = None

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        head = _head(pl_module)
        head.observe(outputs["memory"], outputs["target"])
        if head.update_due:
            head.update(current_collective())
            if pl_module.check_finite:
                pl_module.watch.note(without_nan(head), lambda: f"{type(head).__name__}.update gives NaN; {FIX}")

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        # Called on every rank, although rank 0 alone writes the file.
        checkpoint[STATE_KEY] = _head(pl_module).memory_state(current_collective())

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        self._saved = checkpoint.get(STATE_KEY)


def _head(task: pl.LightningModule) -> AlternatingHead:
    assert isinstance(task.head, AlternatingHead)
    return task.head
