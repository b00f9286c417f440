"""Whether a head comes back from its checkpoint: what is learned belongs into parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ldl.errors import LDLError
from ldl.head import Head
from ldl.spec import from_spec, to_spec

INTERNAL = {*vars(nn.Module()), "shows_progress"}
FIX = "learn into self.register_buffers(name=tensor), of shapes that build makes up, and let forward read these alone"


@torch.no_grad()
def lost_in_checkpoint(head: Head, features: Tensor, make: Callable[[], Head] | None = None) -> str | None:
    """What a second head, made of the arguments and the ``state_dict`` of the first, does not have of it, in words.

    Args:
        head: The head, fitted.
        features: Rows (B, F) to compare predictions on, or what else ``forward`` takes.
        make: Makes such a head; None makes it of its arguments, as a checkpoint does.

    Returns:
        None where both predict the same, up to rounding.
    """
    try:
        with torch.random.fork_rng([features.device] if features.is_cuda else []):
            twin = make() if make else from_spec(to_spec(head), Head)  # type: ignore[type-abstract]
            twin.build(head.in_features, head.labels)
    except LDLError:
        return None  # a class inside of a function, which no checkpoint can name
    if (weight := next(head.parameters(), None)) is not None:
        twin.to(weight.dtype)  # the features have the precision of training
    try:
        twin.load_state_dict(head.state_dict())
    except (RuntimeError, LDLError) as error:
        return f"its state_dict cannot be loaded: {' '.join(str(error).split())[:200]}; {FIX}"
    modes = [(module, module.training) for module in head.modules()]
    own = head.eval().predict(features)
    for module, mode in modes:
        module.training = mode
    why = ""
    try:
        if all(map(_alike, own, twin.to(features.device).eval().predict(features))):
            return None
    except Exception as error:  # whatever a head does without what it has lost
        why = f" ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
    names = _other_attributes(head, twin)
    which = f"what fit left in {', '.join(names)} is in no buffer" if names else "its buffers do not hold it all"
    return f"loaded from its state_dict it predicts otherwise{why}: {which}; {FIX}"


def _alike(first: Tensor | None, second: Tensor | None) -> bool:
    if first is None or second is None:
        return first is second
    half = {first.dtype, second.dtype} & {torch.float16, torch.bfloat16}
    scale = max(1.0, float(first.double().abs().nan_to_num().max())) if first.numel() else 1.0
    close = 0.05 if half else 1e-4
    return first.shape == second.shape and torch.allclose(
        first.double(), second.double(), 0, close * scale, equal_nan=True
    )


def _other_attributes(head: Head, twin: Head) -> list[str]:
    """Attributes and passing buffers that differ, or that one head alone has."""
    kept: dict[str, Any] = {name: value for name, value in vars(head).items() if name not in INTERNAL}
    kept |= {name: head._buffers[name] for name in head._non_persistent_buffers_set}
    return sorted(name for name, value in kept.items() if not _equal(value, getattr(twin, name, INTERNAL)))


def _equal(first: Any, second: Any) -> bool:
    try:
        same: Any = first is second or first == second
        return bool(same.all() if hasattr(same, "all") else same)
    except Exception:  # of shapes, or kinds, that cannot be compared
        return False
