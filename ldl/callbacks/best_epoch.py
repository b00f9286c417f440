"""End a fit with the weights of its best epoch."""

from __future__ import annotations

import math
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor
from typing_extensions import override

from ldl.methods.conformal import Conformal
from ldl.validation.checkpoint import CALIBRATION_KEY, check_weights

MONITOR = "val_kl"


class BestEpoch(pl.Callback):
    """Ends a fit with the weights of the validation with the lowest KL, and with their calibration.

    The best epoch of RealMLP (Holzmueller et al., Better by Default, NeurIPS 2024) and early stopping keep the same
    weights; the rate of learning decays here as if nothing was stopped. Without a validation set the last weights stay.
    Add the callback to ``trainer.callbacks``.

    The best weights so far are in every checkpoint, beside those to continue from. They replace these before the last
    checkpoint is written, so a finished run that is resumed for further epochs continues from them.

    Attributes:
        kl: Lowest KL divergence; infinite before the first validation.
        epoch: Number of finished epochs at it.

    Examples:
        >>> import pytorch_lightning as pl
        >>> from ldl import Task
        >>> from ldl.backbones import Identity
        >>> from ldl.callbacks import BestEpoch
        >>> from ldl.data import RotatedDigits
        >>> from ldl.heads import Softmax
        >>> best = BestEpoch()
        >>> quiet = dict(logger=False, enable_progress_bar=False, enable_model_summary=False)
        >>> trainer = pl.Trainer(max_epochs=2, callbacks=[best], **quiet)
        >>> trainer.fit(Task(Softmax(), Identity(flatten=True)), RotatedDigits(turns=1))
        >>> best.epoch in (1, 2)
        True
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.kl, self.epoch = math.inf, 0
        self._weights: dict[str, Tensor] = {}
        self._calibrated: dict[str, Any] = {}
        self._is_restored = False

    @override
    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if trainer.ckpt_path is None:
            self._forget()
        self._is_restored = False

    @override
    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if trainer.state.fn != TrainerFn.FITTING or trainer.sanity_checking or MONITOR not in trainer.callback_metrics:
            return
        kl = float(trainer.callback_metrics[MONITOR])
        if kl < self.kl:
            self.kl, self.epoch = kl, trainer.current_epoch + 1
            self._weights = {name: tensor.detach().clone() for name, tensor in pl_module.state_dict().items()}
            self._calibrated = {"temperature": pl_module.temperature, "model_votes": pl_module.model_votes}
            if pl_module.calibration is not None:
                self._calibrated[CALIBRATION_KEY] = pl_module.calibration.to_state()

    @override
    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        # Before the last checkpoint is written: Lightning calls the callbacks that write checkpoints last.
        steps, epochs = trainer.max_steps, trainer.max_epochs
        at_end = 0 < steps <= trainer.global_step or (epochs is not None and 0 < epochs <= trainer.current_epoch + 1)
        if at_end or trainer.should_stop:
            self._restore(pl_module)

    @override
    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if self._weights and not self._is_restored:
            self._restore(pl_module)
            rank_zero_warn(
                "BestEpoch: training was stopped after its last checkpoint was written, which has the last weights; "
                "the model and best.ckpt have the best"
            )

    def _restore(self, task: Any) -> None:
        self._is_restored = True
        if not self._weights:
            return
        check_weights(task, self._weights)
        task.load_state_dict(self._weights)
        task.temperature, task.model_votes = self._calibrated["temperature"], self._calibrated["model_votes"]
        task.calibration = Conformal.from_checkpoint(self._calibrated, task.labels)

    @override
    def state_dict(self) -> dict[str, Any]:
        return {"kl": self.kl, "epoch": self.epoch, "weights": self._weights, "calibrated": self._calibrated}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.kl, self.epoch = float(state_dict["kl"]), int(state_dict["epoch"])
        self._weights, self._calibrated = state_dict["weights"], state_dict["calibrated"]
