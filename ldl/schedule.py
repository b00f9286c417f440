"""Parameter groups and learning rates: schedules as long as the run, and how Lightning is told of any."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.utilities import rank_zero_warn
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, OneCycleLR, ReduceLROnPlateau

from ldl.errors import LDLError, did_you_mean

LENGTHS = ("T_max", "total_steps")
"""What torch's schedulers, and those here, call their length."""


class Cosine(CosineAnnealingLR):
    """Falls from the learning rate to ``eta_min`` along half a cosine: torch's CosineAnnealingLR, as long as the run.

    Args:
        optimizer: The optimiser.
        eta_min: The learning rate at the end.
        T_max: Number of epochs, or of optimiser steps with ``model.lr_interval: step``; None lets ``Task`` take the
            trainer's.
    """

    def __init__(self, optimizer: Optimizer, eta_min: float = 0.0, T_max: int | None = None) -> None:
        if T_max is not None and T_max < 1:
            raise LDLError(f"Cosine T_max {T_max!r} must be at least 1, or null for the length of the run")
        self.length, self.follows = T_max, T_max is None
        super().__init__(optimizer, T_max or 1, eta_min)

    def start(self, length: int) -> None:
        """Set the number of epochs, or of steps, before the first one."""
        self.length = self.T_max = length

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where a run was; where that was to be of another length, from there along the cosine of this one."""
        length, follows = self.length, self.follows
        super().load_state_dict(state_dict)
        self.length, self.follows = self.T_max, follows
        if follows and length is not None and length != self.T_max:
            self.start(length)
            share = 0.5 * (1 + math.cos(math.pi * min(1.0, self.last_epoch / length)))
            for group, rate in zip(self.optimizer.param_groups, self.base_lrs):
                group["lr"] = self.eta_min + (rate - self.eta_min) * share


class WarmupCosine(LambdaLR):
    """Rises linearly from a hundredth of the learning rate, then falls to zero along half a cosine, step by step.

    Args:
        optimizer: The optimiser.
        warmup: Share of the steps on which it rises, in [0, 1).
        total_steps: Number of optimiser steps; None lets ``Task`` take the trainer's.
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
        """Go on where a run was; where that was to be of another length, from there along the curve of this one."""
        length, follows = self.total_steps, self.follows
        super().load_state_dict(state_dict)
        self.follows = follows
        if follows and length is not None and length != self.total_steps:
            self.total_steps = length
            self._set_rates()

    def factor(self, step: int) -> float:
        """Share of the learning rate at a step, in [0, 1]."""
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


def parameter_groups(
    parameters: Iterable[nn.Parameter], own: Sequence[nn.Parameter], lr: float | None
) -> list[dict[str, Any]]:
    """Groups for an optimiser: what trains of ``parameters``, and of ``own`` among them with a rate ``lr``."""
    owned = {id(parameter) for parameter in own}
    rest = [parameter for parameter in parameters if id(parameter) not in owned]
    groups: list[dict[str, Any]] = [{"params": rest}, {"params": own, "lr": lr}]
    groups = [{**group, "params": [p for p in group["params"] if p.requires_grad]} for group in groups]
    return [group for group in groups if group["params"]]


def schedule(
    scheduler: LRScheduler | ReduceLROnPlateau, interval: str, monitor: str, trainer: pl.Trainer | None
) -> dict[str, Any]:
    """What Lightning wants to know of a scheduler, made as long as the training of a trainer, where there is one.

    ReduceLROnPlateau, which watches ``monitor``, steps once an epoch, :class:`WarmupCosine` at every step, others by
    ``interval``, ``epoch`` or ``step``. A length of its own that is not the training's is told in one line.

    Raises LDLError: a schedule as long as a run that has no end, or OneCycleLR, which would end before it.
    """
    if isinstance(scheduler, WarmupCosine):
        interval = "step"
    elif isinstance(scheduler, ReduceLROnPlateau):
        interval = "epoch"
    if trainer is not None:
        _fit_length(scheduler, interval, trainer)
    return {"scheduler": scheduler, "interval": interval, "monitor": monitor}


def _fit_length(scheduler: LRScheduler | ReduceLROnPlateau, interval: str, trainer: pl.Trainer) -> None:
    name = type(scheduler).__name__
    if isinstance(scheduler, Cosine | WarmupCosine) and scheduler.follows:
        length = _length(trainer, interval)
        if length is None:
            raise LDLError(f"{name} is as long as the run, which has no end; set trainer.max_epochs or max_steps")
        scheduler.start(length)
        return
    own = next(((field, getattr(scheduler, field)) for field in LENGTHS if hasattr(scheduler, field)), None)
    length = None if own is None else _length(trainer, interval)
    if own is None or length is None or own[1] == length:
        return
    said = f"{name} has {own[0]} {own[1]}, and training has {length} {interval}s"
    if isinstance(scheduler, OneCycleLR) and own[1] < length:
        raise LDLError(f"{said}: it would stop there; set model.lr_scheduler.{own[0]} {length}")
    follow = "WarmupCosine" if isinstance(scheduler, OneCycleLR | WarmupCosine) else "Cosine"
    rank_zero_warn(
        f"{said}; set {own[0]} {length}, or take ldl.schedule.{follow} without it, which is as long as a run"
    )


def _length(trainer: pl.Trainer, interval: str) -> int | None:
    """Epochs, or optimiser steps, of a training; None where it has no end."""
    if interval == "epoch" and trainer.max_steps == -1:
        return trainer.max_epochs if (trainer.max_epochs or -1) > 0 else None
    an_epoch = math.ceil(_batches(trainer) / trainer.accumulate_grad_batches)
    steps = math.inf if trainer.max_epochs in (None, -1) else an_epoch * max(trainer.max_epochs, 1)
    steps = steps if trainer.max_steps == -1 else min(steps, trainer.max_steps)
    if not math.isfinite(steps):
        return None
    return int(steps) if interval == "step" else math.ceil(steps / an_epoch)


def _batches(trainer: pl.Trainer) -> float:
    """Batches of an epoch. Lightning's own count begins to read them, before a resumed run knows where it was."""
    count = getattr(trainer.datamodule, "train_batches", None)  # type: ignore[attr-defined]
    if count is None:
        trainer.fit_loop.setup_data()
        return trainer.num_training_batches
    limit = trainer.limit_train_batches
    return min(count, limit) if isinstance(limit, int) else int(count * limit)


def step_plateau(scheduler: ReduceLROnPlateau, monitor: str, trainer: pl.Trainer) -> None:
    """Step by what was measured, at the end of an epoch.

    Raises LDLError where nothing of that name was measured, but for a run that has just resumed.
    """
    metrics = trainer.callback_metrics
    if not trainer.is_last_batch:
        return
    if monitor in metrics:
        scheduler.step(metrics[monitor])
    elif not trainer.fit_loop.restarting:
        near = did_you_mean(monitor, metrics)
        raise LDLError(f"model.lr_monitor {monitor!r} is not measured{near}; there are {', '.join(metrics)}")
