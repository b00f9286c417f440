"""Bags of instances, and heads fitted on bags."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ldl.bags import MILBoost
from ldl.collective import Collective
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows

LABELS = LabelSpace.nominal(["negative", "positive"])


def some_bags(seed: int, bags: int = 60, longest: int = 5, width: int = 4) -> tuple[Tensor, Tensor]:
    """Bags (B, J, F), some shorter, positive where an instance has two large features; and their labels (B, 2)."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(bags, longest, width, generator=generator)
    features[torch.arange(longest) > torch.randint(longest, (bags, 1), generator=generator)] = torch.nan
    label = ((features[..., 0] > 0.3) & (features[..., 1] > -0.5)).any(1).long()
    return features, torch.eye(2)[label]


def fitted(head: MILBoost, features: Tensor, target: Tensor) -> Any:
    head.build(features.shape[-1], LABELS)
    head.fit(Rows(features, target), Collective())
    return head


def gm(values: Tensor, r: float) -> Tensor:
    """Generalised mean over the last dimension (Babenko et al. 2008, Table 1)."""
    top = values.detach().amax(-1, keepdim=True)
    scale = torch.where(top > 0, top, 1.0)
    return scale.squeeze(-1) * ((values / scale) ** r).mean(-1) ** (1 / r)


def nor(values: Tensor) -> Tensor:
    """Noisy or over the last dimension (Table 1)."""
    return 1 - (1 - values).prod(-1)


def isr(values: Tensor) -> Tensor:
    """Integrated segmentation and recognition over the last dimension (Table 1)."""
    total = (values / (1 - values)).sum(-1)
    return total / (1 + total)
