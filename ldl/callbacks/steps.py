"""Callbacks of every run: exact resume, and errors of the last step before an evaluation or a checkpoint."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks.early_stopping import EarlyStopping, EarlyStoppingReason
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from typing_extensions import override

from ldl.batch import seed_batch
from ldl.collective import current_collective
from ldl.errors import SharedError
from ldl.schedule import run_batches
from ldl.validation.setup import warn_of_bf16

MEASURED_KEY = "measured"
"""Entry of a checkpoint: the metrics at that time."""


class Resume(pl.Callback):
    """Restore the random state, the metrics and the decision of EarlyStopping, which Lightning does not restore.

    Every batch has a seed of its own. Schedulers, EarlyStopping and ModelCheckpoint read the metrics of the last
    validation at the end of its epoch, and a checkpoint may be written in between. ``Task`` adds the callback.
    """

    def __init__(self) -> None:
        self.measured: dict[str, Any] = {}

    @override
    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint[MEASURED_KEY] = {name: value.cpu() for name, value in trainer.callback_metrics.items()}

    @override
    def on_load_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.measured = checkpoint.get(MEASURED_KEY, {})

    @override
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

    @override
    def on_train_batch_start(self, trainer: pl.Trainer, *args: Any) -> None:
        seed_batch(trainer.fit_loop.total_batch_idx, trainer.global_rank)


def log_epoch(trainer: pl.Trainer, means: dict[str, Tensor]) -> None:
    """Log the means of an epoch before its checkpoint; Lightning logs later, so a killed run would lose them."""
    row = {**{name: float(mean) for name, mean in means.items()}, "epoch": trainer.current_epoch}
    for logger in trainer.loggers if means else ():
        logger.log_metrics(row, trainer.global_step - 1)
        logger.save()


class CheckFinite(pl.Callback):
    """Report a failure in the last step, in all processes together, before the model is evaluated or saved.

    The training step of ``Task`` notes failures, and the next batch reports them. ``Task`` adds the callback. It also
    warns if nothing will be validated, and reports parameters for which several processes would wait.
    """

    def __init__(self) -> None:
        self._gradients_checked = False

    @override
    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        warn_of_bf16(str(trainer.precision), pl_module.device)

    @override
    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        every, epochs, run = trainer.check_val_every_n_epoch, trainer.max_epochs or 0, run_batches(trainer)
        if not trainer.enable_validation or not run:
            return
        if every is not None and 0 < epochs < every:
            rank_zero_warn(f"nothing is validated: check_val_every_n_epoch {every} is more than max_epochs {epochs}")
        elif every is None and (trainer.val_check_batch or 0) > run:
            interval = trainer.val_check_interval
            rank_zero_warn(f"nothing is validated: val_check_interval {interval} is more than the {run:g} batches")

    @override
    def on_after_backward(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if self._gradients_checked or trainer.world_size == 1:
            return
        self._gradients_checked = True
        model = trainer.model
        if not isinstance(model, DistributedDataParallel) or model.find_unused_parameters or model.static_graph:
            return
        unused = [name for name, value in pl_module.named_parameters() if value.requires_grad and value.grad is None]
        if unused:
            raise SharedError(
                f"the loss does not use the parameter {unused[0]} ({len(unused)} in all), for which several processes "
                "would wait; remove it, or take trainer.strategy ddp_find_unused_parameters_true"
            )

    @override
    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        pl_module.watch.check_finite(pl_module.device, current_collective())

    on_validation_epoch_end = on_test_epoch_end = on_predict_epoch_end = on_train_epoch_end

    @override
    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        # Lightning calls this in every process, although the first process alone writes the file.
        pl_module.watch.check_finite(pl_module.device, current_collective())
