"""The options of a run from several configurations and the command line, merged into one configuration.

jsonargparse would pass on the arguments of an earlier class: SGD would get AdamW's weight decay. Here a class that is
named again has its own defaults, and those options given before that it also has.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ldl.command.arguments import Argument
from ldl.command.classes import BASES, find_class
from ldl.command.configs import merge, read_option, with_current_paths
from ldl.errors import LDLError
from ldl.validation.yaml_text import resolved

OPTIMIZER = "torch.optim.AdamW"
"""The default of ``Task``."""

CLASS_KEYS = {"class_path", "init_args", "dict_kwargs"}
"""Keys of a class in a configuration."""

USUAL_LOGGERS = "ldl.run.loggers.UsualLoggers"


def merge_configs(contents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the content of several configurations as one; later ones come first."""
    content: dict[str, Any] = {"model": {"optimizer": OPTIMIZER}}
    for each in contents:
        content = merge(content, _with_init_args(each))
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


def _with_init_args(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a file with the options of a class below ``init_args``, also if it names no class."""
    for key in BASES:
        above, _, name = key.rpartition(".")
        options = entry(content, key)
        if isinstance(options, dict) and options and not CLASS_KEYS & options.keys():
            entry(content, above)[name] = {"init_args": options}
    return content


def _check_form(key: str, content: Any) -> None:
    """Raise LDLError if a file has the options of a class beside its name, or none where they belong."""
    if not isinstance(content, dict) or "class_path" not in content:
        return
    options = content.get("init_args")
    if options is not None and not isinstance(options, dict):
        raise LDLError(f"{key}.init_args is {resolved(options)!r}, but holds options; write init_args: {{NAME: VALUE}}")
    if stray := sorted(content.keys() - CLASS_KEYS):
        raise LDLError(f"{key}.{stray[0]} stands beside class_path; write it below {key}.init_args")


def _with_class(key: str, content: dict[str, Any], arguments: list[Argument]) -> tuple[dict[str, Any], list[Argument]]:
    """Move the class that arguments name last for ``key`` into the configuration."""
    naming = [
        number
        for number, each in enumerate(arguments)
        if each.value and each.name.startswith("--") and each.option.removesuffix(".class_path") == key
    ]
    if not naming:
        return content, arguments
    last = naming[-1]
    path = with_current_paths(arguments[last].value)
    named: Any = read_option(arguments[last].name, path)
    for name in reversed(key.split(".")):
        named = {name: named}
    cls = find_class(key, path)
    options = inspect.signature(cls).parameters if cls else ()
    before = [each for number, each in enumerate(arguments[:last]) if number not in naming]
    kept = [each for each in before if _is_taken(each, key, options)]
    return merge(content, named), [*kept, *arguments[last + 1 :]]


def _is_taken(argument: Argument, key: str, options: Collection[str]) -> bool:
    """Return whether an argument is outside the class of ``key``, or one of the ``options`` of the class."""
    name = argument.option.removeprefix(f"{key}.")
    return name == argument.option or name.split(".")[0] in options
