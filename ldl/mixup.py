"""Mixup (Zhang et al. 2018). Label distributions are its natural target: a mixture of two is one again."""

from __future__ import annotations

import torch
from torch import Tensor


def mixup(batch: dict[str, Tensor], alpha: float) -> dict[str, Tensor]:
    """Mix every instance with another one of the batch.

    One share, drawn from Beta(alpha, alpha), holds for the whole batch: lower ``alpha`` mixes less. ``input`` or
    ``features``, ``target`` and ``value`` (so the expectation of the target still is the value) are mixed, the
    rest stays.

    Args:
        batch: ``input`` or ``features`` (B, ...), ``target`` (B, C) and maybe ``value`` (B, ...).
        alpha: Parameter of the Beta distribution, positive.
    """
    target = batch["target"]
    share = torch.distributions.Beta(alpha, alpha).sample().to(target)
    partner = torch.randperm(len(target), device=target.device)
    mixed: dict[str, Tensor] = {
        name: (share * batch[name] + (1 - share) * batch[name][partner]).to(batch[name].dtype)
        for name in ("input", "features", "target", "value")
        if name in batch
    }
    return {**batch, **mixed}
