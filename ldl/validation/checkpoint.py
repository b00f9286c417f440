"""Check the entries of a checkpoint before anything relies on them: form, size, names, weights and calibration."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ldl.errors import LDLError

CALIBRATION_KEY = "calibration"
"""Entry of a checkpoint with the calibration scores, next to Lightning's own entries."""
MAX_SCORES = 10_000
"""Largest number of calibration scores of one axis of the labels."""
MAX_VALUES = 10**6
"""Largest number of numbers, strings and containers in the description of a model."""
MAX_DEPTH = 20
"""Largest depth of nested containers in the description of a model."""
MAX_INPUT = 2**26
"""Largest number of numbers of one input, such as an image of 4,000 by 4,000 pixels with three channels."""
MAX_MODEL, MODEL_PER_STATE = 2**27, 4
"""Bytes that a new model may take: the first number plus the second times the bytes of its saved state."""
MAX_TENSORS, TENSORS_PER_FILE = 2**30, 16
"""Bytes that tensors may claim: the first number plus the second times the file's bytes."""
SCALINGS: dict[str, dict[str, str]] = {
    "none": {},
    "standard": {"mean": "F", "scale": "F"},
    "ranks": {"quantiles": "Q F", "references": "Q"},
    "hellinger": {"mean": "F", "scale": "F"},
    "quantile_normal": {"quantiles": "Q F", "references": "Q"},
    "quantile_uniform": {"quantiles": "Q F", "references": "Q"},
}
"""Tensors of each scaling of features, with their shapes; F is the number of features."""
CENTERED = {"mean": "F", "scale": "F"}
"""Tensors that the scaling ``none`` has if float32 would merge numbers."""
DISTINCT = {"columns": "P", "knots": "K P", "offsets": "K P"}
"""Tensors of a scaling that moves numbers of P features apart, which float32 would merge; see ``ldl.data.tables``."""


def check_form(checkpoint: Any, key: str, size: int) -> None:
    """Check the form of a checkpoint's entries.

    Args:
        checkpoint: Content of the file.
        key: Entry that describes the model.
        size: Bytes of the file.

    Raises:
        LDLError: An entry is missing or has another form. The message names it.
    """
    _must(isinstance(checkpoint, dict) and key in checkpoint, f"it has no entry {key!r}; use one that train.py saved")
    description = _entry(checkpoint, key, dict)
    preprocessing = description.get("preprocessing")
    scaling = preprocessing.get("scaling") if isinstance(preprocessing, dict) else None
    if scaling is not None:
        description = {**description, "preprocessing": {**preprocessing, "scaling": None}}
    _check_plain(description, key, [MAX_VALUES])
    for entry in ("head", "backbone"):
        check_spec(_entry(description, entry, dict, key), f"{key}.{entry}")
    _entry(description, "labels", dict, key)
    shape = _entry(description, "input_shape", list, key)
    _check_input_shape(shape, f"{key}.input_shape")
    _entry(description, "decoder", str, key)
    if preprocessing is not None:
        _entry(description, "preprocessing", dict, key)
    # The claimed size comes first, because later checks read every number.
    scaling_entries = scaling.items() if isinstance(scaling, dict) else ()
    tensors = {
        f"{key}.preprocessing.scaling.{name}": entry for name, entry in scaling_entries if isinstance(entry, Tensor)
    }
    _check_claimed_size({**_entry(checkpoint, "state_dict", dict), **tensors}, size)
    _check_bytes(_claimed([entry for name, entry in checkpoint.items() if name != CALIBRATION_KEY]), size)
    if scaling is not None:
        _check_columns(preprocessing, shape[-1], f"{key}.preprocessing")
        if "encoding" in preprocessing:
            _check_encoding(preprocessing["encoding"], shape[-1], f"{key}.preprocessing.encoding")
        _check_scaling(scaling, shape[-1], f"{key}.preprocessing.scaling")
    for name in ("temperature", "concentration", "model_votes"):  # ldl 0.2 wrote a concentration, which nothing reads
        number = description.get(name, 1.0)
        is_positive = type(number) is float and 0 < number < math.inf
        may_be_absent = number is None and name != "temperature"
        _must(is_positive or may_be_absent, f"{key}.{name} is {str(number)[:80]}, not a number above 0")
    if description.get("raters") is not None:
        _check_raters(_entry(description, "raters", dict, key), f"{key}.raters")
    step = checkpoint.get("global_step", 0)
    _must(type(step) is int and 0 <= step < 2**62, f"its global_step is {str(step)[:80]}, not a number of steps")


