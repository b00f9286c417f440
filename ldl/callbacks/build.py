"""Build the model before other callbacks use it, and choose the callbacks that drive a head."""

from __future__ import annotations

import math
import re
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import (
    BaseFinetuning,
    BatchSizeFinder,
    EMAWeightAveraging,
    LearningRateFinder,
    ModelPruning,
    StochasticWeightAveraging,
    WeightAveraging,
)
from pytorch_lightning.trainer.states import TrainerFn

from ldl.callbacks.averages import FeatureSmoothing
from ldl.callbacks.compile import Compile
from ldl.callbacks.fit_head import FitHead
from ldl.callbacks.leaf_update import LeafUpdate
from ldl.errors import LDLError, check_one_of
from ldl.head import AlternatingHead, FittedHead, Head
from ldl.metrics import directions

OF_STEPS = (
    BaseFinetuning, BatchSizeFinder, LearningRateFinder, ModelPruning, StochasticWeightAveraging, WeightAveraging,
)  # fmt: skip
"""Callbacks of Lightning that act on gradient steps."""


class Build(pl.Callback):
    """Calls ``setup`` of the task before that of all other callbacks.

    Lightning calls ``setup`` of the data module, of the callbacks and of the model in this order. A ``Task`` makes its
    parameters in ``setup``, so callbacks that copy, freeze or prune parameters would find none. ``Task`` puts this
    callback first.
    """

    def setup(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        """Build the model. Raises LDLError if a callback would have no effect on the head or the backbone."""
        if stage == "fit":
            for callback in trainer.callbacks:  # type: ignore[attr-defined]
                _check_effect(callback, pl_module, trainer.world_size)
                _check_begins(callback, trainer)
        pl_module.setup(stage)
        if stage == "fit":
            for callback in trainer.callbacks:  # type: ignore[attr-defined]
                _check_averages(callback, pl_module)
                _check_direction(callback, getattr(callback, "monitor", None), pl_module)

    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Raise LDLError if a scheduler watches a metric in the wrong direction."""
        for config in trainer.lr_scheduler_configs:
            _check_direction(config.scheduler, config.monitor, pl_module)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Raise LDLError if a callback monitors a metric of the validation that is not measured."""
        metrics = trainer.callback_metrics
        if trainer.state.fn != TrainerFn.FITTING or trainer.sanity_checking:
            return
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            monitor = getattr(callback, "monitor", None) or ""
            lost = monitor not in metrics and getattr(callback, "strict", True)
            if lost and monitor.startswith(("val_", "test_")):
                check_one_of(f"{type(callback).__name__}.monitor", monitor, metrics)


def head_callbacks(head: Head, compiled: Compile, trainer: Any = None) -> list[pl.Callback]:
    """Return the callbacks that an alternating, fitted or compiled head needs.

    The callbacks of ``trainer`` then start with :class:`Build`, without those of a head that was trained before.
    """
    if trainer is not None:
        kept = [each for each in trainer.callbacks if type(each) not in (Build, Compile, FitHead, LeafUpdate)]
        trainer.callbacks = [Build(), *kept]
    drives: list[pl.Callback] = [LeafUpdate()] if isinstance(head, AlternatingHead) else []
    drives += [FitHead()] if isinstance(head, FittedHead) else []
    return [*drives, compiled] if compiled.scope != "none" else drives


def _check_effect(callback: pl.Callback, task: Any, processes: int) -> None:
    name, head = type(callback).__name__, type(task.head).__name__
    if isinstance(callback, OF_STEPS) and isinstance(task.head, FittedHead):
        raise LDLError(f"{name}: {head} is fitted in one go and takes no gradient steps; take it out of the callbacks")
    if isinstance(callback, LearningRateFinder) and isinstance(task.head, AlternatingHead):
        raise LDLError(
            f"{name}: Lightning suspends all other callbacks while it searches, and {head} does not learn without its "
            "updates; take it out of the callbacks, and search model.optimizer.init_args.lr with --stage tune"
        )
    if isinstance(callback, BaseFinetuning) and task.backbone.is_frozen:
        raise LDLError(
            f"{name}: the features of a frozen backbone are computed once, so layers that are unfrozen later would not "
            "learn; set model.backbone.freeze false"
        )
    if isinstance(callback, BaseFinetuning) and processes > 1:
        raise LDLError(
            f"{name}: torch does not exchange the gradients of layers that are unfrozen later, so {processes} "
            "processes would train different models; train in one process"
        )


def _check_begins(callback: pl.Callback, trainer: pl.Trainer) -> None:
    """Raise LDLError if a callback starts after the run; Lightning would take the untrained weights as the average."""
    epochs, steps = (math.inf if most in (None, -1) else most for most in (trainer.max_epochs, trainer.max_steps))
    first: dict[str, tuple[Any, float]] = {
        "unfreeze_backbone_at_epoch": (getattr(callback, "unfreeze_backbone_at_epoch", 0), epochs),
        "update_starting_at_step": (getattr(callback, "update_starting_at_step", 0), steps),
        "update_starting_at_epoch": (getattr(callback, "update_starting_at_epoch", 0), epochs),
    }
    if isinstance(callback, StochasticWeightAveraging) and isinstance(callback._swa_epoch_start, int):
        first["swa_epoch_start"] = callback._swa_epoch_start - 1, epochs
    if isinstance(callback, FeatureSmoothing):
        first["start"] = callback.start, epochs
    for option, (begin, length) in first.items():
        if begin is not None and begin >= length > 0:
            raise LDLError(
                f"{type(callback).__name__}.{option} lies beyond the run of {length:g} "
                f"{'steps' if 'step' in option else 'epochs'}; lower it, or raise trainer.max_epochs or max_steps"
            )


def _check_averages(callback: pl.Callback, task: Any) -> None:
    """Raise LDLError for averages of integers, which Lightning truncates: 0.9 * 7 + 0.1 * 7 may become 6."""
    if type(callback) not in (WeightAveraging, EMAWeightAveraging) or not vars(callback)["_use_buffers"]:
        return
    whole = (name for name, value in task.named_buffers() if not value.is_floating_point() and value.numel())
    if name := next((name for name in whole if not name.endswith("num_batches_tracked")), None):
        raise LDLError(
            f"{type(callback).__name__} would average the integers {name}; set its use_buffers false, or take "
            "ldl.callbacks.MovingAverage"
        )


def _check_direction(watcher: Any, monitor: str | None, task: Any) -> None:
    """Raise LDLError for ``mode: min``, the default of Lightning and torch, of a metric that is better if higher.

    So does ``max`` of a loss, or of a metric that is better if lower.
    """
    if not monitor:
        return
    name = re.sub("^(train|val|test)_", "", monitor)
    higher_is_better = {"loss": False, "kl_calibrated": False, **directions(task.labels, task.gives_maps)}
    if name not in higher_is_better:
        return
    right, wrong = ("max", "min") if higher_is_better[name] else ("min", "max")
    if getattr(watcher, "mode", right) == wrong:
        raise LDLError(
            f"{type(watcher).__name__}.mode {watcher.mode} takes the worst {monitor} for the best; set its mode to "
            f"{right}"
        )
