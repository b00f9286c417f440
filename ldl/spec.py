"""Heads and backbones as plain data, which checkpoints store instead of pickled objects."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from torch import nn

from ldl.errors import LDLError
from ldl.moved import current_path
from ldl.options import options_of
from ldl.validation.checkpoint import check_spec

T = TypeVar("T")


def to_spec(component: object) -> dict[str, Any]:
    """Return ``{class_path, init_args}`` of an object whose ``__init__`` stores each argument under its own name.

    Raises LDLError if an argument is not stored, or is neither plain data nor another such object.
    """
    cls = type(component)
    arguments = {}
    for name in inspect.signature(cls).parameters:
        if not hasattr(component, name):
            raise LDLError(f"{cls.__name__}.__init__ must store its argument {name!r} as self.{name}")
        arguments[name] = _plain(getattr(component, name), f"{cls.__name__}.{name}")
    return {"class_path": f"{cls.__module__}.{cls.__qualname__}", "init_args": arguments}


def from_spec(spec: dict[str, Any], base: type[T]) -> T:
    """Rebuild the object of :func:`to_spec`.

    Raises LDLError if the class is not imported, is no subclass of ``base``, or does not take these arguments.
    """
    check_spec(spec, "the checkpoint's model")
    path = current_path(spec["class_path"])
    cls = _find(path)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise LDLError(f"the checkpoint names {path}, which is no {base.__name__}")
    arguments = {name: _made(value) for name, value in spec["init_args"].items()}
    for name, kind in _kinds(cls).items():
        if name in arguments and not _fits(arguments[name], kind):
            raise LDLError(f"the checkpoint's {cls.__name__}.{name} {arguments[name]!r} must be {_shown(kind)}")
    try:
        return cls(**arguments)
    except TypeError as error:
        raise LDLError(
            f"the checkpoint's arguments do not fit {path}: {error}; use the version it was saved with"
        ) from None


def _kinds(cls: type) -> dict[str, Any]:
    try:
        return get_type_hints(cls.__init__)  # type: ignore[misc]
    except NameError:  # types whose import is only for type checkers
        return {}


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a plain value has the annotated type; annotations that options do not use accept everything."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, member) for member in parts)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in parts)
    if origin is tuple and Ellipsis not in parts:
        return isinstance(value, list | tuple) and len(value) == len(parts) and all(map(_fits, value, parts))
    if origin in (tuple, list, Sequence):
        return isinstance(value, list | tuple) and all(_fits(item, parts[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict)
    if kind is float:
        return type(value) in (int, float)
    if kind in (bool, int, str, NoneType):
        return type(value) is kind
    return isinstance(value, kind) if isinstance(kind, type) else True


def _shown(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")


def _find(path: str) -> Any:
    """Find a class in ldl or in imported modules: a checkpoint must not choose which code Python imports."""
    module, _, name = path.rpartition(".")
    try:
        if module.partition(".")[0] == "ldl":
            importlib.import_module(module)
        return getattr(sys.modules[module], name)
    except (ImportError, AttributeError, KeyError):
        hint = (
            "put its file back into plugins/"
            if module.startswith("ldl_plugins")
            else "import its module first, or install its package as a plugin"
        )
        raise LDLError(f"the checkpoint needs {path}, which is not imported; {hint}") from None


class _Change(NamedTuple):
    """An option that differs: its path, the ``init_args`` with the old value, its name there, and both values."""

    where: str
    holder: dict[str, Any]
    name: str
    old: Any
    new: Any
    may_change: bool


def _changes(spec: dict[str, Any], component: object, within: str = "") -> Iterator[_Change]:
    """Yield the differences of a component from a spec, also in nested parts; another class has the name ''."""
    new = to_spec(component)
    old_path, path = current_path(spec["class_path"]), new["class_path"]
    if old_path != path:
        yield _Change(within, spec, "", old_path.rpartition(".")[2], path.rpartition(".")[2], False)
        return
    # An option that is newer than the spec counts as its default.
    before: Any = {**_defaults(type(component)), **spec["init_args"]}
    after, declared = new["init_args"], options_of(component)
    for name in {**before, **after}:
        old, where = before.get(name), f"{within and within + '.'}{name}"
        if pairs := _parts_of(old, getattr(component, name, None), where):
            for pair in pairs:
                yield from _changes(*pair)
        elif old != after.get(name):
            may_change = name in declared and declared[name].may_change
            yield _Change(where, spec["init_args"], name, old, after.get(name), may_change)


def differences(
    spec: dict[str, Any], component: object, asked: Callable[[str], bool] = lambda where: True
) -> list[str]:
    """Describe how a component differs from a spec, except in options that ``may_change``, also in nested parts.

    Only options for which ``asked`` is true, such as ``head.trees``, are compared; another class always counts.
    """
    descriptions = []
    for where, _, name, old, new, may_change in _changes(spec, component):
        if not name:
            descriptions.append(f"{where} {old} instead of {new}".lstrip())
        elif not may_change and asked(where):
            descriptions.append(f"{where} {old!r} instead of {new!r}")
    return descriptions


def with_changes(
    spec: dict[str, Any], component: object, asked: Callable[[str], bool] = lambda where: True
) -> tuple[dict[str, Any], list[str]]:
    """Return a spec with the options that ``may_change`` of a component of the same class, also in nested parts.

    Only options for which ``asked`` is true, such as ``head.threads``, change. Paths of classes that have moved become
    the current ones.

    Returns:
        The spec, and descriptions of the changes.

    Raises:
        LDLError: The spec has another form.
    """
    check_spec(spec, "the checkpoint's model")
    spec, descriptions = _with_current_paths(spec), []
    for where, holder, name, old, new, may_change in list(_changes(spec, component)):
        if may_change and asked(where):
            holder[name] = new
            descriptions.append(f"{where} {new!r} in place of {old!r}")
    return spec, descriptions


def _with_current_paths(value: Any) -> Any:
    """Return a copy of an option, or of a spec, with the current paths of classes that have moved."""
    if _is_spec(value):
        options = {name: _with_current_paths(option) for name, option in value["init_args"].items()}
        return {"class_path": current_path(value["class_path"]), "init_args": options}
    return [_with_current_paths(item) for item in value] if isinstance(value, list) else value


def _parts_of(old: Any, component: object, where: str) -> list[tuple[dict[str, Any], nn.Module, str]]:
    """Return (spec, part, name) for each component in an option; none for other options."""
    if _is_spec(old) and isinstance(component, nn.Module):
        return [(old, component, where)]
    if isinstance(component, nn.ModuleList) and isinstance(old, list) and len(old) == len(component):
        return [(each, member, f"{where}[{i}]") for i, (each, member) in enumerate(zip(old, component))]
    return []


def _defaults(cls: type) -> dict[str, Any]:
    defaults = {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
    return {name: _plain(value, name) for name, value in defaults.items() if value is not inspect.Parameter.empty}


def _is_spec(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"class_path", "init_args"}


def _made(value: Any) -> Any:
    if _is_spec(value):
        return from_spec(value, nn.Module)
    return [_made(item) for item in value] if isinstance(value, list) else value


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()  # np.float64 is a float, but no plain data
    if isinstance(value, list | tuple | nn.ModuleList):
        return [_plain(item, where) for item in value]
    if isinstance(value, nn.Module):
        return to_spec(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item, where) for key, item in value.items()}
    raise LDLError(f"{where} is a {type(value).__name__}; arguments must be numbers, strings, lists or dicts of them")
