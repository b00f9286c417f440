"""The checkpoint of a run that was told to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint

from ldl.progress import Stopped, stop
from ldl.running import stopping


class StopCheckpoint(Checkpoint):
    """Saves where a run is told to end, and ends it: at the batch that all processes know of.

    Args:
        path: The checkpoint.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.ckpt_path is not None:
            stopping.watch.checkpoint = Path(trainer.ckpt_path)
        stopping.watch.step = trainer.global_step
        stop.trains = True

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        stopping.watch.step = trainer.global_step
        if stop.agreed and not _at_last_step(trainer):
            loop = trainer.fit_loop.epoch_loop
            # Lightning takes an epoch, or a validation, that is due now for done where it resumes from here.
            due = loop._num_ready_batches_reached() or loop._should_check_val_fx(trainer.fit_loop._data_fetcher)  # type: ignore[arg-type]
            if not due and not loop._should_accumulate():
                self._save(trainer)

    def on_validation_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        if stop.agreed and stop.trains and not _at_last_step(trainer):
            # As at its first batch: the sums of a validation are in no checkpoint, so all of it is done again.
            progress = trainer.fit_loop.epoch_loop.val_loop.batch_progress
            done = progress.total.completed - progress.current.completed
            progress.load_state_dict({"total": _within(done), "current": _within(0), "is_last_batch": False})
            self._save(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        stopping.watch.checkpoint = self.path

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        stop.trains = False
        stop.leave()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        stop.trains = False

    def _save(self, trainer: pl.Trainer) -> None:
        trainer.save_checkpoint(self.path, weights_only=False)
        stopping.watch.checkpoint = self.path
        stop.leaves = True
        raise Stopped


def _at_last_step(trainer: pl.Trainer) -> bool:
    """Whether ``max_steps`` are done: what is left of the epoch is not done again."""
    return 0 <= trainer.max_steps <= trainer.global_step


def _within(batches: int) -> dict[str, int]:
    """Lightning's counters in the middle of the batch after these."""
    return {"ready": batches + 1, "started": batches + 1, "processed": batches, "completed": batches}
