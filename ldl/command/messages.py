"""Errors of the parser, the libraries and a user's own classes in one line, with the value and the fix."""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from types import FrameType

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import nn

from ldl.command.classes import ALLOWED, BASES, find_class, subclasses
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError, did_you_mean
from ldl.plugins import left_out

MOST_SHOWN = 40
"""Classes that a message lists."""
LONGEST = 300
"""Characters of another library's text in a message."""

NOT_FOUND = r"given class_path '([\w.]+)':\s*(?:module .* has no attribute|No module named)"

IN_WORDS = {"NoneType": "null", "tuple": "a list, such as [1, 2]", "collections.abc.Sequence": "a list, such as [a, b]"}
"""Types whose names would not help a user, with words for them."""

SPEAKERS = {
    "pytorch_lightning": "the trainer does not accept its options",
    "lightning_fabric": "the trainer does not accept its options",
    "torch.optim": "the optimiser or scheduler does not accept its options",
    "albumentations": "an image transform does not accept its options",
}
"""Packages whose errors are about options, with the beginning of our message."""
COMPLAINTS = (MisconfigurationException, ValueError, TypeError, LookupError, RuntimeError, ArithmeticError, ImportError)
"""Errors by which the packages in ``SPEAKERS`` report options."""
RESTORES = "pytorch_lightning.trainer.connectors.checkpoint_connector"
"""The module that restores loops, optimisers and callbacks from a checkpoint."""
SHORTAGES = ("can't allocate memory", "not enough memory", "Storage size calculation overflowed")
"""Texts of torch's errors about a lack of memory."""

LIBRARIES = (
    "ldl", "torch", "torchvision", "torchmetrics", "timm", "pytorch_lightning", "lightning_fabric", "jsonargparse",
    "albumentations", "sklearn", "numpy", "scipy", "wandb", "rich",
)  # fmt: skip
"""Packages whose errors are not those of a plugin."""
PLUGIN_KINDS = (nn.Module, LDLDataModule, pl.Callback, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)


def program() -> str:
    """Return the command that the user typed: ``python train.py`` or ``ldl``."""
    return "python train.py" if Path(sys.argv[0]).name == "train.py" else "ldl"


def no_class(key: str, name: str) -> str:
    """Return the message for a class that does not exist."""
    base = BASES[key]
    names = sorted({cls.__name__ for cls in subclasses(base)})
    known = ", ".join(names) if len(names) <= MOST_SHOWN else f"any {base.__module__}.{base.__name__}"
    return f"{key}: there is no {base.__name__} {name!r}{did_you_mean(name, names)} (known: {known})"


def no_option_of(owner: str, name: str, known: Collection[str]) -> str:
    """Return the message for an option that a class does not have."""
    return f"{owner} has no option {name!r}{did_you_mean(name, known)} (its options: {', '.join(known) or 'none'})"


def one_line(message: str) -> str:
    """Turn a message of jsonargparse into one line."""
    key = ".".join(re.findall(r'Parser key "([^"]+)"', message))
    classes = re.findall(r"class_path[ =]'([\w.]+)'", message)
    if match := re.search(r"Importing '([^']+)' is not allowed, denied by the '([^']+)' entry", message):
        return _denied(match[1], key or "the configuration", found_beside=match[2] == "*")
    if classes and (match := re.search(r"Option '([^']+)' is not accepted", message)):
        return _unknown_option(match[1], key, classes[-1])
    if match := re.search(r"arguments? (?:is|are) required: ([\w, .]+)", message):
        owner = classes[-1].rpartition(".")[2] if classes else "this run"
        return f"{owner} needs the option {match[1]}: pass --{f'{key}.' if classes else ''}{match[1]}"
    if match := re.search(
        r"Multiple subclasses with name (\S+)\. Give the full class path to avoid ambiguity: (.*)\.", message
    ):
        return f"{key}: there are several classes {match[1]!r}; give the full path, one of {match[2]}"
    innermost = _innermost(message)
    types = re.findall(r"Expected (?:a )?<class '([\w.]+)'>", innermost)
    only_class = set(types) <= {"NoneType"}
    if only_class and (match := re.search(rf"Expected a dot import path string: (\S+)|{NOT_FOUND}", message)):
        name = match[1] or match[2]
        unknown = no_class(key, name) if match[1] and key in BASES else f"{key}: there is no class {name!r}"
        return f"{unknown}{_left_out()}; correct its name or import path"
    if match := re.search(r"is abstract\n(?:.*\n)*?.*NestedArg\(key='([^']+)'", message):
        example = " TabularLDL; ldl data lists all" if key == "data" else " CLASS"
        return f"--{key}.{match[1]} is given, but no {key} to have it; name its class too, as in --{key}{example}"
    value = re.search(r"(?:Got|Given) value: (.*?)(?:\. Got value: .*)?$", innermost, re.MULTILINE)
    if value and (match := re.search(r"Literal\[(.*?)\]", innermost)):
        return f"{key} is {value[1]!r}, but must be one of {match[1]}{' or null' if types else ''}"
    if match := re.search(r"Not of type \w+: (.*)", innermost):
        return f"{key}{f' is {value[1]!r}' if value else ''}: {match[1]}"
    if value and types and "Namespace(" not in value[1]:
        shown = re.sub(r"^NestedArg\(.*val=(.*)\)$", r"\1", value[1]).strip("'")
        if shown.startswith("{") and "class_path" not in shown and key in BASES:
            shown = re.sub(r"^\{'init_args': (.*)\}$", r"\1", shown)
            return f"{key} has options, {shown}, and no class to have them; name it, as in -c RUN before this file"
        types = [IN_WORDS.get(kind, kind) for kind in types if "ldl." not in kind] or types
        return f"{key} is {shown!r}, but must be {' or '.join(dict.fromkeys(types))}"
    return _shortened(message)


