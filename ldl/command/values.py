"""Values of options by their type: what a command line or a YAML file spells is a text where an option takes text.

jsonargparse converts values by YAML 1.1. Within :func:`our_rules` it reads and writes YAML as
:mod:`ldl.validation.yaml_text` does, and the type of an option decides what a scalar means. ``010`` is the label
``010`` or the number 10, and ``on`` is a text or true.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import yaml
from jsonargparse import set_dumper, set_loader

from ldl.command._compat import replaced_adapt
from ldl.validation.yaml_text import Quoted, Scalar, dump, load, load_option, resolve, resolved, spelling

MODE = "ldl"
"""The ``parser_mode`` of jsonargparse that reads and writes values in this way."""
SWITCHES = {"yes": True, "on": True, "no": False, "off": False}
"""Words of YAML 1.1 that an option takes if it is true or false and no text."""

BEGINS = "---\n"
"""Beginning of a document of YAML among values, which are texts otherwise."""


def document(content: Any) -> str:
    """Return content as a document of YAML."""
    return BEGINS + dump(content)


def _load(text: str) -> Any:
    return _with_nulls(load(text)) if text.startswith(BEGINS) else load_option(text)


def _with_nulls(content: Any) -> Any:
    """Return content with a scalar for every None of a mapping, which jsonargparse would take for an absent option."""
    if isinstance(content, dict):
        return {n: Scalar("null", None) if value is None else _with_nulls(value) for n, value in content.items()}
    return [_with_nulls(value) for value in content] if isinstance(content, list) else content


set_loader(MODE, _load, exceptions=(yaml.YAMLError,))
set_dumper(MODE, document)


def our_rules() -> AbstractContextManager[None]:
    """Apply the rules above within the block: whenever jsonargparse parses, makes objects or writes YAML."""
    return replaced_adapt(_adapt)


_of_union: ContextVar[bool] = ContextVar("_of_union", default=False)
"""Whether the type is a member of a union, whose types together have decided already."""


def _adapt(adapt: Callable[..., Any], val: Any, typehint: Any, **kwargs: Any) -> Any:
    typehint = whole_numbers_first(typehint)
    if hasattr(val, "key") and hasattr(val, "val"):  # an option of a class, which the class reads itself
        return adapt(kwargs.get("orig_val", val), typehint, **kwargs)
    if isinstance(val, Quoted) and kwargs.get("instantiate_classes"):
        return str(val)
    if isinstance(val, Quoted) and kwargs.get("serialize"):
        return val
    if isinstance(val, list | dict):
        val = _read_container(val, typehint)
    elif isinstance(val, Scalar | str | bool | int | float | NoneType) and not _of_union.get():
        val = read_value(val, _kinds(typehint))
    if isinstance(val, str) and inspect.isclass(typehint) and issubclass(typehint, int | float | NoneType):
        raise ValueError(f"Expected a {typehint}. Got value: {val}")  # and not what YAML 1.1 makes of it
    token = _of_union.set(len(_kinds(typehint)) > 1)
    try:
        return adapt(val, typehint, **kwargs)
    finally:
        _of_union.reset(token)


def _read_container(val: Any, typehint: Any) -> Any:
    """Return a list or a mapping whose entries can be read by the type."""
    if typehint in (Any, object, list, dict, inspect.Parameter.empty):
        return _free(val)
    if isinstance(val, dict) and "dict_kwargs" in val:
        return {**val, "dict_kwargs": resolved(val["dict_kwargs"])}
    inside = _kinds(next(iter(get_args(typehint)), Any))
    if isinstance(val, list) and str in inside and NoneType not in inside:
        return ["null" if each is None else each for each in val]
    return val


def read_value(given: Any, kinds: Sequence[Any]) -> Any:
    """Return the value of an option.

    Args:
        given: A text, a number, a truth value, None, or a :class:`Scalar`.
        kinds: Types of the option.

    Returns:
        The number, truth value or None that is spelled if the option takes it, otherwise the text if the option takes
        text. An option that takes text is None for ``null`` only.
    """
    text, value = _spelled(given)
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    if text in choices:
        return text
    takes_text = str in kinds
    if isinstance(value, Quoted) and not takes_text and Any not in kinds:
        value = resolve(value)
    if value is None:
        is_null = given is None or not takes_text or (text == "null" and NoneType in kinds)
        return None if is_null else text
    if type(value) in kinds or (type(value) is int and float in kinds) or value in choices:
        return value
    if takes_text:
        return Quoted(text) if isinstance(given, Quoted) else text
    if bool in kinds and text.lower() in SWITCHES:
        return SWITCHES[text.lower()]
    return given if isinstance(given, str) and not _is_number(kinds) else value


def _spelled(given: Any) -> tuple[str, Any]:
    """Return the text of a value and what it spells."""
    if isinstance(given, Scalar):
        return given.text, given.value
    if isinstance(given, str):
        return given, given if isinstance(given, Quoted) else resolve(given)
    return spelling(given), given


def _is_number(kinds: Sequence[Any]) -> bool:
    return any(inspect.isclass(kind) and issubclass(kind, int | float) for kind in kinds)


def _kinds(typehint: Any) -> tuple[Any, ...]:
    """Return the members of a union, also of one that is a member itself; any other type alone."""
    if get_origin(typehint) in (Union, UnionType):
        return tuple(kind for member in get_args(typehint) for kind in _kinds(member))
    return (typehint,)


def _free(content: Any) -> Any:
    """Return content of any type with plain values; texts in quotes stay marked, so that they are not read again."""
    if isinstance(content, dict):
        return {name: _free(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_free(value) for value in content]
    return content if isinstance(content, Quoted) else resolved(content)


def whole_numbers_first(typehint: Any) -> Any:
    """Return a union with int before float: ``1`` is one batch, and ``1.0`` all of them.

    The cache of typing may swap the members of a union.
    """
    members = get_args(typehint)
    if not (int in members and float in members):
        return typehint
    # A str, such as a time, comes after numbers: it would accept any number as it is written.
    numbers = (int, float)
    return reduce(or_, sorted(members, key=lambda kind: numbers.index(kind) if kind in numbers else len(numbers)))