def _check_input_shape(shape: list[Any], where: str) -> None:
    """Raise LDLError unless ``shape`` has positive lengths, or -1 for any length, of an input of bounded size."""
    has_lengths = bool(shape) and all(type(side) is int and (side == -1 or side > 0) for side in shape)
    fits = has_lengths and math.prod(map(abs, shape)) <= MAX_INPUT
    _must(fits, f"{where} is {str(shape)[:80]}, not the lengths of an input of at most {MAX_INPUT} numbers")


def _check_raters(state: dict[str, Any], where: str) -> None:
    """Raise LDLError unless ``state`` has the form of ``ldl.raters.Raters.state``."""
    fields = {"kind", "shrinkage", "chosen", "names", "votes", "features"}
    _must(state.keys() == fields, f"{where} lacks an entry, or has an unknown one")
    kind, shrinkage, chosen = state["kind"], state["shrinkage"], state["chosen"]
    _must(kind in ("bias", "confusion"), f"{where}.kind is {str(kind)[:80]}, not bias or confusion")
    listed = isinstance(shrinkage, list) and all(type(v) is float and 0 < v < math.inf for v in shrinkage)
    _must(listed and len(shrinkage) > 0, f"{where}.shrinkage is {str(shrinkage)[:80]}, not a list of numbers above 0")
    one = type(chosen) is int and 0 <= chosen < len(shrinkage)
    _must(one, f"{where}.chosen is {str(chosen)[:80]}, and there are {len(shrinkage)} strengths")
    names, votes = state["names"], state["votes"]
    named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    _must(named and len(set(names)) == len(names) > 0, f"{where}.names is not a list of distinct texts")
    counted = isinstance(votes, list) and all(type(count) is int and 0 <= count < 2**53 for count in votes)
    _must(counted and len(votes) == len(names) and any(votes), f"{where}.votes is not a list of {len(names)} counts")
    if (features := state["features"]) is not None:
        whole = isinstance(features, dict) and features.keys() == {"columns", "mean", "scale"}
        _must(whole, f"{where}.features lacks an entry, or has an unknown one")
        for name in ("mean", "scale"):
            numbers = features[name]
            right = isinstance(numbers, list) and all(type(v) is float and math.isfinite(v) for v in numbers)
            _must(right, f"{where}.features.{name} is no list of numbers")
        width = len(features["mean"])
        scaled = len(features["scale"]) == width and all(number > 0 for number in features["scale"])
        _must(scaled, f"{where}.features.scale is not {width} numbers above 0")
        _check_encoding(features["columns"], width, f"{where}.features.columns")


def check_spec(spec: Any, where: str) -> None:
    """Check the form of ``{class_path, init_args}``. Raises LDLError."""
    _must(isinstance(spec, dict), f"{where} is no class with its arguments")
    path = _entry(spec, "class_path", str, where)
    dotted = re.fullmatch(r"[^\W\d]\w*(\.[\w<>-]+)+", path)
    _must(dotted is not None, f"{where}.class_path is {path[:80]!r}, not the full path of a class")
    _entry(spec, "init_args", dict, where)