def _innermost(message: str) -> str:
    """Return the lines that are nested below the last option of a message.

    The first line that is not indented more deeply belongs to another type that jsonargparse has tried.
    """
    lines = message.splitlines()
    option_line = max((number for number, line in enumerate(lines) if "Parser key" in line), default=-1)
    option_depth = _depth(lines[option_line]) if option_line >= 0 else -1
    return "\n".join(takewhile(lambda line: not line or _depth(line) > option_depth, lines[option_line + 1 :]))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _unknown_option(name: str, key: str, path: str) -> str:
    cls = find_class(key, path)
    options = list(inspect.signature(cls).parameters) if cls else []
    return no_option_of(path.rpartition(".")[2], name.rpartition(".")[2], options)


def _denied(path: str, key: str, found_beside: bool) -> str:
    if not found_beside:
        return f"{key} names {path}, which runs commands or loads code; name a class that makes such a part"
    return (
        f"{key} names {path}: the configuration found beside the checkpoint may name classes of {', '.join(ALLOWED)} "
        "and of plugins, and a few of Lightning, but no function; if its source is safe, name the file with -c"
    )


def _left_out() -> str:
    """Return why plugins failed to import, because one of them may define an unknown class."""
    return "".join(f"; plugin {plugin} was left out: {reason[:200]}" for plugin, reason in left_out.items())


@contextmanager
def user_errors() -> Iterator[None]:
    """Raise LDLError for errors of the block that the user can fix; see :func:`explain`."""
    try:
        yield
    except LDLError:
        raise
    except Exception as error:
        if (line := explain(error)) is None:
            raise
        raise LDLError(line) from error


refusals = user_errors
"""The name of version 0.2.0."""


def explain(error: Exception) -> str | None:
    """Return one line for an error that the user can fix, and None for any other.

    The user can fix a lack of memory, a checkpoint of another run, options that Lightning, torch's optimisers or
    albumentations do not accept, and errors in the user's own classes.
    """
    text = _shortened(str(error))
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(words in text for words in SHORTAGES):
        return f"not enough memory: {text}; use smaller batches, fewer trees or smaller layers"
    if (line := _plugin_error(error)) is not None:
        return line
    modules = [str(frame.f_globals.get("__name__", "")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    if RESTORES in modules:
        return f"the checkpoint does not fit: {type(error).__name__} {text}; use the configuration it was saved with"
    raised_by = modules[-1] if modules else ""
    if raised_by.startswith("jsonargparse") and isinstance(error, ValueError):
        # A class that jsonargparse could not build; the message lists the other types that it has tried.
        reason = re.split(r"\n\s*Given value type:", str(error).rpartition("Errors:\n")[2])[0]
        return _shortened(re.split(r"\n\s*- (?:Import path|Expected)", reason)[0]).removeprefix("- ")
    package = next((name for name in SPEAKERS if f"{raised_by}.".startswith(f"{name}.")), None)
    return f"{SPEAKERS[package]}: {text}" if package and isinstance(error, COMPLAINTS) else None


def _plugin_error(error: Exception) -> str | None:
    """Describe an error inside a plugin's class by the innermost class and method, file and line; None for others."""
    message = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if owner := _plugin_class(frame):
            reason = f"{type(error).__name__}: {_shortened(str(error))}".rstrip(": ")
            message = f"{owner}.{frame.f_code.co_name} raised {reason} ({frame.f_code.co_filename}:{line})"
    return message and f"{message}; LDL_TRACEBACK=1 shows the whole traceback"


def _plugin_class(frame: FrameType) -> str | None:
    """Return the name of the plugin's class whose method a frame runs."""
    if str(frame.f_globals.get("__name__")).partition(".")[0] in LIBRARIES:
        return None
    first = frame.f_locals.get("self", frame.f_locals.get("cls"))
    cls = first if isinstance(first, type) else type(first)
    return cls.__name__ if issubclass(cls, PLUGIN_KINDS) else None


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
