"""Calibrates intervals and sets of labels on the validation part."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor

from ldl.collective import current_collective
from ldl.errors import LDLError
from ldl.methods.conformal import Conformal
from ldl.methods.temperature import temper
from ldl.trust.calibration import CALIBRATION_KEY

Units = Literal["groups", "rows", "none"]
"""What counts as one where intervals are calibrated; ``none`` calibrates nothing."""

LEAST = 9
"""Rows or groups: fewer cannot calibrate an interval of 90%."""


class Conform(pl.Callback):
    """After every validation of a fit: what its rows, of all processes, say of intervals (``Task.conformal``).

    ``Task`` adds it by itself, after :class:`Calibrate`, whose temperature comes first. ``Task.calibration`` belongs to
    the weights that were validated: a training step takes it away, and a checkpoint has that of its own weights.
    Groups such as persons count as one each, where the protocol keeps them apart and the task does not say ``rows``.
    """

    def __init__(self) -> None:
        self._rows: list[dict[str, Tensor]] = []
        self._units = 0
        self._by_groups = self._grouped = False

    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if pl_module.conformal not in (units := get_args(Units)):
            raise LDLError(f"model.conformal {pl_module.conformal!r} must be one of {', '.join(units)}")
        self._units = 0
        apart = not getattr(getattr(trainer, "datamodule", None), "leak", None)
        self._by_groups = apart and pl_module.conformal == "groups"

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        pl_module.calibration = None

    def on_validation_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._rows.clear()

    def on_validation_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        if _conforms(trainer, pl_module):
            truth = "value" if pl_module.labels.has_values else "target"
            wanted = ("prediction", truth, *(["group"] if self._by_groups and "group" in outputs else []))
            found = {name: outputs[name].detach() for name in wanted}
            # numpy has no bfloat16.
            half = (torch.bfloat16, torch.float16)
            self._rows.append({name: rows.float() if rows.dtype in half else rows for name, rows in found.items()})

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if not _conforms(trainer, pl_module):
            return
        collective = current_collective()
        columns = {name: torch.cat([rows[name] for rows in self._rows]) for name in self._rows[0]}
        columns["prediction"] = temper(columns["prediction"], pl_module.temperature).float()
        gathered = {name: torch.cat(collective.gather(column)).cpu().numpy() for name, column in columns.items()}
        self._rows.clear()
        # Where check_finite is off, there may be none to calibrate.
        usable = len(gathered["prediction"]) > 0 and bool(np.isfinite(gathered["prediction"]).all())
        found = Conformal.fit(pl_module.labels, *gathered.values()) if usable else None
        self._units, self._grouped = found.units if found else 0, "group" in columns
        pl_module.calibration = found if self._units >= LEAST else None

    def on_fit_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if 0 < self._units < LEAST:
            units, otherwise = ("groups", ", or take model.conformal rows") if self._grouped else ("rows", "")
            rank_zero_warn(
                f"intervals and sets stay as predicted: {self._units} validation {units} are too few to calibrate them "
                f"({LEAST} are needed for 90%); raise data.val_fraction{otherwise}"
            )
        elif self._units and pl_module.calibration is None:
            rank_zero_warn(
                "intervals and sets stay as predicted: the last weights were not validated; let a validation end the "
                "fit (trainer.check_val_every_n_epoch, val_check_interval)"
            )

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        if pl_module.calibration is not None:
            checkpoint[CALIBRATION_KEY] = pl_module.calibration.to_state()


def _conforms(trainer: pl.Trainer, task: Any) -> bool:
    on = task.conformal != "none" and not task.gives_maps
    return on and trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking
