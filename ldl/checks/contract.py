"""The contract of :mod:`ldl.head`, held against a head before its first step: what would else be a riddle later."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ldl.checks.numbers import watch_prediction
from ldl.checks.watch import Watch
from ldl.errors import LDLError, SharedError
from ldl.head import Head, ImageHead
from ldl.labels import LabelSpace
from ldl.spec import to_spec


def check_made(*parts: nn.Module) -> None:
    """Refuse a head or backbone whose ``__init__`` forgot that of its base, or does not store its arguments."""
    for part in parts:
        if "_parameters" not in part.__dict__:
            raise LDLError(f"{type(part).__name__}.__init__ must call super().__init__() first")
        to_spec(part)


def check_built(head: Head, in_features: int, labels: LabelSpace) -> None:
    """Refuse a head whose ``build`` forgot that of its base."""
    if not head.is_built or head.in_features != in_features or head.labels != labels:
        raise LDLError(f"{type(head).__name__}.build must call super().build(in_features, labels) first")


def check_features(backbone: nn.Module, features: Any, head: Head, rows: int) -> None:
    """Refuse what is no tensor of features (rows, ..., F). Raises SharedError: every process finds the same."""
    if isinstance(head, ImageHead):
        return
    name = type(backbone).__name__
    if not isinstance(features, Tensor):
        raise SharedError(f"{name}.forward gives a {type(features).__name__}, not a tensor of features")
    if features.ndim < 2 or len(features) != rows or features.shape[-1] != head.in_features:
        raise SharedError(
            f"{name}.forward gives {tuple(features.shape)} for {rows} inputs; it must be ({rows}, ..., "
            f"{head.in_features}), with as many features as its build has told"
        )


def check_output(head: Head, prediction: Any, shape: tuple[int, ...]) -> None:
    """Refuse what is no tensor of this shape, of which -1 is any size. Raises SharedError: every process finds it."""
    name = f"{type(head).__name__}.forward"
    if not isinstance(prediction, Tensor):
        raise SharedError(f"{name} gives a {type(prediction).__name__}, not a tensor {shape}")
    if not (prediction.ndim == len(shape) and all(a in (-1, b) for a, b in zip(shape, prediction.shape))):
        found = tuple(prediction.shape)
        raise SharedError(f"{name} gives {found}, not {shape}: it must act on the last dimension and keep the others")


@torch.no_grad()
def check_forward(head: Head, features: Tensor, target: Tensor, watch: Watch, index: Tensor | None = None) -> None:
    """Call a head in evaluation mode, as if it had not been, and note whether it gives distributions.

    Args:
        head: The head.
        features: (B, ..., F), or (B, ..., J, F) for heads that take bags.
        target: (B, ..., C).
        watch: Gets the note.
        index: (B,) the instances, by number; None counts them.

    Raises:
        SharedError: it gives another shape.
    """
    modes = [(module, module.training) for module in head.modules()]
    with torch.random.fork_rng([features.device] if features.is_cuda else []):
        prediction = head.eval()(features)
    for module, mode in modes:
        module.training = mode
    check_output(head, prediction, tuple(target.shape))
    watch_prediction(watch, head, prediction, None, torch.arange(len(prediction)) if index is None else index)


def check_losses(head: Head, losses: Any) -> None:
    """Refuse what ``loss`` must not give. Raises SharedError: every process finds the same."""
    name = type(head).__name__
    if not isinstance(losses, dict) or "loss" not in losses:
        raise SharedError(f"{name}.loss must return a dict with the key 'loss'")
    for key, value in losses.items():
        if key != "memory" and not (isinstance(value, Tensor) and value.ndim == 0):
            found = f"a tensor {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
            raise SharedError(f"{name}.loss {key!r} must be one number, a tensor (), but is {found}")
    if not losses["loss"].requires_grad:
        raise SharedError(
            f"{name}.loss has no gradient: compute it of what has parameters, in torch; "
            "a head without gradients is a FittedHead"
        )
