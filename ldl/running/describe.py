"""The options of the parser and of the classes it knows, as plain data (:mod:`ldl.start.schema`)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from jsonargparse._parameter_resolvers import get_signature_parameters
from pytorch_lightning.cli import LightningArgumentParser

from ldl.backbones.base import Backbone
from ldl.data.base import LDLDataModule
from ldl.data.sources import SOURCES
from ldl.head import AlternatingHead, FittedHead, Head, ImageHead
from ldl.options import options_of
from ldl.running.messages import subclasses
from ldl.running.parser import LDLCLI
from ldl.start.schema import ClassEntry, OptionEntry, Schema

KINDS: dict[str, type] = {"model.head": Head, "model.backbone": Backbone, "data": LDLDataModule}


class _Ready(Exception):
    """The parser is made."""


class _Unparsed(LDLCLI):
    """Makes the parser, and parses nothing."""

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        raise _Ready(parser)


def describe() -> Schema:
    """All that can be said on a command line, with what is imported now."""
    try:
        _Unparsed([])
    except _Ready as ready:
        parser = ready.args[0]
    entries = [_entry(action, name) for action in parser._actions for name in action.option_strings]
    classes = [_class_entry(base, cls) for base, root in KINDS.items() for cls in dict.fromkeys(subclasses(root))]
    return Schema(tuple(entries), tuple(classes))


def _entry(action: Any, name: str) -> OptionEntry:
    kind = getattr(action, "_typehint", None)
    asks = name.endswith(".help") or kind is None
    default, line = "" if asks else _value(action.default), "" if asks else _line(action.help)
    return OptionEntry(name.lstrip("-"), _type(kind), default, line, "", _choices(kind), _is_open(kind))


def _class_entry(base: str, cls: type) -> ClassEntry:
    known, entries, is_open = options_of(cls), [], False
    for parameter in get_signature_parameters(cls, "__init__"):
        if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
            is_open = True
            continue
        accepted, kind = known.get(parameter.name), parameter.annotation
        range_ = "" if accepted is None else accepted.range + (accepted.what and f", {accepted.what}")
        default = "" if parameter.default is inspect.Parameter.empty else _value(parameter.default)
        line = _line(parameter.doc)
        entries.append(OptionEntry(parameter.name, _type(kind), default, line, range_, _choices(kind), _is_open(kind)))
    text = re.split(r"\n\s*(?:Args|Attributes):\n", inspect.getdoc(cls) or "")[0].strip()
    path = f"{cls.__module__}.{cls.__qualname__}"
    return ClassEntry(base, cls.__name__, path, text, _traits(cls), tuple(entries), is_open)


def _traits(cls: type) -> dict[str, str]:
    if issubclass(cls, LDLDataModule):
        chosen = options_of(cls).get("protocol")
        protocols = list(getattr(cls, "protocols", {})) or list(chosen.choices if chosen else ())
        usual = getattr(options_of(cls).get("path"), "default", None)
        names = [Path(str(usual)).name, *(base.__name__ for base in cls.__mro__)]
        known = next((SOURCES[name] for name in names if name in SOURCES), None)
        source = {} if known is None else {"files": known.layout, "from": f"{known.where} ({known.licence})"}
        return {**source, "protocols": ", ".join(protocols) or str(cls.protocol)}
    if not issubclass(cls, Head):
        return {}
    ways = {ImageHead: "fitted on images", FittedHead: "fitted", AlternatingHead: "alternating", Head: "by gradient"}
    takes = "images" if issubclass(cls, ImageHead) else "bags" if cls.takes_bags else "rows"
    return {
        "learns": next(words for kind, words in ways.items() if issubclass(cls, kind)),
        "takes": takes + (", missing values" if cls.takes_missing else ""),
    }


def _is_open(kind: Any) -> bool:
    """Whether a class may be named, whose options follow."""
    return any(
        inspect.isclass(part)
        and part.__module__.split(".")[0] not in ("builtins", "typing", "pathlib")
        and part.__module__ != "collections.abc"
        for part in _parts(kind)
    )


def _parts(kind: Any) -> Iterator[Any]:
    yield kind
    for part in get_args(kind) if get_origin(kind) is not Literal else ():
        if isinstance(part, list):
            for inner in part:
                yield from _parts(inner)
        else:
            yield from _parts(part)


def _choices(kind: Any) -> tuple[str, ...]:
    """The values, where a type allows but these, and they are texts."""
    kinds = [kind] if get_origin(kind) is Literal else [part for part in get_args(kind) if part is not type(None)]
    values = [value for part in kinds if get_origin(part) is Literal for value in get_args(part)]
    closed = all(get_origin(part) is Literal for part in kinds) and all(isinstance(value, str) for value in values)
    null = ["null"] if type(None) in get_args(kind) else []
    return (*values, *null) if values and closed else ()


def _type(kind: Any) -> str:
    """A type in words."""
    if kind is None or kind is inspect.Parameter.empty:
        return ""
    if kind is type(None):
        return "null"
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    if isinstance(kind, str):
        return kind
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(_type, get_args(kind))))
    if get_origin(kind) is Annotated:
        return _type(get_args(kind)[0])
    inner = [part for part in get_args(kind) if part is not Ellipsis and not isinstance(part, list)]
    name = getattr(kind, "__name__", str(kind))
    return f"{name}[{', '.join(map(_type, inner))}]" if inner and name != "Callable" else name


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) and "class_path" in value:
        return str(value["class_path"]).rpartition(".")[2]
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _line(text: str | None) -> str:
    return " ".join((text or "").replace("``", "").split())
