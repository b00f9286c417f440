"""Parameter groups, and learning rate schedules that are as long as the run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.cli import LRSchedulerCallable, OptimizerCallable
from pytorch_lightning.utilities import rank_zero_warn
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, OneCycleLR, ReduceLROnPlateau
from typing_extensions import override

from ldl.errors import LDLError, check_one_of

LENGTHS = ("T_max", "total_steps")
"""Arguments that set the length of a whole schedule, here and in torch."""
LR_MONITOR = "val_kl"
"""Metric that ReduceLROnPlateau monitors by default."""
RATER_LR = 0.05
"""Least learning rate of a model of raters: its parameters are log odds, and each rater is in few batches."""
BEGIN_LENGTHS = ("total_iters", "step_size")
"""Arguments in torch that set how long a warm-up or the first learning rate lasts."""


class Cosine(CosineAnnealingLR):
    """Half a cosine from the learning rate to ``eta_min``: torch's CosineAnnealingLR with the length of the run.

    Args:
        optimizer: The optimiser.
        eta_min: Learning rate at the end.
        T_max: Number of epochs, or of optimiser steps with ``model.lr_interval: step``; None takes the trainer's.
    """

    def __init__(self, optimizer: Optimizer, eta_min: float = 0.0, T_max: int | None = None) -> None:
        if T_max is not None and T_max < 1:
            raise LDLError(f"Cosine T_max {T_max!r} must be at least 1, or null for the length of the run")
        # The attributes are part of the saved state, so their names must stay.
        self.length, self.follows = T_max, T_max is None
        super().__init__(optimizer, T_max or 1, eta_min)

    def start(self, length: int) -> None:
        """Set the number of epochs, or of steps, before the first one."""
        self.length = self.T_max = length

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue at the step of a saved run; if the run has another length now, follow the cosine of that length."""
        length, follows = self.length, self.follows
        super().load_state_dict(state_dict)
        self.length, self.follows = self.T_max, follows
        if follows and length is not None and length != self.T_max:
            self.start(length)
            share = 0.5 * (1 + math.cos(math.pi * min(1.0, self.last_epoch / length)))
            for group, rate in zip(self.optimizer.param_groups, self.base_lrs):
                group["lr"] = self.eta_min + (rate - self.eta_min) * share