def check_weights(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Check saved tensors against the state of a model.

    The buffers of a submodule whose attribute ``resizes`` is true may have any shape. A submodule with a method
    ``complete_state`` may complete the state, or take its shape from it, first.

    Raises:
        LDLError: A tensor is missing, unknown, or has another shape or kind of number.
    """
    for where, member in module.named_modules():
        if complete := getattr(member, "complete_state", None):
            complete(state, f"{where}." if where else "")
    current = module.state_dict()
    resizable = {
        f"{where}.{name}" if where else name
        for where, member in module.named_modules()
        if getattr(member, "resizes", False)
        for name, _ in member.named_buffers(recurse=False, remove_duplicate=False)
    }
    defects = {"lacks": current.keys() - state.keys(), "has more than the model:": state.keys() - current.keys()}
    for defect, names in defects.items():
        _must(not names, f"its state_dict {defect} {', '.join(sorted(map(str, names))[:3])}")
    for name, tensor in current.items():
        saved = state[name]
        same = name in resizable or saved.shape == tensor.shape
        _must(same, f"its {name} has shape {tuple(saved.shape)}, but the model's has {tuple(tensor.shape)}")
        same = saved.is_floating_point() == tensor.is_floating_point() and not saved.is_complex()
        _must(same, f"its {name} has {saved.dtype} numbers, but the model's has {tensor.dtype}")


def check_memory(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Raise LDLError if a model takes far more memory than its saved state, whose buffers may have other shapes."""
    taken = sum(tensor.nbytes for tensor in (*module.parameters(), *module.buffers()))
    saved = sum(tensor.nbytes for tensor in state.values())
    _must(
        taken <= MAX_MODEL + MODEL_PER_STATE * saved, f"the model takes {taken} bytes, and its state_dict has {saved}"
    )


def check_calibration(saved: Any, axes: int) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Check the calibration of a checkpoint.

    Args:
        saved: One dict per axis with ``score`` (M,) rising, ``weight`` (M,) and their sum ``units``.
        axes: Number of axes of the labels; 1 for nominal labels.

    Returns:
        Score, weight and units of each axis.

    Raises:
        LDLError: ldl cannot have written this calibration.
    """
    _must_calibrate(isinstance(saved, list) and len(saved) == axes, f"must be a list of {axes}")
    return [_check_scores(axis) for axis in saved]


def _check_scores(saved: Any) -> tuple[np.ndarray, np.ndarray, int]:
    whole = isinstance(saved, dict) and saved.keys() == {"score", "weight", "units"}
    _must_calibrate(whole, "must have score, weight and units, and nothing else")
    units = saved["units"]
    right = type(units) is int and 0 < units < 2**53
    _must_calibrate(right, f"units is {str(units)[:80]}, not a number of rows or groups")
    score, weight = (_column(saved[name], name) for name in ("score", "weight"))
    _must_calibrate(len(score) == len(weight), f"has {len(score)} scores and {len(weight)} weights")
    _must_calibrate(bool((score >= 0).all() and (np.diff(score) >= 0).all()), "score must be at least 0 and rise")
    sums = bool((weight > 0).all()) and math.isclose(weight.sum(), units, rel_tol=1e-6)
    _must_calibrate(sums, f"weight must be above 0 and sum to its {units} units")
    return score, weight, units


def _column(saved: Any, name: str) -> np.ndarray:
    _must_calibrate(_is_float64(saved) and saved.ndim == 1, f"{name} is no column of float64")
    _must_calibrate(0 < len(saved) <= MAX_SCORES, f"{name} has {len(saved)} entries, not 1 to {MAX_SCORES:,}")
    column: np.ndarray = saved.detach().cpu().numpy().copy()
    _must_calibrate(bool(np.isfinite(column).all()), f"{name} holds a number that is not finite")
    return column


def _must_calibrate(condition: bool, why: str) -> None:
    _must(condition, f"its {CALIBRATION_KEY} {why}; it was not written by ldl")


def _check_columns(prepared: dict[str, Any], features: int, where: str) -> None:
    names, key = prepared.get("features"), prepared.get("key")
    named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    distinct = names is None or (named and len(set(names)) == len(names) == features)
    _must(distinct, f"{where}.features is not a list of {features} distinct names")
    _must(key is None or isinstance(key, str), f"{where}.key is {str(key)[:80]}, not the name of a matrix")


def _check_encoding(state: Any, features: int, where: str) -> None:
    _must(isinstance(state, list), f"{where} is no list of columns")
    width, names = 0, []
    for number, column in enumerate(state):
        entry = f"{where}[{number}]"
        fields = {"name", "kind", "categories", "other", "missing", "fill"}
        is_text = isinstance(column, dict) and column.get("kind") == "text"
        fields |= {"text"} if is_text else set()
        _must(isinstance(column, dict) and column.keys() == fields, f"{entry} lacks an entry, or has an unknown one")
        kind, texts, fill = column["kind"], column["categories"], column["fill"]
        text_width = _text_width(column.get("text"), f"{entry}.text") if is_text else 0
        widths = {"number": 1, "date": 4, "category": 0, "text": text_width}
        _must(
            isinstance(kind, str) and kind in widths,
            f"{entry}.kind is {str(kind)[:80]}, not number, date, category or text",
        )
        _must(isinstance(column["name"], str), f"{entry}.name is no text")
        named = isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts)
        _must(named and len(set(texts)) == len(texts), f"{entry}.categories is not a list of distinct texts")
        _must(type(column["other"]) is bool and type(column["missing"]) is bool, f"{entry} has flags that are not bool")
        width_of_kind = widths[kind]
        numbers = isinstance(fill, list | tuple) and all(type(v) is float and math.isfinite(v) for v in fill)
        right = fill is None or (numbers and len(fill) == width_of_kind > 0 and not is_text)
        _must(right, f"{entry}.fill is {str(fill)[:80]}, not {width_of_kind} numbers")
        _must(kind == "category" or not (texts or column["other"]), f"{entry} has categories, and is a {kind}")
        width += width_of_kind + len(texts) + column["other"] + column["missing"]
        names.append(column["name"])
    _must(len(set(names)) == len(names), f"{where} has a column twice")
    _must(width == features, f"{where} makes {width} features, and the model takes {features}")


def _text_width(encoding: Any, where: str) -> int:
    """Return the number of features of a column of text. Raises LDLError for another form of its encoding."""
    is_encoding = isinstance(encoding, dict) and encoding.keys() == {"encoder", "tokens", "width"}
    _must(is_encoding, f"{where} is no encoding of text")
    counts = encoding["tokens"], encoding["width"]
    fits = isinstance(encoding["encoder"], str) and all(type(count) is int and 0 < count < 2**31 for count in counts)
    _must(fits, f"{where} is no encoding of text: a name, and numbers of tokens and features")
    return int(encoding["width"])


def _check_scaling(state: Any, features: int, where: str) -> None:
    has_kind = isinstance(state, dict) and state.get("kind") in SCALINGS
    _must(has_kind, f"{where} is no scaling of features, of a kind {', '.join(SCALINGS)}")
    clip = state.get("clip")
    right = clip is None or (type(clip) in (int, float) and 0 < clip < math.inf)
    _must(right, f"{where}.clip is {str(clip)[:80]}, not a number above 0")
    shapes, lengths = dict(SCALINGS[state["kind"]]), {"F": features}
    for more in (CENTERED if state["kind"] == "none" else {}, DISTINCT):
        shapes |= more if more.keys() <= state.keys() else {}
    wrong = state.keys() ^ {"kind", "clip", *shapes}
    _must(not wrong, f"{where} lacks an entry, or has an unknown one: {min(map(str, wrong), default='')[:80]}")
    for name, letters in shapes.items():
        tensor = state[name]
        _must(_is_float64(tensor), f"{where}.{name} is no tensor of float64 numbers")
        wanted = [lengths.setdefault(letter, size) for letter, size in zip(letters.split(), tensor.shape)]
        fits = list(tensor.shape) == wanted and len(wanted) == len(letters.split()) and 0 not in wanted
        _must(fits, f"{where}.{name} has shape {tuple(tensor.shape)}, and there are {features} features")
        _must(_can_scale(name, tensor, features), f"{where}.{name} is no scaling; use another checkpoint")


def _can_scale(name: str, tensor: Tensor, features: int) -> bool:
    """Return whether the numbers of a scaling's tensor are finite, and in the range and order that its name needs."""
    if not tensor.isfinite().all():
        return False
    if name == "scale":
        return bool((tensor > 0).all())
    if name in ("quantiles", "references", "knots"):
        return bool((tensor.diff(dim=0) >= 0).all())
    if name == "columns":
        columns = torch.arange(features, dtype=tensor.dtype)
        return bool(torch.isin(tensor, columns).all() and (tensor.diff() > 0).all())
    return True


def _is_float64(value: Any) -> bool:
    return _is_plain_tensor(value) and value.dtype == torch.float64


def _is_plain_tensor(value: Any) -> bool:
    plain = isinstance(value, Tensor) and value.layout == torch.strided and not value.is_quantized
    return plain and value.device.type != "meta"


def _check_claimed_size(state: dict[Any, Any], size: int) -> None:
    """Raise LDLError if tensors claim far more bytes than the file has; a view of one number can have any shape."""
    total = 0
    for name, tensor in state.items():
        plain = isinstance(name, str) and _is_plain_tensor(tensor)
        _must(plain, f"state_dict.{repr(name)[:80]} is no tensor")
        total += tensor.numel() * tensor.element_size()
    _check_bytes(total, size)


def _check_bytes(total: int, size: int) -> None:
    _must(total <= MAX_TENSORS + TENSORS_PER_FILE * size, f"its tensors claim {total} bytes, and the file has {size}")


def _claimed(content: Any) -> int:
    """Return the bytes of the tensors at any depth, such as an optimiser's state; each container counts once."""
    total, left, seen = 0, [content], set()
    while left:
        value = left.pop()
        if isinstance(value, Tensor):
            total += value.numel() * value.element_size()
        elif isinstance(value, dict | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            left += value.values() if isinstance(value, dict) else value
    return total


def _check_plain(value: Any, where: str, budget: list[int], depth: int = 0) -> None:
    """Raise LDLError unless ``value`` consists of at most ``budget[0]`` numbers, strings, lists and dicts.

    The recursive calls share ``budget`` and count it down. The limit is needed because lists may contain each other.
    """
    budget[0] -= 1
    _must(budget[0] > 0 and depth <= MAX_DEPTH, f"{where} holds too many values")
    if isinstance(value, dict):
        _must(all(isinstance(name, str) for name in value), f"{where} has a key that is no text")
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            _check_plain(item, where, budget, depth + 1)
    else:
        plain = value is None or type(value) in (bool, int, float, str)
        _must(plain, f"{where} holds a {type(value).__name__}, where numbers and texts are expected")


def _entry(holder: dict[str, Any], name: str, kind: type, where: str = "") -> Any:
    full = f"{where}.{name}" if where else name
    _must(name in holder, f"it has no entry {full}")
    value = holder[name]
    shown = repr(value)[:80] if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    _must(isinstance(value, kind), f"{full} is {shown}, not a {kind.__name__}")
    return value


def _must(condition: bool, why: str) -> None:
    if not condition:
        raise LDLError(why)
