"""Parameter groups and learning rates: a schedule that needs no number of steps, and how Lightning is told of any."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytorch_lightning as pl
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

from ldl.errors import LDLError, did_you_mean


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
        super().__init__(optimizer, self.factor)

    def start(self, total_steps: int) -> None:
        """Set the number of steps, before the first one."""
        self.total_steps = total_steps
        for group, rate in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = rate * self.factor(0)

    def factor(self, step: int) -> float:
        """Share of the learning rate at a step, in [0, 1]."""
        if self.total_steps is None:
            return 1.0
        rise = self.warmup * self.total_steps
        if step < rise:
            return 0.01 + 0.99 * step / rise
        done = min(1.0, (step - rise) / max(1.0, self.total_steps - rise))
        return 0.5 * (1 + math.cos(math.pi * done))


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
    scheduler: LRScheduler | ReduceLROnPlateau, interval: str, monitor: str, steps: Callable[[], int] | None
) -> dict[str, Any]:
    """What Lightning wants to know of a scheduler; ``steps`` gives the optimiser's of the training, where there is one.

    ReduceLROnPlateau, which watches ``monitor``, steps once an epoch, :class:`WarmupCosine` at every step, others by
    ``interval``, ``epoch`` or ``step``.
    """
    if isinstance(scheduler, WarmupCosine):
        interval = "step"
        if scheduler.total_steps is None and steps is not None:
            scheduler.start(steps())
    elif isinstance(scheduler, ReduceLROnPlateau):
        interval = "epoch"
    return {"scheduler": scheduler, "interval": interval, "monitor": monitor}


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