class WarmupCosine(LambdaLR):
    """Linear warm-up from a hundredth of the learning rate, then half a cosine to zero, at every optimiser step.

    Args:
        optimizer: The optimiser.
        warmup: Share of the steps in the warm-up, in [0, 1).
        total_steps: Number of optimiser steps; None takes the trainer's.
    """

    def __init__(self, optimizer: Optimizer, warmup: float = 0.1, total_steps: int | None = None) -> None:
        if not 0 <= warmup < 1:
            raise LDLError(f"WarmupCosine warmup {warmup!r} must be in [0, 1), a share of the steps")
        if total_steps is not None and total_steps < 1:
            raise LDLError(f"WarmupCosine total_steps {total_steps!r} must be at least 1")
        self.warmup = warmup
        self.total_steps = total_steps
        self.follows = total_steps is None
        super().__init__(optimizer, self.factor)

    def start(self, length: int) -> None:
        """Set the number of steps, before the first one."""
        self.total_steps = length
        self._set_rates()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue at the step of a saved run; if the run has another length now, follow the curve of that length."""
        length, follows = self.total_steps, self.follows
        super().load_state_dict(state_dict)
        self.follows = follows
        if follows and length is not None and length != self.total_steps:
            self.total_steps = length
            self._set_rates()

    def factor(self, step: int) -> float:
        """Return the factor of the learning rate at a step, in [0, 1]."""
        if self.total_steps is None:
            return 1.0
        rise = self.warmup * self.total_steps
        if step < rise:
            return 0.01 + 0.99 * step / rise
        done = min(1.0, (step - rise) / max(1.0, self.total_steps - rise))
        return 0.5 * (1 + math.cos(math.pi * done))

    def _set_rates(self) -> None:
        for group, rate in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = rate * self.factor(self.last_epoch)


class Optimised(pl.LightningModule):
    """A LightningModule that makes its optimiser and scheduler from factories.

    Attributes:
        optimizer: Makes the optimiser.
        lr_scheduler: Makes the scheduler, or None.
        lr_interval: Whether the scheduler steps once an ``epoch`` or at every ``step``.
        lr_monitor: Metric that ReduceLROnPlateau monitors, unless it has a ``monitor`` of its own, as Lightning's does.
        backbone: A ``Backbone``, which may have a learning rate of its own.
        raters: A model of raters, whose parameters have no weight decay and at least the learning rate
            :data:`RATER_LR`; or None.
    """

    optimizer: OptimizerCallable
    lr_scheduler: LRSchedulerCallable | None
    lr_interval: str
    lr_monitor: str
    backbone: Any
    raters: Any
    _lr: float | None = None

    @property
    def lr(self) -> float | None:
        """Learning rate that replaces the optimiser's, unless it is None; Lightning's finders set it."""
        return self._lr

    @lr.setter
    def lr(self, lr: float) -> None:
        self._lr = lr
        for config in self._trainer.lr_scheduler_configs if self._trainer is not None else ():
            config.scheduler.base_lrs = [lr] * len(config.scheduler.base_lrs)

    def configure_optimizers(self) -> Any:
        """Return the optimiser, with groups for a backbone with ``lr`` and for raters, and the scheduler if set."""
        tuned = self.backbone.tuned_parameters() if self.backbone.lr is not None else []
        raters = [] if self.raters is None else list(self.raters.parameters())
        optimizer = self.optimizer(parameter_groups(self.parameters(), tuned, self.backbone.lr, self.lr, raters))
        if raters:
            of_raters = optimizer.param_groups[-1]
            of_raters["lr"] = max(of_raters["lr"], RATER_LR)
        if self.lr_scheduler is None:
            _warn_unused_monitor(None, self.lr_monitor)
            return optimizer
        scheduler = schedule(self.lr_scheduler(optimizer), self.lr_interval, self.lr_monitor, self._trainer)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}

    @override
    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        # Lightning would step ReduceLROnPlateau after the epoch's checkpoint; ``on_train_epoch_end`` has done so.
        if not isinstance(scheduler, ReduceLROnPlateau):
            super().lr_scheduler_step(scheduler, metric)


def parameter_groups(
    parameters: Iterable[nn.Parameter],
    tuned: Sequence[nn.Parameter],
    lr: float | None,
    rest_lr: float | None = None,
    raters: Sequence[nn.Parameter] = (),
) -> list[dict[str, Any]]:
    """Return the parameter groups of an optimiser, without frozen parameters.

    Args:
        parameters: All parameters.
        tuned: The parameters among them that have a learning rate of their own.
        lr: Learning rate of ``tuned``.
        rest_lr: Learning rate of the others; None takes the optimiser's.
        raters: The parameters among them of a model of raters, which are the last group, without weight decay.
    """
    owned = {id(parameter) for parameter in (*tuned, *raters)}
    rest = [parameter for parameter in parameters if id(parameter) not in owned]
    rate = {} if rest_lr is None else {"lr": rest_lr}
    groups: list[dict[str, Any]] = [
        {"params": rest, **rate},
        {"params": tuned, "lr": lr},
        {"params": raters, "weight_decay": 0.0, **rate},
    ]
    groups = [{**group, "params": [p for p in group["params"] if p.requires_grad]} for group in groups]
    return [group for group in groups if group["params"]]


def schedule(
    scheduler: LRScheduler | ReduceLROnPlateau, interval: str, monitor: str, trainer: pl.Trainer | None
) -> dict[str, Any]:
    """Return Lightning's description of a scheduler, and set its length to that of the training.

    ReduceLROnPlateau, which monitors ``monitor``, steps once an epoch, and :class:`WarmupCosine` at every step. Others
    step by ``interval``, ``epoch`` or ``step``. If a scheduler has a length of its own that differs from the training,
    a warning names both.

    Raises:
        LDLError: The schedule is as long as a run that has no end, OneCycleLR would end before the run, or ``monitor``
            differs from the scheduler's own.
    """
    if isinstance(scheduler, WarmupCosine):
        interval = "step"
    elif isinstance(scheduler, ReduceLROnPlateau):
        interval, own_monitor = "epoch", getattr(scheduler, "monitor", monitor)
        if monitor not in (own_monitor, LR_MONITOR):
            raise LDLError(
                f"model.lr_monitor {monitor!r} and model.lr_scheduler.monitor {own_monitor!r} differ; leave one of "
                "them out"
            )
        monitor = own_monitor
    _warn_unused_monitor(scheduler, monitor)
    if trainer is not None:
        _fit_length(scheduler, interval, trainer)
    return {"scheduler": scheduler, "interval": interval, "monitor": monitor}


def _warn_unused_monitor(scheduler: Any, monitor: str) -> None:
    """Warn if a metric is set that no scheduler monitors."""
    if monitor != LR_MONITOR and not isinstance(scheduler, ReduceLROnPlateau):
        rank_zero_warn(f"model.lr_monitor {monitor!r} has no effect: only ReduceLROnPlateau watches a metric")


def _fit_length(scheduler: LRScheduler | ReduceLROnPlateau, interval: str, trainer: pl.Trainer) -> None:
    """Set the length of a schedule that follows the run; compare the length of any other with the run."""
    name = type(scheduler).__name__
    if isinstance(scheduler, Cosine | WarmupCosine) and scheduler.follows:
        length = _length(trainer, interval)
        if length is None:
            raise LDLError(f"{name} is as long as the run, which has no end; set trainer.max_epochs or max_steps")
        scheduler.start(length)
        return
    if begin_field := next((field for field in BEGIN_LENGTHS if (getattr(scheduler, field, 0) or 0) > 0), None):
        length = _length(trainer, interval)
        if length is not None and getattr(scheduler, begin_field) > length:
            rank_zero_warn(
                f"{name} has {begin_field} {getattr(scheduler, begin_field)}, and training has {length} {interval}s; "
                "lower it"
            )
    field = next((field for field in LENGTHS if hasattr(scheduler, field)), None)
    length = None if field is None else _length(trainer, interval)
    if field is None or length is None or getattr(scheduler, field) == length:
        return
    message = f"{name} has {field} {getattr(scheduler, field)}, and training has {length} {interval}s"
    if isinstance(scheduler, OneCycleLR) and getattr(scheduler, field) < length:
        raise LDLError(f"{message}: it would stop there; set model.lr_scheduler.{field} {length}")
    replacement = "WarmupCosine" if isinstance(scheduler, OneCycleLR | WarmupCosine) else "Cosine"
    rank_zero_warn(
        f"{message}; set {field} {length}, or take ldl.schedule.{replacement} without it, which is as long as a run"
    )


def _length(trainer: pl.Trainer, interval: str) -> int | None:
    """Return the number of epochs or optimiser steps of a training; None if it has no end."""
    if interval == "epoch" and trainer.max_steps == -1:
        return trainer.max_epochs if (trainer.max_epochs or -1) > 0 else None
    epoch_steps = math.ceil(_epoch_batches(trainer) / trainer.accumulate_grad_batches)
    steps = math.inf if trainer.max_epochs in (None, -1) else epoch_steps * max(trainer.max_epochs, 1)
    steps = steps if trainer.max_steps == -1 else min(steps, trainer.max_steps)
    if not math.isfinite(steps):
        return None
    return int(steps) if interval == "step" else math.ceil(steps / epoch_steps)


def _epoch_batches(trainer: pl.Trainer) -> float:
    """Return the number of training batches of an epoch.

    The data module's count comes first, because Lightning's starts a loader before a resumed run is restored.
    """
    count = getattr(trainer.datamodule, "train_batches", None)  # type: ignore[attr-defined]
    if count is None:
        trainer.fit_loop.setup_data()
        return trainer.num_training_batches
    limit = trainer.limit_train_batches
    return min(count, limit) if isinstance(limit, int) else int(count * limit)


def run_batches(trainer: pl.Trainer) -> float:
    """Return the number of batches of a whole training whose data are set up; inf if the training has no end."""
    epochs, steps = trainer.max_epochs, trainer.max_steps
    by_epochs = math.inf if epochs in (None, -1) else trainer.num_training_batches * epochs
    return by_epochs if steps == -1 else min(by_epochs, steps * trainer.accumulate_grad_batches)


def step_plateau(trainer: pl.Trainer) -> None:
    """Step ReduceLROnPlateau, if it is the scheduler, by the current metric at the end of an epoch.

    Raises:
        LDLError: There is no metric of that name, and the run has not just resumed.
    """
    metrics = trainer.callback_metrics
    config = next(iter(trainer.lr_scheduler_configs), None)
    if config is None or not isinstance(config.scheduler, ReduceLROnPlateau) or not trainer.is_last_batch:
        return
    scheduler, monitor = config.scheduler, str(config.monitor)
    if monitor in metrics:
        scheduler.step(metrics[monitor])
    elif not trainer.fit_loop.restarting:
        if trainer.barebones:
            raise LDLError("trainer.barebones logs nothing for ReduceLROnPlateau to watch; take another scheduler")
        option = "model.lr_scheduler.monitor" if hasattr(scheduler, "monitor") else "model.lr_monitor"
        check_one_of(option, monitor, metrics)
