"""A learning-rate schedule that needs no number of steps in the configuration."""

from __future__ import annotations

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ldl.errors import LDLError


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
