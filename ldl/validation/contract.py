"""Checks of the contract in :mod:`ldl.head`: each error names the rule that a head or backbone breaks.

``Task`` calls them when it is made (:func:`check_made`), when it builds its head (:func:`check_built`), and for the
features, output and losses of the first training step. :func:`lost_in_checkpoint` runs after a fit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor, nn

from ldl.errors import LDLError, SharedError
from ldl.head import Head, ImageHead
from ldl.labels import LabelSpace
from ldl.spec import from_spec, to_spec
from ldl.validation.finite import DeferredChecks, note_prediction

NOT_LEARNED = {*vars(nn.Module()), "shows_progress"}
"""Attributes that are no result of a fit: those of every torch module, and the switch of the progress bar."""
STATE_FIX = (
    "register buffers in build with self.register_buffers(name=tensor), let fit register the learned tensors under the "
    "same names, and let forward use no other result of fit"
)
"""How to correct a head that a checkpoint does not restore."""


def check_made(*modules: nn.Module) -> None:
    """Check that ``__init__`` of a head or backbone calls ``super().__init__()`` and stores its arguments.

    Warns if ``lightning`` is imported beside ``pytorch_lightning``, because the trainer of ``lightning`` does not
    accept a ``Task``.

    Raises:
        LDLError: The base was not called, or an argument is not an attribute of the same name.
    """
    for module in modules:
        if "_parameters" not in module.__dict__:
            raise LDLError(f"{type(module).__name__}.__init__ must call super().__init__() first")
        to_spec(module)
    if "lightning.pytorch" in sys.modules:
        rank_zero_warn(
            "both lightning and pytorch_lightning are imported, and their classes are incompatible; write "
            "`import pytorch_lightning as pl` in place of `import lightning as L`, for Trainer and callbacks, too"
        )


def check_built(head: Head, in_features: int, labels: LabelSpace) -> None:
    """Raise LDLError if ``build`` of a head did not call ``super().build(in_features, labels)``."""
    if not head.is_built or head.in_features != in_features or head.labels != labels:
        raise LDLError(f"{type(head).__name__}.build must call super().build(in_features, labels) first")


def check_features(backbone: nn.Module, features: Any, head: Head, rows: int) -> None:
    """Raise SharedError unless ``features`` of a backbone is a tensor of shape (rows, ..., ``head.in_features``)."""
    if isinstance(head, ImageHead):
        return
    name = type(backbone).__name__
    if not isinstance(features, Tensor):
        raise SharedError(f"{name}.forward gives a {type(features).__name__}, not a tensor of features")
    if features.ndim < 2 or len(features) != rows or features.shape[-1] != head.in_features:
        raise SharedError(
            f"{name}.forward gives {tuple(features.shape)} for {rows} inputs; it must be ({rows}, ..., "
            f"{head.in_features}), with the number of features that its build returned"
        )


def check_output(head: Head, prediction: Any, shape: tuple[int, ...]) -> None:
    """Raise SharedError unless ``prediction`` is a tensor of ``shape``, in which -1 stands for any length."""
    name = f"{type(head).__name__}.forward"
    if not isinstance(prediction, Tensor):
        raise SharedError(f"{name} gives a {type(prediction).__name__}, not a tensor {shape}")
    if not (prediction.ndim == len(shape) and all(a in (-1, b) for a, b in zip(shape, prediction.shape))):
        actual = tuple(prediction.shape)
        raise SharedError(f"{name} gives {actual}, not {shape}: it must act on the last dimension and keep the others")


@torch.no_grad()
def check_forward(
    head: Head, features: Tensor, target: Tensor, checks: DeferredChecks, index: Tensor | None = None
) -> None:
    """Check that a head returns distributions of the shape of the targets in evaluation mode.

    The mode of the head and the random state are as before afterwards. The numbers stay on the device: ``checks``
    reports predictions that are no distributions before a later step, so that this step does not wait.

    Args:
        head: The head.
        features: (B, ..., F), or (B, ..., J, F) for heads that take bags.
        target: (B, ..., C).
        checks: Checks to which that of the numbers is added.
        index: (B,) numbers of the instances, for the message; None counts from 0.

    Raises:
        SharedError: The output is not a tensor of the shape of ``target``.
    """
    with _evaluating(head), torch.random.fork_rng([features.device] if features.is_cuda else []):
        prediction = head(features)
    check_output(head, prediction, tuple(target.shape))
    note_prediction(checks, head, prediction, None, torch.arange(len(prediction)) if index is None else index)


def check_losses(head: Head, losses: Any) -> None:
    """Raise SharedError unless ``losses`` has scalar tensors, besides any ``memory``, and ``loss`` has a gradient."""
    name = type(head).__name__
    if not isinstance(losses, dict) or "loss" not in losses:
        raise SharedError(f"{name}.loss must return a dict with the key 'loss'")
    for key, value in losses.items():
        if key != "memory" and not (isinstance(value, Tensor) and value.ndim == 0):
            actual = f"a tensor {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
            raise SharedError(f"{name}.loss {key!r} must be one number, a tensor (), but is {actual}")
    if not losses["loss"].requires_grad:
        raise SharedError(
            f"{name}.loss has no gradient: compute it from parameters, in torch; "
            "a head without gradients is a FittedHead"
        )


@torch.no_grad()
def lost_in_checkpoint(head: Head, features: Tensor, make: Callable[[], Head] | None = None) -> str | None:
    """Return why a fitted head would predict differently after it is saved and loaded, or None if it would not.

    A second head, the twin, is made as from a checkpoint: from the arguments of the head and its ``state_dict``. Both
    predict the same features, and their predictions must agree up to rounding.

    Args:
        head: The fitted head.
        features: Input of ``forward``.
        make: Function that makes the twin; None makes it from the arguments of ``head``.

    Returns:
        A clause for an error message, with the attributes that ``fit`` has left outside ``state_dict``, and the fix.
    """
    try:
        with torch.random.fork_rng([features.device] if features.is_cuda else []):
            twin = make() if make else from_spec(to_spec(head), Head)  # type: ignore[type-abstract]
            twin.build(head.in_features, head.labels)
    except LDLError:
        return None  # no checkpoint can name a class that is defined inside a function
    if (weight := next(head.parameters(), None)) is not None:
        twin.to(weight.dtype)  # the features have the precision of training
    try:
        twin.load_state_dict(head.state_dict())
    except (RuntimeError, LDLError) as error:
        return f"its state_dict cannot be loaded: {' '.join(str(error).split())[:200]}; {STATE_FIX}"
    with _evaluating(head):
        prediction = head.predict(features)
    why = ""
    try:
        if all(map(_alike, prediction, twin.to(features.device).eval().predict(features))):
            return None
    except Exception as error:  # a head without part of its state may raise anything
        why = f" ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
    names = _other_attributes(head, twin)
    which = f"what fit left in {', '.join(names)} is in no buffer" if names else "its buffers do not hold all of it"
    return f"loaded from its state_dict it predicts differently{why}: {which}; {STATE_FIX}"


@contextmanager
def _evaluating(head: Head) -> Iterator[Head]:
    """Put a head into evaluation mode, and each of its modules back into its own mode afterwards."""
    modes = [(module, module.training) for module in head.modules()]
    yield head.eval()
    for module, mode in modes:
        module.training = mode


def _alike(first: Tensor | None, second: Tensor | None) -> bool:
    """Return whether predictions differ by at most 1e-4 of the largest value, or by 5% of it in 16 bits."""
    if first is None or second is None:
        return first is second
    half = {first.dtype, second.dtype} & {torch.float16, torch.bfloat16}
    scale = max(1.0, float(first.double().abs().nan_to_num().max())) if first.numel() else 1.0
    close = (0.05 if half else 1e-4) * scale
    return first.shape == second.shape and torch.allclose(first.double(), second.double(), 0, close, equal_nan=True)


def _other_attributes(head: Head, twin: Head) -> list[str]:
    """Return the names of attributes and non-persistent buffers that the twin lacks, or has with another value."""
    kept: dict[str, Any] = {name: value for name, value in vars(head).items() if name not in NOT_LEARNED}
    kept |= {name: head._buffers[name] for name in head._non_persistent_buffers_set}
    return sorted(name for name, value in kept.items() if not _equal(value, getattr(twin, name, NOT_LEARNED)))


def _equal(first: Any, second: Any) -> bool:
    """Return whether two values are equal; False if they cannot be compared."""
    try:
        same: Any = first is second or first == second
        return bool(same.all() if hasattr(same, "all") else same)
    except Exception:  # values of kinds or shapes that cannot be compared
        return False
