"""Update heads that alternate gradient steps with closed-form updates."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor
from typing_extensions import override

from ldl.collective import current_collective
from ldl.head import AlternatingHead
from ldl.moved import old_names
from ldl.schedule import run_batches
from ldl.validation.finite import without_nan

__getattr__ = old_names(__name__)

STATE_KEY = "leaf_update"
"""Entry of a checkpoint: the replay buffer."""
LEAF_FIX = "lower model.optimizer.lr, or regularise the update (of LDLF: leaf_smoothing, leaf_floor)"


class LeafUpdate(pl.Callback):
    """Pass every batch to an ``AlternatingHead``, and run its update over all processes when it is due.

    ``Task`` adds the callback. Checkpoints store the replay buffer of the head, gathered from all processes, so a
    resumed run updates the leaves exactly as an uninterrupted run. Any other fit starts with an empty buffer.

    Examples:
        >>> from ldl import Task
        >>> from ldl.callbacks import LeafUpdate
        >>> from ldl.heads import LDLF
        >>> any(isinstance(callback, LeafUpdate) for callback in Task(LDLF()).configure_callbacks())
        True
    """

    def __init__(self) -> None:
        self._saved: dict[str, Tensor] | None = None
        self._updated = False

    @override
    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        head: AlternatingHead = pl_module.head
        if self._saved is None:
            head.forget()
        else:
            # The model is on its device only now, not when the checkpoint is read.
            head.load_memory_state(self._saved, current_collective())
            self._saved = None

    @override
    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._updated = trainer.ckpt_path is not None
        pl_module.head.expect(trainer.num_training_batches, run_batches(trainer))

    @override
    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        head: AlternatingHead = pl_module.head
        head.observe(outputs["memory"], outputs["target"])
        if head.update_due:
            head.update(current_collective())
            self._updated = True
            if pl_module.check_finite:
                pl_module.watch.note(without_nan(head), lambda: f"{type(head).__name__}.update gives NaN; {LEAF_FIX}")

    @override
    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if not self._updated and trainer.global_step:
            name = type(pl_module.head).__name__
            rank_zero_warn(
                f"{name} was never updated: training ended after {trainer.global_step} steps, before the first update; "
                "train longer, or lower model.head.batches"
            )

    @override
    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        # Lightning calls this in every process, although the first process alone writes the file.
        checkpoint[STATE_KEY] = pl_module.head.memory_state(current_collective())

    @override
    def on_load_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self._saved = checkpoint.get(STATE_KEY)
