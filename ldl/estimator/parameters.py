"""Options of a head as parameters of an estimator: ``head__depth``, and ``head__head__depth`` of a nested head."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import numpy as np
from torch import nn

import ldl.heads
from ldl.errors import LDLError, check_one_of, did_you_mean
from ldl.head import Head, ImageHead
from ldl.plugins import discover

H = TypeVar("H", bound=nn.Module)


class HeadParameters:
    """Mixin for an estimator whose parameter ``head`` has options that are parameters too."""

    head: Head | str

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters by name; ``deep`` adds the options of the head."""
        parameters: dict[str, Any] = super().get_params(deep)  # type: ignore[misc]
        component = _or_none(self.head) if deep else None
        return (
            parameters
            if component is None
            else parameters | {f"head__{n}": value for n, value in _parameters(component)}
        )

    def set_params(self, **params: Any) -> Self:
        """Set parameters; options of the head make a new head. Raises ValueError for unknown names."""
        options = {name: params.pop(name) for name in list(params) if name.startswith("head__")}
        if options:
            changes = {name.removeprefix("head__"): value for name, value in options.items()}
            params["head"] = _with_parameters(make_head(params.get("head", self.head)), changes)
        with restored_on_error(self):
            super().set_params(**params)  # type: ignore[misc]
        return self


@contextmanager
def restored_on_error(estimator: object) -> Iterator[None]:
    """Restore the attributes of an estimator if the block raises."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def make_head(head: Head | str) -> Head:
    """Return a copy of :func:`find_head`. Raises LDLError."""
    return copy.deepcopy(find_head(head))


def find_head(head: Head | str) -> Head:
    """Return a head that is not built, or a head by class name with its defaults; it must take rows.

    Names are those of the command line: heads of ldl, of plugins and of imported modules. Raises LDLError.
    """
    if not isinstance(head, Head):
        head = _find(head)()
    name = type(head).__name__
    if head.is_built:
        raise LDLError(f"head {name} is built already; give a new one, {name}(...), which every fit copies")
    if isinstance(head, ImageHead) or head.takes_bags:
        raise LDLError(f"head {name} takes {'images' if isinstance(head, ImageHead) else 'bags'}, and X has rows")
    return head


def takes_missing(head: Any) -> bool:
    """Return whether a head, also one given by name, takes missing features; False for anything else."""
    component = _or_none(head)
    return component is not None and component.takes_missing


def _or_none(head: Any) -> Head | None:
    """Return the result of :func:`find_head`, or None if it raises an error."""
    try:
        return find_head(head)
    except (LDLError, TypeError):
        return None


def _with_parameters(component: H, changes: dict[str, Any]) -> H:
    """Return a new component with changed options, given by paths such as ``depth`` or ``head__depth``."""
    arguments = _arguments(component)
    nested: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        name, _, rest = path.partition("__")
        if name not in arguments or (rest and not isinstance(arguments[name], nn.Module)):
            kind = type(component).__name__
            near = did_you_mean(name, arguments)
            raise LDLError(f"{kind} has no option {path!r}{near}; it has {', '.join(arguments) or 'none'}")
        if rest:
            nested.setdefault(name, {})[rest] = value
        else:
            # Grids may hold numpy numbers, which checkpoints do not store.
            arguments[name] = value.item() if isinstance(value, np.generic) else value
    for name, parts in nested.items():
        arguments[name] = _with_parameters(arguments[name], parts)
    return type(component)(**copy.deepcopy(arguments))


def _parameters(component: nn.Module) -> Iterator[tuple[str, Any]]:
    for name, value in _arguments(component).items():
        yield name, value
        if isinstance(value, Head):
            yield from ((f"{name}__{inner}", inner_value) for inner, inner_value in _parameters(value))


def _arguments(component: nn.Module) -> dict[str, Any]:
    return {name: getattr(component, name) for name in inspect.signature(type(component)).parameters}


def _find(name: Any) -> type[Head]:
    if not isinstance(name, str):
        raise LDLError(f"head {name!r} must be a head, such as StructRF(trees=100), or the name of one")
    if name not in (heads := _known()):
        discover()
        heads = _known()
    check_one_of("head", name, sorted(heads))
    return heads[name]


def _known() -> dict[str, type[Head]]:
    """Return all imported heads by class name; heads of ldl take precedence."""
    heads: dict[str, type[Head]] = {}
    waiting = Head.__subclasses__()
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        if not inspect.isabstract(cls):
            heads[cls.__name__] = cls
    return heads | {name: getattr(ldl.heads, name) for name in ldl.heads.__all__}
