"""Options of heads, backbones and data modules: fields with ranges and roles, from which ``__init__`` is generated.

    @options
    class Ridge(FittedHead):
        '''Linear regression.

        Args:
            penalty: Weight of the squared norm.
            threads: Number of threads.
        '''

        penalty: float = option(default=1.0, least=0)
        threads: int = option(default=1, least=1, role="speed")
        weight: Tensor = buffer()

Every annotated name with a value is an option, in order, with the options of base classes first. Describe it under
``Args:`` of the class that declares it. A subclass that assigns an option without a type fixes its value, and it is
no longer an option. A subclass that annotates it again keeps its role, and with a plain default also its range. If the
default is None, the value may be None. ``__init__`` stores the options and calls ``__post_init__`` if it exists.
:func:`check_options` checks the ranges.

The role says what an option decides, such as ``label`` or ``place``; :data:`ldl.validation.option.ROLES` lists all
roles. A class with an ``__init__`` of its own declares roles in a class variable ``option_roles``, which maps names to
roles.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform, get_origin

from ldl.errors import LDLError, did_you_mean
from ldl.validation.option import Option, exceeds_64_bits

C = TypeVar("C", bound=type)
OPTIONS = "__ldl_options__"

_path_names: set[str] = set()
"""Names that any class has declared as paths; plugins of ldl 0.2 declare none and have paths of the same names."""


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
    is_path: bool = False,
    kw_only: bool = False,
) -> Any:
    """Declare an :class:`ldl.validation.option.Option`; ``kw_only`` marks a required one for type checkers."""
    return Option(default, least, most, above, below, what, null, may_change, role, is_path)


def buffer(*, init: Literal[False] = False) -> Any:
    """Declare an attribute that is no option, such as a tensor made by ``build``, for type checkers."""
    return buffer


@dataclass_transform(field_specifiers=(option, buffer))
def options(cls: C) -> C:
    """Generate ``__init__`` of a class from its options; see the module docstring."""
    declared: dict[str, Option] = {}
    annotations = cls.__dict__.get("__annotations__", {})
    for base in reversed(cls.__mro__):
        # An option that is assigned without a type is fixed in subclasses.
        fixed = base.__dict__.keys() - (annotations.keys() if base is cls else ())
        declared = {name: each for name, each in declared.items() if name not in fixed}
        declared |= base.__dict__.get(OPTIONS, {})
    scope = vars(sys.modules[cls.__module__]) | {cls.__name__: cls}
    for name, annotation in annotations.items():
        annotation = _resolve(annotation, scope)
        if name not in cls.__dict__ or get_origin(annotation) is ClassVar:
            continue
        value = cls.__dict__[name]
        # An attribute of the class would hide a module or buffer of this name.
        delattr(cls, name)
        if value is not buffer:
            declared[name] = _declare(value, annotation, declared.get(name, Option()), cls.__module__)
    _path_names.update(name for name, each in declared.items() if each.is_path)
    setattr(cls, OPTIONS, declared)
    cls.__init__ = _make_init(cls, declared)  # type: ignore[misc]
    return cls


def _resolve(annotation: Any, scope: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, scope)  # as typing.get_type_hints does, which would stop at the first unknown name
    except NameError:
        return annotation


def _declare(value: Any, annotation: Any, before: Option, module: str) -> Option:
    """Return the option of a field with a value, an :class:`Option` or a plain default, over that of a base class."""
    new = value if isinstance(value, Option) else replace(before, default=value)
    if new.default is None and not isinstance(annotation, str):
        annotation = annotation | None
    role, is_path = new.role or before.role, new.is_path or before.is_path
    return replace(new, role=role, is_path=is_path, annotation=annotation, module=module)


def _make_init(cls: type, declared: dict[str, Option]) -> Any:
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    # Required options come first.
    order = sorted(declared, key=lambda name: declared[name].default is not inspect.Parameter.empty)
    parameters = [this.replace(name=n, default=declared[n].default, annotation=declared[n].annotation) for n in order]
    signature = inspect.Signature([this, *parameters], return_annotation=None)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if unknown := next((name for name in kwargs if name not in declared), ""):
            near = _near(unknown, declared)
            raise UnknownOption(f"{cls.__name__} got an unexpected keyword argument {unknown!r}{near}")
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        base = next(base for base in cls.__mro__[1:] if "__init__" in base.__dict__ and OPTIONS not in base.__dict__)
        base.__init__(self)  # type: ignore[misc]
        for name in declared:
            value = bound.arguments[name]
            if isinstance(value, str) and name in _path_names:
                value = os.path.expanduser(value)
            setattr(self, name, value)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__annotations__ = {name: declared[name].annotation for name in order} | {"return": None}
    # jsonargparse resolves string types in this module.
    module = next((each.module for each in declared.values() if isinstance(each.annotation, str)), cls.__module__)
    # It looks for the class of a qualified name in the packages above, where it would find an old name of the class.
    name = f"{cls.__qualname__}.__init__" if module == cls.__module__ else "__init__"
    __init__.__module__, __init__.__qualname__ = module, name
    __init__.__doc__ = "Store the options."
    return __init__


def _near(unknown: str, declared: Mapping[str, Option]) -> str:
    """Return the end of a message about an unknown option."""
    owner, _, inner = unknown.partition("__")
    if inner and owner in declared:
        return f"; give {owner} as an object with {inner} among its arguments, or call set_params({unknown}=...)"
    return f"{did_you_mean(unknown, declared)}; it has {', '.join(declared) or 'none'}"


def options_of(component: object) -> dict[str, Option]:
    """Return the options of an object or class by name; none if its class defines its own ``__init__``."""
    cls = component if isinstance(component, type) else type(component)
    owner = next(base for base in cls.__mro__ if "__init__" in base.__dict__)
    return getattr(cls, OPTIONS, {}) if OPTIONS in owner.__dict__ else {}


def role_of(component: object, name: str) -> str:
    """Return the role of an option of an object or class; empty for no role, or no such option."""
    return _roles_of(component).get(name, "")


def names_with_role(base: type, *roles: str) -> set[str]:
    """Return the names of the options that have one of some roles in a class or in any imported class below it.

    Names count across classes, because plugins of ldl 0.2 declare no roles.
    """
    names = {name for name, role in _roles_of(base).items() if role in roles}
    below: list[type] = base.__subclasses__()
    return names.union(*(names_with_role(cls, *roles) for cls in below))


def _roles_of(component: object) -> dict[str, str]:
    roles = {name: each.role for name, each in getattr(component, OPTIONS, {}).items()}
    return roles | getattr(component, "option_roles", {})


def check_options(component: object) -> None:
    """Raise LDLError for the first option out of range, with its name, its value and the accepted values."""
    # A class with its own ``__init__`` has passed its options to its base class.
    for name, declared in getattr(component, OPTIONS, {}).items():
        value = getattr(component, name)
        if not declared.accepts(value):
            meaning = f", {declared.what}" if declared.what else ""
            null = f", or null for {declared.null}" if declared.null else ""
            words = declared.range or ("not null" if value is None else "finite")
            words += " and of at most 64 bits" if isinstance(value, int) and exceeds_64_bits(value) else ""
            raise LDLError(f"{type(component).__name__}.{name} {value!r} must be {words}{meaning}{null}")
