"""Names on a command line that do not exist, found without the parser, which takes seconds to import.

Only what is certain is refused: everything else, values above all, is left to the parser.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ldl.errors import LDLError
from ldl.start.configs import configs_folder, locate_config
from ldl.start.schema import BASES, ClassEntry, Schema
from ldl.start.wording import no_choice, no_class, no_option, no_option_of

KINDS = {
    "model.head": ("Head", "ldl.head"),
    "model.backbone": ("Backbone", "ldl.backbones.base"),
    "data": ("LDLDataModule", "ldl.data.base"),
}
"""Of each option that names a class, what it must be, and the module of that."""

NULL = ("null", "Null", "NULL", "None", "~")


def check(args: list[str], schema: Schema) -> None:
    """Refuse options, classes, stages and configurations that do not exist. Raises LDLError."""
    given = list(options_of(args))
    names = [name for name, _ in given]
    configs = {value: read_config(value) for name, value in given if name in ("-c", "--config")}
    if any({"candidates", "tune"} & set(content or ()) for content in configs.values()):
        return
    known: dict[str, ClassEntry | None] = {}
    if not configs and "--ckpt_path" not in names:
        take_classes(known, read_config(str(configs_folder() / "default.yaml")), schema)
    for name, value in given:
        if name in ("-c", "--config"):
            take_classes(known, configs[value], schema)
        elif name.startswith("--"):
            check_option(name[2:], value, known, schema)


def options_of(args: list[str]) -> Iterator[tuple[str, str]]:
    """The options of a command line with their values, which may be empty."""
    for number, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        follows = args[number + 1] if number + 1 < len(args) else ""
        if arg.startswith("-"):
            yield name, value if equals else "" if follows.startswith("--") else follows


def read_config(given: str) -> dict[str, Any] | None:
    """A configuration by its name or path, or as YAML; None where it is left to the parser to read it.

    Raises:
        LDLError: there is no such configuration.
    """
    place = locate_config(given)
    try:
        text = Path(place).read_text(encoding="utf-8") if os.path.isfile(place) else given
        # An alias may stand for very much.
        content = yaml.safe_load(text) if "&" not in text else None
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    return content if isinstance(content, dict) else None


def take_classes(known: dict[str, ClassEntry | None], content: dict[str, Any] | None, schema: Schema) -> None:
    """Note the classes that a configuration names, None for one that is not known here; of None it may name any."""
    model = (content or {}).get("model")
    if content is None or any("." in str(key) for key in content) or not isinstance(model, dict | None):
        known.clear()
        return
    parts = {f"model.{name}": part for name, part in (model or {}).items()} | {"data": content.get("data")}
    for base in BASES:
        part = parts.get(base)
        named = part.get("class_path") if isinstance(part, dict) else part
        if part is not None and not (isinstance(part, dict) and named is None):
            known[base] = schema.find(base, str(named))


def check_option(name: str, value: str, known: dict[str, ClassEntry | None], schema: Schema) -> None:
    """Refuse one option, without its dashes, and note the class that it names. Raises LDLError."""
    if name in BASES:
        known[name] = _named(name, value, schema)
    elif name.rstrip("+") in schema.names:
        choices = schema.names[name.rstrip("+")].choices
        if choices and re.fullmatch(r"\w+", value) and value not in choices and value not in NULL:
            raise LDLError(no_choice(name, value, ", ".join(map(repr, choices))))
        if name in ("model", "print_config"):
            known.clear()
    elif (base := next((base for base in BASES if name.startswith(f"{base}.")), None)) is not None:
        _check_class_option(base, name.removeprefix(f"{base}."), value, known, schema)
    elif not _may_follow(name, schema):
        raise LDLError(no_option(name, [entry.name for entry in schema.options]))


def _named(base: str, value: str, schema: Schema) -> ClassEntry | None:
    if not value.isidentifier() or value in NULL or os.path.exists(value):
        return schema.find(base, value)
    found = [entry.name for entry in schema.of(base)]
    if value not in found:
        raise LDLError(no_class(base, *KINDS[base], value, found))
    return schema.find(base, value)


def _check_class_option(base: str, rest: str, value: str, known: dict[str, ClassEntry | None], schema: Schema) -> None:
    if rest == "class_path":
        known[base] = _named(base, value, schema)
        return
    leaf = rest.removeprefix("init_args.").partition(".")[0].rstrip("+")
    owner = known.get(base)
    if owner is None or owner.is_open or leaf in ("help", "init_args", "dict_kwargs"):
        return
    if leaf not in (names := [entry.name for entry in owner.options]):
        raise LDLError(no_option_of(owner.name, leaf, names))


def _may_follow(name: str, schema: Schema) -> bool:
    """Whether it is an option of a class that another option names, or the beginning of an option."""
    owners = any(entry.is_open and name.startswith(f"{entry.name}.") for entry in schema.options)
    return owners or any(entry.name.startswith(name) for entry in schema.options)
