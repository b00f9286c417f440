"""Small label distribution forests with random leaves, and what they compute, tree by tree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ldl.heads import LDLF
from ldl.labels import LabelSpace
from ldl.methods.forest.soft import route

LABELS = LabelSpace.ordinal(range(6))


def made(**options: Any) -> LDLF:
    """A small head with random leaves, for 8 features and 6 labels."""
    torch.manual_seed(0)
    head = LDLF(**{"trees": 3, "depth": 3, "outputs": 5, "batches": 4, **options})
    head.build(8, LABELS)
    head.leaves.copy_(torch.rand_like(head.leaves).softmax(-1))
    return head


def batch(rows: int = 10, seed: int = 0, shape: tuple[int, ...] | None = None) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (rows,) if shape is None else shape
    target = torch.softmax(torch.randn(*shape, 6, generator=generator), -1)
    return torch.randn(*shape, 8, generator=generator), target


def learn(head: LDLF, features: Tensor, target: Tensor) -> None:
    """What the task does with a batch, but for the gradient step."""
    head.observe(head.loss(features, target).get("memory", features), target)


def tree_outputs(head: LDLF, features: Tensor) -> list[Tensor]:
    """(B, C) of every tree, tree by tree and leaf by leaf."""
    scores = head.split(features)
    outputs = []
    for units, leaves in zip(head.units, head.leaves):
        routing = route(torch.sigmoid(scores[:, units]))
        outputs.append(sum(routing[:, leaf : leaf + 1] * leaves[leaf] for leaf in range(len(leaves))))
    return outputs  # type: ignore[return-value]
