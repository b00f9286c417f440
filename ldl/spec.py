"""Heads and backbones as plain data: what a checkpoint stores instead of pickled objects."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

import numpy as np
from torch import nn

from ldl.errors import LDLError
from ldl.options import options_of
from ldl.trust.kinds import fits, shown
from ldl.trust.schema import check_spec

T = TypeVar("T")


def to_spec(component: object) -> dict[str, Any]:
    """``{class_path, init_args}`` of an object whose ``__init__`` stores each argument under its own name.

    Raises LDLError: an argument is not stored, or is neither plain data nor such an object itself.
    """
    cls = type(component)
    arguments = {}
    for name in inspect.signature(cls).parameters:
        if not hasattr(component, name):
            raise LDLError(f"{cls.__name__}.__init__ must store its argument {name!r} as self.{name}")
        arguments[name] = _plain(getattr(component, name), f"{cls.__name__}.{name}")
    return {"class_path": f"{cls.__module__}.{cls.__qualname__}", "init_args": arguments}


MOVED = {
    "ldl.backbone.Identity": "ldl.backbones.base.Identity",
    "ldl.backbone.Timm": "ldl.backbones.timm.Timm",
    "ldl.each_instance.EachInstance": "ldl.backbones.each_instance.EachInstance",
    "ldl.edges.backbone.PixelFeatures": "ldl.backbones.pixel_features.PixelFeatures",
    "ldl.haar.Haar": "ldl.backbones.haar.Haar",
    "ldl.hog.HOG": "ldl.backbones.hog.HOG",
    "ldl.data.bags.Bags": "ldl.data.bags.bags.Bags",
    "ldl.data.bsds500.BSDS500": "ldl.data.edges.bsds500.BSDS500",
    "ldl.data.clutter.PosedFaces": "ldl.data.trials.clutter.PosedFaces",
    "ldl.data.clutter.ShiftedFaces": "ldl.data.trials.clutter.ShiftedFaces",
    "ldl.data.faces.morph.Morph": "ldl.data.faces.morph.morph.Morph",
    "ldl.data.faces.pointing04.Pointing04": "ldl.data.faces.pointing04.pointing04.Pointing04",
    "ldl.data.fgnet_aam.FGNETAAM": "ldl.data.tables.fgnet_aam.FGNETAAM",
    "ldl.data.mnist.MixedDigits": "ldl.data.trials.mnist.MixedDigits",
    "ldl.data.mnist.ShiftedDigits": "ldl.data.trials.mnist.ShiftedDigits",
    "ldl.data.tabular.TabularLDL": "ldl.data.tables.tabular.TabularLDL",
    "ldl.data.tabular_values.TabularValues": "ldl.data.tables.tabular_values.TabularValues",
}
"""Where classes are now that checkpoints and configurations from before the move name by another path."""


def current_path(path: str) -> str:
    """The import path of a class, given as it is or as it was before it moved."""
    return MOVED.get(path, path)


def from_spec(spec: dict[str, Any], base: type[T]) -> T:
    """Rebuild the object of :func:`to_spec`.

    Raises LDLError: the class is not imported, is no ``base``, or does not take these arguments.
    """
    check_spec(spec, "the checkpoint's model")
    path = current_path(spec["class_path"])
    cls = _find(path)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise LDLError(f"the checkpoint names {path}, which is no {base.__name__}")
    arguments = {name: _made(value) for name, value in spec["init_args"].items()}
    for name, kind in _kinds(cls).items():
        if name in arguments and not fits(arguments[name], kind):
            raise LDLError(f"the checkpoint's {cls.__name__}.{name} {arguments[name]!r} must be {shown(kind)}")
    try:
        return cls(**arguments)
    except TypeError as error:
        raise LDLError(
            f"the checkpoint's arguments do not fit {path}: {error}; use the version it was saved with"
        ) from None


def _kinds(cls: type) -> dict[str, Any]:
    try:
        return get_type_hints(cls.__init__)  # type: ignore[misc]
    except NameError:  # of types that are imported for type checkers alone
        return {}


def _find(path: str) -> Any:
    """What a path names, in ldl or in what is imported already: a checkpoint may not choose what Python imports."""
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


def differences(
    spec: dict[str, Any], component: object, within: str = "", asked: Callable[[str], bool] = lambda where: True
) -> list[str]:
    """What a component has unlike a spec, in words; options that ``may_change`` are left out, also of its parts.

    An option that came after the spec was written had its default then. Of options, such as ``head.trees``, those
    count that are ``asked`` for; another class always does.
    """
    new = to_spec(component)
    old_path, path = current_path(spec["class_path"]), new["class_path"]
    if old_path != path:
        return [f"{within and within + ' '}{old_path.rpartition('.')[2]} instead of {path.rpartition('.')[2]}"]
    before: Any = {**_defaults(type(component)), **spec["init_args"]}
    after = new["init_args"]
    known, found = options_of(component), []
    for name in {**before, **after}:
        old, part, where = before.get(name), getattr(component, name, None), f"{within and within + '.'}{name}"
        if pairs := _parts_of(old, part, where):
            found += [text for pair in pairs for text in differences(*pair, asked)]
        elif old != after.get(name) and not (name in known and known[name].may_change) and asked(where):
            found.append(f"{where} {old!r} instead of {after.get(name)!r}")
    return found


def with_changes(
    spec: dict[str, Any], component: object, within: str = "", asked: Callable[[str], bool] = lambda where: True
) -> tuple[dict[str, Any], list[str]]:
    """A spec in which options that ``may_change`` are those of a component of the same class, also of its parts.

    Of options, such as ``head.threads``, those change that are ``asked`` for.

    Returns:
        The spec, and what is other in it, in words.

    Raises:
        LDLError: it is no spec.
    """
    check_spec(spec, "the checkpoint's model")
    new = to_spec(component)
    if current_path(spec["class_path"]) != new["class_path"]:
        return spec, []
    before: Any = {**_defaults(type(component)), **spec["init_args"]}
    known, arguments, found = options_of(component), dict(spec["init_args"]), []
    for name, value in new["init_args"].items():
        old, part, where = before.get(name), getattr(component, name, None), f"{within and within + '.'}{name}"
        if pairs := _parts_of(old, part, where):
            changed = [with_changes(*pair, asked) for pair in pairs]
            arguments[name] = [each for each, _ in changed] if isinstance(old, list) else changed[0][0]
            found += [text for _, words in changed for text in words]
        elif old != value and name in known and known[name].may_change and asked(where):
            arguments[name] = value
            found.append(f"{where} {value!r} in place of {old!r}")
    return {**spec, "init_args": arguments}, found


def _parts_of(old: Any, part: object, where: str) -> list[tuple[dict[str, Any], nn.Module, str]]:
    """Specs of the parts that an option holds, one or a list, with the parts and their names; none of other options."""
    if _is_spec(old) and isinstance(part, nn.Module):
        return [(old, part, where)]
    if isinstance(part, nn.ModuleList) and isinstance(old, list) and len(old) == len(part):
        return [(each, member, f"{where}[{i}]") for i, (each, member) in enumerate(zip(old, part))]
    return []


def _defaults(cls: type) -> dict[str, Any]:
    given = {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
    return {name: _plain(value, name) for name, value in given.items() if value is not inspect.Parameter.empty}


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
