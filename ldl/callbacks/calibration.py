"""Fit temperature, intervals and sets of predictions on the validation set."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import StochasticWeightAveraging
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor
from typing_extensions import override

from ldl.annotations import vote_counts
from ldl.batch import without_half
from ldl.collective import current_collective
from ldl.errors import LDLError
from ldl.methods.conformal import Conformal
from ldl.methods.temperature import fit_temperature, temper
from ldl.metrics.functional import kl
from ldl.moved import old_names
from ldl.protocols import LEAST_UNITS
from ldl.validation.checkpoint import CALIBRATION_KEY

__getattr__ = old_names(__name__)

Units = Literal["groups", "rows", "none"]
"""Units of the calibration of intervals; ``none`` calibrates nothing."""


class Calibrate(pl.Callback):
    """Fits the temperature, then calibrates intervals and sets, after every validation of a fit, over all processes.

    ``Task`` adds the callback; ``Task.calibrate`` switches the temperature on, ``Task.conformal`` the intervals and
    sets. Validation metrics are those of the predictions without temperature. ``temperature`` and ``val_kl_calibrated``
    are logged too. If the rows have votes, ``Task.model_votes`` is the number of votes that a prediction counts as when
    votes on the same item are known. ``Task.calibration`` and ``Task.model_votes`` belong to the validated weights, so
    a training step removes them. Each group, such as a subject, is one unit if ``Task.conformal`` is ``groups`` and the
    protocol keeps groups apart; otherwise each row is.

    Examples:
        >>> from ldl import Task
        >>> from ldl.callbacks import Calibrate
        >>> from ldl.heads import Softmax
        >>> any(isinstance(callback, Calibrate) for callback in Task(Softmax()).configure_callbacks())
        True
    """

    def __init__(self) -> None:
        self._rows: list[dict[str, Tensor]] = []
        self._units = 0
        self._by_groups = self._grouped = self._fitted = False

    @override
    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if pl_module.conformal not in (units := get_args(Units)):
            raise LDLError(f"model.conformal {pl_module.conformal!r} must be one of {', '.join(units)}")
        if pl_module.calibrate and pl_module.gives_maps:
            raise LDLError("model.calibrate is for one distribution an instance, and these are maps; set it to false")
        if not pl_module.calibrate or trainer.ckpt_path is None:
            pl_module.temperature = 1.0
        self._units = 0
        apart = not getattr(getattr(trainer, "datamodule", None), "leak", None)
        self._by_groups = apart and pl_module.conformal == "groups"

    @override
    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        pl_module.calibration = pl_module.model_votes = None

    @override
    def on_validation_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._rows.clear()
        if pl_module.calibrate and _validates_fit(trainer):
            pl_module.temperature = 1.0

    @override
    def on_validation_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        votes = ["target", "votes"] if "votes" in outputs and not pl_module.gives_maps else []
        if not _validates_fit(trainer) or not (pl_module.calibrate or _has_intervals(pl_module) or votes):
            return
        wanted = ["prediction", _truth(pl_module), "weight", *(["target"] if pl_module.calibrate else []), *votes]
        wanted += ["group"] if self._by_groups and "group" in outputs else []
        self._rows.append({name: without_half(outputs[name].detach()) for name in wanted})

    @override
    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if not self._rows:
            return
        columns = {name: torch.cat([rows[name] for rows in self._rows]) for name in self._rows[0]}
        self._rows.clear()
        if pl_module.calibrate:
            self._fit_temperature(pl_module, columns["prediction"], columns["target"], columns["weight"])
        if _has_intervals(pl_module) or "votes" in columns:
            columns["prediction"] = temper(columns["prediction"], pl_module.temperature).float()
            collective = current_collective()
            gathered = {name: torch.cat(collective.gather(column)) for name, column in columns.items()}
            self._fit(pl_module, gathered, getattr(trainer, "datamodule", None))

    def _fit_temperature(self, task: Any, prediction: Tensor, target: Tensor, weight: Tensor) -> None:
        collective = current_collective()
        task.temperature = temperature = fit_temperature(prediction, target, collective, weight)
        weight = weight.double()
        total = weight @ kl(temper(prediction, temperature).double(), target.double())
        divergence, rows = collective.sum(torch.stack([total, weight.sum()])).tolist()
        task.log_dict({"temperature": temperature, "val_kl_calibrated": divergence / rows})
        self._fitted = True

    def _fit(self, task: Any, gathered: dict[str, Tensor], data: Any) -> None:
        """Fit intervals, sets and the number of votes of a prediction to the rows of all processes."""
        rows = {name: column.cpu().numpy() for name, column in gathered.items()}
        prediction, units = rows["prediction"], (rows.get("group"), rows["weight"])
        # Without check_finite, predictions may not be finite.
        usable = len(prediction) > 0 and bool(np.isfinite(prediction).all())
        if _has_intervals(task):
            conformal = Conformal.fit(task.labels, prediction, rows[_truth(task)], *units) if usable else None
            self._units, self._grouped = conformal.units if conformal else 0, "group" in rows
            task.calibration = conformal if self._units >= LEAST_UNITS else None
        if "votes" in rows and usable:
            task.model_votes = self._model_votes(data, prediction, vote_counts(rows["target"], rows["votes"]))

    def _model_votes(self, data: Any, prediction: np.ndarray, counts: np.ndarray) -> float | None:
        """Return the number of votes that a prediction counts as; None if the test cannot be compared with raters."""
        try:
            return float(data.combiner.model_votes(prediction, counts))
        except (AttributeError, LDLError):
            return None  # the test reports the reason

    @override
    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        averages = any(isinstance(each, StochasticWeightAveraging) for each in trainer.callbacks)  # type: ignore[attr-defined]
        if averages and not StochasticWeightAveraging.pl_module_contains_batch_norm(pl_module):
            # Lightning has just replaced the validated weights.
            pl_module.calibration = pl_module.model_votes = None

    @override
    def on_fit_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        # A finished run that is resumed keeps the temperature of its checkpoint.
        if pl_module.calibrate and not self._fitted and pl_module.temperature == 1:
            rank_zero_warn(
                "model.calibrate: there was no validation to fit a temperature on, and predictions stay as trained; "
                "set data.val_fraction above 0"
            )
        if 0 < self._units < LEAST_UNITS:
            units, otherwise = ("groups", ", or take model.conformal rows") if self._grouped else ("rows", "")
            rank_zero_warn(
                f"intervals and sets stay as predicted: too few validation {units} to calibrate them, {self._units} of "
                f"the {LEAST_UNITS} that 90% needs; raise data.val_fraction{otherwise}"
            )
        elif self._units and pl_module.calibration is None:
            rank_zero_warn(
                "intervals and sets stay as predicted: the last weights were not validated; let a validation end the "
                "fit (trainer.check_val_every_n_epoch, val_check_interval; MovingAverage for StochasticWeightAveraging)"
            )

    @override
    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        if pl_module.calibration is not None:
            checkpoint[CALIBRATION_KEY] = pl_module.calibration.to_state()


def _validates_fit(trainer: pl.Trainer) -> bool:
    return trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking


def _has_intervals(task: Any) -> bool:
    return task.conformal != "none" and not task.gives_maps


def _truth(task: Any) -> str:
    return "value" if task.labels.has_values else "target"
