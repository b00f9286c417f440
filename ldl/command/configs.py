"""Configuration files: found by name or path, read once in a process, and checked before the parser reads them."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ldl.command.arguments import Argument
from ldl.command.classes import find_class
from ldl.errors import LDLError, did_you_mean
from ldl.moved import OPTIONS, current_path, old_names
from ldl.options import options_of
from ldl.plugins import project_root
from ldl.validation.files import read_text
from ldl.validation.yaml_text import load, load_option, resolved

ONE_WITH_THE_DEFAULT = "digits_ldlf"
"""A name of ``configs/default.yaml``."""

MAX_PIPED = 10**5
"""Largest number of bytes of a configuration from a pipe, which becomes a word of the command line."""

STREAM = re.compile(r"-|/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+")
"""Paths of pipes."""


def configs_folder() -> Path:
    """Return ``configs/`` of the checkout, else the copy in the installed package."""
    root = project_root()
    return root / "configs" if root else Path(__file__).resolve().parents[1] / "configs"


def shipped(folder: Path) -> dict[str, Path]:
    """Return the files below ``configs`` by name."""
    files = {_name(path.relative_to(folder).with_suffix("").parts): path for path in sorted(folder.rglob("*.yaml"))}
    return files | {ONE_WITH_THE_DEFAULT: files.get(ONE_WITH_THE_DEFAULT, folder / "default.yaml")}


def _name(parts: tuple[str, ...]) -> str:
    return "_".join(parts[1:] if parts[:1] == ("runs",) else parts)


def find_config(name: str) -> str:
    """Return the file of a configuration by its path or name; YAML is returned as it is.

    The name of a shipped file is its path below ``configs/runs``, or else below ``configs``, with ``/`` or ``_``
    between its parts: ``sjaffe_ldlf``, ``configs/runs/sjaffe_ldlf.yaml`` and ``configs/runs/sjaffe/ldlf.yaml`` are
    one. Relative paths are searched in the working directory, then beside ``train.py``.

    Raises:
        LDLError: there is no such file.
    """
    root, path = project_root(), os.path.expanduser(name)
    if os.path.exists(path) or not re.fullmatch(r"[\w./-]+", path):
        return path
    if root and os.path.isfile(root / path):
        return str(root / path)
    folder = configs_folder()
    files, parts = shipped(folder), Path(re.sub(r"\.ya?ml$", "", path)).parts
    if "configs" in parts:
        parts = parts[len(parts) - parts[::-1].index("configs") :]
    name = _name(parts)
    if name in files:
        return str(files[name])
    near = did_you_mean(name, files) or f"; {folder} holds the shipped ones"
    raise LDLError(f"configuration {path} does not exist{near}")


def read_config(name: str | Path) -> dict[str, Any]:
    """Return the content of a configuration, named as for :func:`find_config`, with the text of its scalars.

    See :func:`ldl.validation.yaml_text.load`.

    Raises:
        LDLError: there is no such file, or it is no mapping of options in YAML.
    """
    return copy.deepcopy(_load(str(name)))


def read_streams(arguments: Iterable[Argument]) -> list[Argument]:
    """Return arguments with the content of configurations that are piped, as in ``-c -`` or ``-c <(...)``.

    A pipe can be read only once, and a configuration is read again by other processes. Raises LDLError if there is too
    much, or it is no text in UTF-8.
    """
    return [_read_stream(each) if each.is_config and STREAM.fullmatch(each.value) else each for each in arguments]


def _read_stream(argument: Argument) -> Argument:
    name, path = argument.name, argument.value
    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as stream:
            content = stream.read(MAX_PIPED + 1)
        text = content.decode("utf-8-sig") + "\n"
    except (OSError, UnicodeDecodeError) as error:
        raise LDLError(f"{name} {path} cannot be read as text in UTF-8: {error}") from None
    if len(content) > MAX_PIPED:
        raise LDLError(f"{name} {path} has more than {MAX_PIPED} bytes; a configuration is short")
    return Argument(name, text, [name, text])


def with_current_paths(text: str) -> str:
    """Replace the import paths of classes that have moved."""
    return re.sub(r"\b[A-Za-z_]\w*(?:\.\w+)+", lambda match: current_path(match[0]), text)


def has_key(name: str, key: str) -> bool:
    """Return whether a configuration has a key."""
    return key in _load(name)


def read_option(name: str, text: str) -> Any:
    """Return the value that a command line gives an option. Raises LDLError for a mistake inside of brackets."""
    try:
        return load_option(text)
    except yaml.YAMLError as error:
        raise LDLError(f"{name} {text!r} is no YAML: {_reason(error)}; put a text in quotes") from None


def merge(before: Any, now: Any) -> Any:
    """Return a configuration over an earlier one: mappings are merged, and a new class starts from its own defaults."""
    if isinstance(before, str) and isinstance(now, dict):
        before = {"class_path": before}
    if isinstance(before, dict) and "class_path" in before and isinstance(now, dict):
        now = now if {"class_path", "init_args", "dict_kwargs"} & now.keys() else {"init_args": now}
    if not isinstance(before, dict) or not isinstance(now, dict | str):
        return now
    if "class_path" in before and class_name(now) not in (None, class_name(before)):
        return now
    if isinstance(now, str):
        if before.keys() == {"init_args"}:
            return {"class_path": now, **before}
        return before if "class_path" in before else now
    return before | {name: merge(before.get(name), value) for name, value in now.items()}


def class_name(value: Any) -> str | None:
    """Return the name of a class of a configuration without its module; None for a value that names no class."""
    path = value.get("class_path") if isinstance(value, dict) else value
    return current_path(path).rpartition(".")[2] if isinstance(path, str) else None


def _load(name: str) -> dict[str, Any]:
    path = find_config(name)
    if not os.path.exists(path):
        return _parsed("-c", path) if re.search(r"[:{\n]", path) else _read(path, None)
    state = os.stat(path)
    return _read(path, (state.st_mtime_ns, state.st_size, state.st_ino))


@lru_cache(maxsize=256)
def _read(path: str, state: object) -> dict[str, Any]:
    """Read a file once as long as its ``state`` is the same."""
    return _parsed(path, read_text(Path(path), "configuration", "correct -c"))


def _parsed(path: str, text: str) -> dict[str, Any]:
    try:
        content = load(with_current_paths(text))
    except yaml.YAMLError as error:
        raise LDLError(f"{path} is no configuration: {_reason(error)}") from None
    except TypeError:  # a mapping or a list for a key
        raise LDLError(f"{path} is no configuration: a key is no text; options have names") from None
    except RecursionError:
        raise LDLError(f"{path} is nested too deep; a configuration has a few levels") from None
    if not isinstance(content, dict):
        raise LDLError(f"{path} is no mapping of options, such as trainer: {{max_epochs: 3}}")
    return _with_current_options(content)


def _with_current_options(content: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration whose options that have moved stand at their current places.

    Complete configurations of older runs have them also beside classes without them; then their defaults, 0, go.
    """
    for old, current in OPTIONS.items():
        group, name = old.split(".")
        if not isinstance(content.get(group), dict) or name not in content[group]:
            continue
        value = content[group].pop(name)
        owner, name = current.split(".")
        cls = find_class(owner, class_name(content.get(owner)) or "")
        if resolved(value) != 0 or cls is None or name in options_of(cls):
            content = merge(content, {owner: {name: value}})
    return content


def _reason(error: yaml.YAMLError) -> str:
    """Describe an error in one line; PyYAML's own text takes several and names a file of its own."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())[:200]
    words = " ".join(filter(None, (error.context, error.problem)))
    if "alias" in words or "cannot start any token" in words or "tag" in words:
        words += "; put a text that begins with * or another sign of YAML in quotes"
    return f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: {words}"


__getattr__ = old_names(__name__)
