"""Shows ``mkdocstrings`` the ``__init__`` that :func:`ldl.options.options` makes from the fields of a class."""

from __future__ import annotations

from typing import Any

import griffe


class Options(griffe.Extension):
    """Gives decorated classes an ``__init__`` of their fields, those of base classes first."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        self._visit(pkg)

    def _visit(self, module: griffe.Module) -> None:
        for member in list(module.members.values()):
            if member.is_alias:
                continue
            if isinstance(member, griffe.Module):
                self._visit(member)
            elif isinstance(member, griffe.Class) and _is_decorated(member):
                _add_init(member)


def _is_decorated(cls: griffe.Class) -> bool:
    return any(str(decorator.value) == "options" for decorator in cls.decorators)


def _add_init(cls: griffe.Class) -> None:
    fields: dict[str, griffe.Parameter] = {}
    for owner in filter(_is_decorated, [*reversed(cls.mro()), cls]):
        for name, member in owner.members.items():
            if isinstance(member, griffe.Attribute) and member.value is not None:
                if member.annotation is None:
                    fields.pop(name, None)  # fixed, and an option no more
                # A ClassVar is an attribute of the class alone.
                elif "instance-attribute" in member.labels and (default := _default(str(member.value))):
                    fields[name] = griffe.Parameter(
                        name,
                        annotation=member.annotation,
                        kind=griffe.ParameterKind.positional_or_keyword,
                        default=default,
                    )
    own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(own, *fields.values())))


def _default(value: str) -> str | None:
    """The default in ``option(default=..., ...)``, the value itself, or None for what is no option."""
    if value.startswith("buffer("):
        return None
    if value.startswith("option("):
        return value.partition("default=")[2].split(",")[0].rstrip(")") or None
    return value
