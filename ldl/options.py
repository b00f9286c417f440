"""Options of heads, backbones and data modules: fields with ranges, from which ``__init__`` is generated.

    @options
    class Ridge(FittedHead):
        '''Linear regression.

        Args:
            penalty: Weight of the squared norm.
        '''

        penalty: float = option(default=1.0, least=0)
        weight: Tensor = buffer()

Every annotated name with a value is an option, in order, with the options of base classes first. Describe it under
``Args:`` of the class that declares it. A subclass that assigns an option without a type fixes its value, and it is
no longer an option. A subclass that annotates it again with a plain default keeps its range. If the default is None,
the value may be None. ``__init__`` stores the options and calls ``__post_init__`` if it exists. :func:`check_options`
checks the ranges.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from types import UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, dataclass_transform, get_args, get_origin

from ldl.errors import LDLError, did_you_mean

C = TypeVar("C", bound=type)
OPTIONS = "__ldl_options__"
PATHS = {"path", "root", "cache_dir", "boxes", "split_list", "detector", "weights", "votes"}
"""Names of options that are paths in every class, in which ``~`` is the home of the user."""

ROLES = {
    "path": "the file or folder of the instances",
    "fold": "which instances there are, and which of them are tested",
    "validation": "which instances are validated",
    "label": "the labels and targets of the instances",
    "place": "where and how files are read, which changes no result",
    "": "anything else",
}
"""Roles of the options of data modules, by which runs, comparisons and searches treat them alike in every class."""


@dataclass(frozen=True)
class Option:
    """Default, range and type of an option.

    Attributes:
        default: Default value, or ``inspect.Parameter.empty`` for a required option.
        least: Smallest allowed value.
        most: Largest allowed value.
        above: Exclusive lower bound.
        below: Exclusive upper bound.
        what: Meaning of the number, such as ``a share of the rows``, for messages.
        null: Meaning of None, for messages.
        may_change: Whether a run may resume with another value.
        role: What the option decides, one of :data:`ROLES`. An option of a subclass without a role has that of the
            base class.
        annotation: Type; a string if its import is only for type checkers.
        module: Module of the declaration, in which the names of the type are defined.
    """

    default: Any = inspect.Parameter.empty
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    what: str = ""
    null: str = ""
    may_change: bool = False
    role: str = ""
    annotation: Any = Any
    module: str = ""

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Members of a union type, or the single type."""
        return get_args(self.annotation) if get_origin(self.annotation) in (Union, UnionType) else (self.annotation,)

    @property
    def choices(self) -> tuple[Any, ...]:
        """Values of a ``Literal`` type, and of bool beside a Literal; empty for other types."""
        values = tuple(value for kind in self.kinds if get_origin(kind) is Literal for value in get_args(kind))
        return (False, True, *values) if values and bool in self.kinds else values

    @property
    def range(self) -> str:
        """Description of the accepted values; empty if everything is accepted."""
        low, high = self.above if self.least is None else self.least, self.below if self.most is None else self.most
        words = [f"one of {', '.join(map(_text, self.choices))}"] if self.choices else []
        high = None if self.most == math.inf else high
        if low is not None and high is not None and high != math.inf:
            ends = "[" if self.above is None else "(", "]" if self.below is None else ")"
            inside = f"{ends[0]}{_text(low)}, {_text(high)}{ends[1]}"
            words.append(f"in {_text(low)}..{_text(high)}" if ends == ("[", "]") else f"in {inside}")
            return " or ".join(words)
        bounds = [] if low is None else [f"{'at least' if self.above is None else 'above'} {_text(low)}"]
        if high is not None:
            end = f"{'at most' if self.below is None else 'below'} {_text(high)}"
            bounds.append("finite" if high == math.inf else end)
        if bounds:
            words.append(" and ".join(bounds))
        return " or ".join(words)

    def accepts(self, value: Any) -> bool:
        """Return whether a value, or every entry of a sequence, is in the range; the type is not checked.

        NaN and integers of more than 64 bits are in no range. Infinity is only in a range with ``most=math.inf``.
        """
        bounded = any(bound is not None for bound in (self.least, self.most, self.above, self.below))
        if value is None:
            return type(None) in self.kinds or self.annotation is Any or isinstance(self.annotation, str)
        if self.choices and (value in self.choices or not bounded):
            return value in self.choices
        if _beyond(value) and value != self.most:
            return False
        if isinstance(value, Sequence) and not isinstance(value, str):
            return all(map(self.accepts, value)) if bounded else not any(map(_beyond, value))
        if not bounded or not isinstance(value, (Real, str)):
            return True
        if isinstance(value, str):
            return False
        number: Any = value
        return (
            (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )


def _beyond(value: Any) -> bool:
    """Return whether a number is not finite or has more than 64 bits, so that compiled code cannot take it."""
    return not math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and abs(value) >= 2**63


def _text(number: Any) -> str:
    """Return a bound or a choice as text; bounds near a large power of two as that power."""
    if isinstance(number, (str, bool)):
        return str(number) if isinstance(number, str) else str(number).lower()
    # Seeds are bounded by a power of two.
    bits = number.bit_length() if isinstance(number, int) else 0
    if bits > 20 and number in (2**bits - 1, 2 ** (bits - 1)):
        return f"2^{bits} - 1" if number == 2**bits - 1 else f"2^{bits - 1}"
    return str(number) if isinstance(number, int) else f"{number:g}"


class UnknownOption(LDLError, TypeError):
    """An argument that a class does not have; Python raises a TypeError."""


def option(
    *,
    default: Any = inspect.Parameter.empty,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    what: str = "",
    null: str = "",
    may_change: bool = False,
    role: str = "",
    kw_only: bool = False,
) -> Any:
    """Declare an option with a range; see :class:`Option`. ``kw_only`` marks a required option for type checkers."""
    return Option(default, least, most, above, below, what, null, may_change, role)


def buffer(*, init: Literal[False] = False) -> Any:
    """Declare an attribute that is no option, such as a tensor made by ``build``, for type checkers."""
    return buffer


@dataclass_transform(field_specifiers=(option, buffer))
def options(cls: C) -> C:
    """Generate ``__init__`` of a class from its options; see the module docstring."""
    found: dict[str, Option] = {}
    annotations = cls.__dict__.get("__annotations__", {})
    for base in reversed(cls.__mro__):
        # An option that is assigned without a type is fixed in subclasses.
        fixed = base.__dict__.keys() - (annotations.keys() if base is cls else ())
        found = {name: known for name, known in found.items() if name not in fixed} | base.__dict__.get(OPTIONS, {})
    scope = vars(sys.modules[cls.__module__]) | {cls.__name__: cls}
    for name, annotation in annotations.items():
        annotation = _resolved(annotation, scope)
        if name not in cls.__dict__ or get_origin(annotation) is ClassVar:
            continue
        given = cls.__dict__[name]
        # An attribute of the class would hide a module or buffer of this name.
        delattr(cls, name)
        if given is not buffer:
            before = found.get(name, Option())
            given = given if isinstance(given, Option) else replace(before, default=given)
            if given.role not in ROLES:
                raise LDLError(
                    f"{cls.__name__}.{name}: role {given.role!r} must be one of {', '.join(filter(None, ROLES))}"
                )
            given = given if given.role else replace(given, role=before.role)
            if given.default is None and not isinstance(annotation, str):
                annotation = annotation | None
            found[name] = replace(given, annotation=annotation, module=cls.__module__)
    setattr(cls, OPTIONS, found)
    cls.__init__ = _make_init(cls, found)  # type: ignore[misc]
    return cls


def _resolved(annotation: Any, scope: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, scope)  # as typing.get_type_hints does, which would stop at the first unknown name
    except NameError:
        return annotation


def _make_init(cls: type, found: dict[str, Option]) -> Any:
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    # Required options come first.
    order = sorted(found, key=lambda name: found[name].default is not inspect.Parameter.empty)
    parameters = [own.replace(name=n, default=found[n].default, annotation=found[n].annotation) for n in order]
    signature = inspect.Signature([own, *parameters], return_annotation=None)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if unknown := next((name for name in kwargs if name not in found), ""):
            raise UnknownOption(f"{cls.__name__} got an unexpected keyword argument {unknown!r}{_near(unknown, found)}")
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        base = next(base for base in cls.__mro__[1:] if "__init__" in base.__dict__ and OPTIONS not in base.__dict__)
        base.__init__(self)  # type: ignore[misc]
        for name in found:
            value = bound.arguments[name]
            setattr(self, name, os.path.expanduser(value) if name in PATHS and isinstance(value, str) else value)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__annotations__ = {name: found[name].annotation for name in order} | {"return": None}
    # jsonargparse resolves string types in this module.
    module = next((known.module for known in found.values() if isinstance(known.annotation, str)), cls.__module__)
    # It looks for the class of a qualified name in the packages above, where it would find an old name of the class.
    name = f"{cls.__qualname__}.__init__" if module == cls.__module__ else "__init__"
    __init__.__module__, __init__.__qualname__ = module, name
    __init__.__doc__ = "Store the options."
    return __init__


def _near(unknown: str, found: Mapping[str, Option]) -> str:
    """Return the end of a message about an unknown option."""
    owner, _, inner = unknown.partition("__")
    if inner and owner in found:
        return f"; give {owner} as an object with {inner} among its arguments, or call set_params({unknown}=...)"
    return f"{did_you_mean(unknown, found)}; it has {', '.join(found) or 'none'}"


def options_of(component: object) -> dict[str, Option]:
    """Return the options of an object or class by name; none if its class defines its own ``__init__``."""
    cls = component if isinstance(component, type) else type(component)
    owner = next(base for base in cls.__mro__ if "__init__" in base.__dict__)
    return getattr(cls, OPTIONS, {}) if OPTIONS in owner.__dict__ else {}


def role_of(component: object, name: str) -> str:
    """Return the role of an option of an object or class; empty for no role, or no such option."""
    known = getattr(component, OPTIONS, {}).get(name)
    return known.role if known else ""


def names_with_role(base: type, *roles: str) -> set[str]:
    """Return the names of the options that have one of some roles in a class or in any imported class below it."""
    names = {name for name, known in options_of(base).items() if known.role in roles}
    below: list[type] = base.__subclasses__()
    return names.union(*(names_with_role(cls, *roles) for cls in below))


def check_options(component: object) -> None:
    """Raise LDLError for the first option out of range, with its name, its value and the accepted values."""
    # A class with its own ``__init__`` has passed its options to its base class.
    for name, known in getattr(component, OPTIONS, {}).items():
        value = getattr(component, name)
        if not known.accepts(value):
            what = f", {known.what}" if known.what else ""
            null = f", or null for {known.null}" if known.null else ""
            words = known.range or ("not null" if value is None else "finite")
            words += " and of at most 64 bits" if isinstance(value, int) and _beyond(value) else ""
            raise LDLError(f"{type(component).__name__}.{name} {value!r} must be {words}{what}{null}")
