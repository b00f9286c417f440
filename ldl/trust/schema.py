"""The form of a checkpoint's entries: what is read of them is held against it first."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ldl.errors import LDLError
from ldl.trust.scaling import check_columns, check_scaling

MOST_VALUES = 10**6
"""Numbers, texts and containers in the description of a model."""
DEEPEST = 20
"""Containers within each other."""
LONGEST = 10**9
"""Of one side of an input."""
ALWAYS, RATIO = 2**30, 16
"""Bytes that tensors may have, or so many times the file's: a view of few numbers can claim to be endless."""


def check_form(checkpoint: Any, key: str, size: int) -> None:
    """Hold the entries of a checkpoint against their form.

    Args:
        checkpoint: What was read.
        key: Where it describes its model.
        size: Bytes of the file.

    Raises:
        LDLError: naming the first entry that is missing, or is something else.
    """
    _must(isinstance(checkpoint, dict) and key in checkpoint, f"it has no entry {key!r}; give one that train.py saved")
    described = _entry(checkpoint, key, dict)
    prepared = described.get("preprocessing")
    scaling = prepared.get("scaling") if isinstance(prepared, dict) else None
    if scaling is not None:
        described = {**described, "preprocessing": {**prepared, "scaling": None}}
    _check_plain(described, key)
    for part in ("head", "backbone"):
        check_spec(_entry(described, part, dict, key), f"{key}.{part}")
    _entry(described, "labels", dict, key)
    shape = _entry(described, "input_shape", list, key)
    right = all(type(side) is int and (side == -1 or 0 < side < LONGEST) for side in shape)
    _must(right and bool(shape), f"{key}.input_shape is {str(shape)[:80]}, not the lengths of an input")
    _entry(described, "decoder", str, key)
    if prepared is not None:
        _entry(described, "preprocessing", dict, key)
    # What a tensor claims to hold, before any is looked through.
    held = scaling.items() if isinstance(scaling, dict) else ()
    tensors = {f"{key}.preprocessing.scaling.{name}": part for name, part in held if isinstance(part, Tensor)}
    _check_state({**_entry(checkpoint, "state_dict", dict), **tensors}, size)
    if scaling is not None:
        check_columns(prepared, shape[-1], f"{key}.preprocessing")
        check_scaling(scaling, shape[-1], f"{key}.preprocessing.scaling")
    warm = described.get("temperature", 1.0)
    _must(type(warm) is float and 0 < warm < math.inf, f"{key}.temperature is {str(warm)[:80]}, not a number above 0")
    step = checkpoint.get("global_step", 0)
    _must(type(step) is int and 0 <= step < 2**62, f"its global_step is a {type(step).__name__}, or no number of steps")


def check_spec(spec: Any, where: str) -> None:
    """Hold ``{class_path, init_args}`` against its form. Raises LDLError."""
    _must(isinstance(spec, dict), f"{where} is no class with its arguments")
    path = _entry(spec, "class_path", str, where)
    dotted = re.fullmatch(r"[^\W\d]\w*(\.[\w<>-]+)+", path)
    _must(dotted is not None, f"{where}.class_path is {path[:80]!r}, not the full path of a class")
    _entry(spec, "init_args", dict, where)


def check_weights(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Hold saved tensors against those of a model; parts with ``resizes`` take buffers of any shape.

    Raises LDLError where one is missing, too many, of another shape or another kind of number.
    """
    own = module.state_dict()
    free = {
        f"{where}.{name}" if where else name
        for where, part in module.named_modules()
        if getattr(part, "resizes", False)
        for name, _ in part.named_buffers(recurse=False, remove_duplicate=False)
    }
    for what, names in (("lacks", own.keys() - state.keys()), ("has more than the model:", state.keys() - own.keys())):
        _must(not names, f"its state_dict {what} {', '.join(sorted(map(str, names))[:3])}")
    for name, tensor in own.items():
        saved = state[name]
        same = name in free or saved.shape == tensor.shape
        _must(same, f"its {name} has shape {tuple(saved.shape)}, but the model's has {tuple(tensor.shape)}")
        same = saved.is_floating_point() == tensor.is_floating_point() and not saved.is_complex()
        _must(same, f"its {name} has {saved.dtype} numbers, but the model's has {tensor.dtype}")


def _check_state(state: dict[Any, Any], size: int) -> None:
    total = 0
    for name, tensor in state.items():
        plain = isinstance(tensor, Tensor) and tensor.layout == torch.strided and not tensor.is_quantized
        plain = plain and tensor.device.type != "meta"
        _must(isinstance(name, str) and plain, f"state_dict.{repr(name)[:80]} is no tensor")
        total += tensor.numel() * tensor.element_size()
    _must(total <= ALWAYS + RATIO * size, f"its tensors claim {total} bytes, and the file has {size}")


def _check_plain(value: Any, where: str, budget: list[int] | None = None, depth: int = 0) -> None:
    """Numbers, texts, lists and dicts, and not too many: what is shared may otherwise unfold without end."""
    budget = budget or [MOST_VALUES]
    budget[0] -= 1
    _must(budget[0] > 0 and depth <= DEEPEST, f"{where} holds too many values")
    if isinstance(value, dict):
        for name, item in value.items():
            _must(isinstance(name, str), f"{where} has a key that is no text")
            _check_plain(item, where, budget, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_plain(item, where, budget, depth + 1)
    else:
        plain = value is None or type(value) in (bool, int, float, str)
        _must(plain, f"{where} holds a {type(value).__name__}, where numbers and texts are expected")


def _entry(holder: dict[str, Any], name: str, kind: type, where: str = "") -> Any:
    full = f"{where}.{name}" if where else name
    _must(name in holder, f"it has no entry {full}")
    found = holder[name]
    shown = repr(found)[:80] if isinstance(found, str | int | float | None) else f"a {type(found).__name__}"
    _must(isinstance(found, kind), f"{full} is {shown}, not a {kind.__name__}")
    return found


def _must(condition: bool, why: str) -> None:
    if not condition:
        raise LDLError(why)
