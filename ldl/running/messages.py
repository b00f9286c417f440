"""The parser's complaints in one line: the option, the bad value, what is accepted."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import torch
from jsonargparse._util import import_object

from ldl.backbones.base import Backbone
from ldl.data.base import LDLDataModule
from ldl.errors import did_you_mean
from ldl.head import Head
from ldl.plugins import left_out
from ldl.running.class_paths import ALLOWED
from ldl.start.wording import no_choice, no_class, no_option, no_option_of, program

_BASES: dict[str, type] = {
    "model.head": Head,
    "model.backbone": Backbone,
    "data": LDLDataModule,
    "model.optimizer": torch.optim.Optimizer,
    "model.lr_scheduler": torch.optim.lr_scheduler.LRScheduler,
}

_IN_WORDS = {"NoneType": "null", "collections.abc.Sequence": "a list, such as [a, b]"}


def one_line(message: str, options: list[str]) -> str:
    """Turn a message of jsonargparse into one line; ``options`` are all names of the parser, without dashes."""
    key = ".".join(re.findall(r'Parser key "([^"]+)"', message))
    classes = re.findall(r"class_path[ =]'([\w.]+)'", message)
    if match := re.search(r"unrecognized arguments: (.*)", message):
        word = match[1].split()[0]
        if not word.startswith("-"):
            return f"{word!r} is no option; options begin with --, such as --data.path {word}"
        return no_option(word.lstrip("-").split("=")[0], options)
    if match := re.search(r"Importing '([^']+)' is not allowed, denied by the '([^']+)' entry", message):
        return _denied(match[1], key or "the configuration", beside=match[2] == "*")
    if match := re.search(r"Option '([^']+)' is not accepted", message):
        return _unknown_option(match[1], key, classes, options)
    if match := re.search(r"arguments? (?:is|are) required: ([\w, .]+)", message):
        owner = classes[-1].rpartition(".")[2] if classes else "this run"
        return f"{owner} needs the option {match[1]}: pass --{f'{key}.' if classes else ''}{match[1]}"
    if match := re.search(
        r"Multiple subclasses with name (\S+)\. Give the full class path to avoid ambiguity: (.*)\.", message
    ):
        return f"{key}: there are several classes {match[1]!r}; give the full path, one of {match[2]}"
    if match := re.search(r"Expected a dot import path string: (\S+)", message):
        return _unknown_class(match[1], key) + _left_out()
    if match := re.search(r"given class_path '([\w.]+)':\s*(?:module .* has no attribute|No module named)", message):
        return f"{key}: there is no class {match[1]!r}; correct its import path{_left_out()}"
    if match := re.search(r"Literal\[(.*?)\]+\. Got value: (.*)", message):
        return no_choice(key, match[2], match[1])
    if match := re.search(r"is abstract\n(?:.*\n)*?.*NestedArg\(key='([^']+)'", message):
        example = " TabularLDL; ldl data lists all" if key == "data" else " CLASS"
        return f"--{key}.{match[1]} is given, but no {key} to have it; name its class too, as in --{key}{example}"
    value = re.search(r"(?:Got|Given) value: (.*)", message)
    kinds = re.findall(r"Expected (?:a )?<class '([\w.]+)'>", message)
    if value and kinds and "Namespace(" not in value[1]:
        bad = re.sub(r"^NestedArg\(.*val=(.*)\)$", r"\1", value[1]).strip("'")
        kinds = [_IN_WORDS.get(kind, kind) for kind in kinds if "ldl." not in kind] or kinds
        return f"{key} is {bad!r}, but must be {' or '.join(dict.fromkeys(kinds))}"
    text = " ".join(message.split())
    return text if len(text) <= 300 else f"{text[:300]} ..."


def _unknown_option(name: str, key: str, classes: list[str], options: list[str]) -> str:
    leaf = name.rpartition(".")[2]
    if classes:
        known = list(inspect.signature(import_object(classes[-1])).parameters)
        return no_option_of(classes[-1].rpartition(".")[2], leaf, known)
    full = f"{key}.{name}" if key else name
    groups = {prefix for option in options for prefix in (option, option.rpartition(".")[0]) if prefix}
    near = did_you_mean(full, groups) or did_you_mean(full.split(".")[0], {option.split(".")[0] for option in options})
    return f"unknown option {full!r}{near}; see {program()} --help"


def _denied(path: str, key: str, beside: bool) -> str:
    if not beside:
        return f"{key} names {path}, which runs commands or loads code; name a class that makes such a part"
    return (
        f"{key} names {path}: the configuration found beside the checkpoint may name classes of {', '.join(ALLOWED)} "
        "and of plugins; if you trust it, name the file with -c"
    )


def _unknown_class(name: str, key: str) -> str:
    base = _BASES.get(key)
    if base is None:
        return f"{key}: there is no class {name!r}; give an import path"
    return no_class(key, base.__name__, base.__module__, name, [cls.__name__ for cls in subclasses(base)])


def _left_out() -> str:
    """Plugins that failed to import: what is not known may have been theirs."""
    return "".join(f"; plugin {what} was left out: {reason[:200]}" for what, reason in left_out.items())


def subclasses(base: type) -> Iterator[type]:
    """All classes that are imported and can be named, below a base class."""
    direct: list[type] = base.__subclasses__()
    for cls in direct:
        if not inspect.isabstract(cls) and not cls.__name__.startswith("_"):
            yield cls
        yield from subclasses(cls)
