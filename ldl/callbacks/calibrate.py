"""Fits the temperature of a task's predictions on the validation part."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor

from ldl.collective import current_collective
from ldl.errors import LDLError
from ldl.methods.temperature import fit_temperature, temper
from ldl.metrics.functional import kl


class Calibrate(pl.Callback):
    """After every validation of a fit: the temperature that suits its rows, of all processes (``Task.calibrate``).

    ``Task`` adds it by itself. Validation measures the predictions as they are; beside that, ``temperature`` and
    ``val_kl_calibrated`` are logged. Checkpoints that are saved after this validation keep the temperature.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[Tensor, Tensor]] = []
        self._fitted = False

    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if not pl_module.calibrate or trainer.ckpt_path is None:
            pl_module.temperature = 1.0
        if pl_module.calibrate and pl_module.gives_maps:
            raise LDLError("model.calibrate is for one distribution an instance, and these are maps; set it to false")

    def on_validation_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if _calibrates(trainer, pl_module):
            self._rows.clear()
            pl_module.temperature = 1.0

    def on_validation_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        if _calibrates(trainer, pl_module):
            self._rows.append((outputs["prediction"], outputs["target"]))

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if not _calibrates(trainer, pl_module):
            return
        prediction, target = (torch.cat(part) for part in zip(*self._rows))
        self._rows.clear()
        collective = current_collective()
        pl_module.temperature = temperature = fit_temperature(prediction, target, collective)
        total = kl(temper(prediction, temperature).double(), target.double()).sum()
        divergence, rows = collective.sum(torch.stack([total, total.new_tensor(len(target))])).tolist()
        pl_module.log_dict({"temperature": temperature, "val_kl_calibrated": divergence / rows})
        self._fitted = True

    def on_fit_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        # A finished run that is resumed has the temperature of its checkpoint.
        if pl_module.calibrate and not self._fitted and pl_module.temperature == 1:
            rank_zero_warn(
                "model.calibrate: there was no validation to fit a temperature on, and predictions stay as trained; "
                "set data.val_fraction above 0"
            )


def _calibrates(trainer: pl.Trainer, task: Any) -> bool:
    return bool(task.calibrate) and trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking
