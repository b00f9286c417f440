"""Find configurations by name or path, read them, and merge them with the classes that a command line names.

If a class replaces an earlier one, jsonargparse passes on the arguments of the earlier class, so that SGD would get
AdamW's weight decay. Here the new class starts from its own defaults. Of the options that the command line gives before
the new class, only those that the new class has are kept.
"""

from __future__ import annotations

import copy
import inspect
import os
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ldl.command.arguments import Argument
from ldl.command.classes import BASES, find_class
from ldl.errors import LDLError, did_you_mean
from ldl.moved import OPTIONS, current_path, old_names
from ldl.options import options_of
from ldl.plugins import project_root
from ldl.validation.files import read_utf8
from ldl.validation.yaml_text import load, load_option, resolved

OPTIMIZER = "torch.optim.AdamW"
"""The default of ``Task``."""

CLASS_KEYS = {"class_path", "init_args", "dict_kwargs"}
"""Keys of a class in a configuration."""

USUAL_LOGGERS = "ldl.run.loggers.UsualLoggers"


def merge_configs(contents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the content of several configurations as one; later ones come first."""
    content: dict[str, Any] = {"model": {"optimizer": OPTIMIZER}}
    for config in contents:
        for key in BASES:
            above, _, name = key.rpartition(".")
            options = entry(config, key)
            # A file that does not name a class may have its options without ``init_args``.
            if isinstance(options, dict) and options and not CLASS_KEYS & options.keys():
                entry(config, above)[name] = {"init_args": options}
        content = merge(content, config)
    return content


def compose(content: dict[str, Any], arguments: Sequence[Argument]) -> tuple[dict[str, Any], list[Argument]]:
    """Move the classes that a command line names into a configuration.

    Args:
        content: The configuration, from :func:`merge_configs`.
        arguments: The command line.

    Returns:
        The configuration, and the other arguments.

    Raises:
        LDLError: An option of a class stands in the wrong place of the configuration.
    """
    for group in ("trainer", "model"):
        if not isinstance(options := content.get(group, {}), dict):
            raise LDLError(f"{group} is {options!r}, but holds options; write {group}: {{NAME: VALUE}}")
    others = [each for each in arguments if not each.is_config]
    adds_logger = any(each.name == "--trainer.logger+" for each in others)
    if adds_logger and content.get("trainer", {}).get("logger") in (None, True):
        content = merge(content, {"trainer": {"logger": [{"class_path": USUAL_LOGGERS}]}})
    for key in BASES:
        content, others = _with_class(key, content, others)
        _check_form(key, entry(content, key))
    return content, others


def entry(content: Any, key: str) -> Any:
    """Return the entry of a configuration with a dotted name, or all of it for no name; None if there is none."""
    for name in key.split(".") if key else ():
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _check_form(key: str, content: Any) -> None:
    """Raise LDLError if the options of a class stand beside ``class_path``, or if ``init_args`` is no mapping."""
    if not isinstance(content, dict) or "class_path" not in content:
        return
    options = content.get("init_args")
    if options is not None and not isinstance(options, dict):
        raise LDLError(f"{key}.init_args is {resolved(options)!r}, but holds options; write init_args: {{NAME: VALUE}}")
    if stray := sorted(content.keys() - CLASS_KEYS):
        raise LDLError(f"{key}.{stray[0]} stands beside class_path; write it below {key}.init_args")


def _with_class(key: str, content: dict[str, Any], arguments: list[Argument]) -> tuple[dict[str, Any], list[Argument]]:
    """Move the class that the last naming argument for ``key`` names into the configuration.

    Arguments that name an earlier class are dropped, and so are earlier options that the last class does not have.
    """
    naming_numbers = [
        number
        for number, each in enumerate(arguments)
        if each.value and each.name.startswith("--") and each.option.removesuffix(".class_path") == key
    ]
    if not naming_numbers:
        return content, arguments
    last = naming_numbers[-1]
    path = with_current_paths(arguments[last].value)
    named_class: Any = read_option(arguments[last].name, path)
    for name in reversed(key.split(".")):
        named_class = {name: named_class}
    cls = find_class(key, path)
    options = inspect.signature(cls).parameters if cls else ()
    earlier = [each for number, each in enumerate(arguments[:last]) if number not in naming_numbers]
    kept = [each for each in earlier if _is_taken(each, key, options)]
    return merge(content, named_class), [*kept, *arguments[last + 1 :]]


def _is_taken(argument: Argument, key: str, options: Collection[str]) -> bool:
    """Return whether an argument is outside the class of ``key``, or one of the ``options`` of the class."""
    name = argument.option.removeprefix(f"{key}.")
    return name == argument.option or name.split(".")[0] in options


ONE_WITH_THE_DEFAULT = "digits_ldlf"
"""Second name of ``configs/default.yaml``, unless a shipped file has this name."""

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
    if "configs" in parts:  # keep what follows the last one
        parts = parts[len(parts) - parts[::-1].index("configs") :]
    name = _name(parts)
    if name in files:
        return str(files[name])
    hint = did_you_mean(name, files) or f"; {folder} holds the shipped ones"
    raise LDLError(f"configuration {path} does not exist{hint}")


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
    """Return a text with the current import paths of classes that have moved."""
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
        # Bare options are options of the class.
        now = now if CLASS_KEYS & now.keys() else {"init_args": now}
    if not isinstance(before, dict) or not isinstance(now, dict | str):
        return now
    if "class_path" in before and class_name(now) not in (None, class_name(before)):
        return now  # another class
    if isinstance(now, str):
        if before.keys() == {"init_args"}:  # options that were given before their class
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
        # Text with a colon, a brace or a line break is YAML itself, not a path.
        return _parsed("-c", path) if re.search(r"[:{\n]", path) else _read(path, None)
    state = os.stat(path)
    return _read(path, (state.st_mtime_ns, state.st_size, state.st_ino))


@lru_cache(maxsize=256)
def _read(path: str, state: object) -> dict[str, Any]:
    """Read a file, or return the cached content if ``state`` (time, size and inode of the file) is the same."""
    return _parsed(path, read_utf8(Path(path), "configuration", "correct -c").decode())


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

    The complete configuration of an older run holds these options even if its class does not have them. Such an option
    is dropped if its value is 0, the default.
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
