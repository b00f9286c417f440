"""Which classes a configuration may name: what it names is imported, and called."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

from jsonargparse import Namespace, set_parsing_settings
from jsonargparse._common import parsing_settings
from jsonargparse._util import import_object
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from ldl.backbones.base import Backbone
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.head import Head

ALLOWED = ("ldl", "torch.optim", "pytorch_lightning", "albumentations")
"""Whose classes a configuration may name that nobody named: one that lies beside a checkpoint. Plugins come on top."""


@contextmanager
def class_paths(beside: Path | None) -> Iterator[None]:
    """Refuse class paths while configurations are read and their parts are made.

    Commands, interpreters and unpicklers, as jsonargparse lists them, are never the class of anything. A configuration
    that was named is trusted otherwise, one that was found is not.

    Args:
        beside: The configuration that was found beside a checkpoint, or None.
    """
    before = dict(parsing_settings)
    if beside is None:
        set_parsing_settings(import_path_denylist=[])  # what is denied by itself is from now on an error
    else:
        set_parsing_settings(import_path_denylist=["*"], import_path_allowlist=[*ALLOWED, *_plugins()])
    try:
        yield
    finally:
        parsing_settings.clear()
        parsing_settings.update(before)


def check_factories(model: Namespace) -> None:
    """Raise LDLError where the optimiser or the scheduler is neither such a class nor a function that returns one.

    jsonargparse looks at classes, and takes any function.
    """
    for key, base in (("optimizer", Optimizer), ("lr_scheduler", LRScheduler)):
        given = model.get(key)
        path = given.get("class_path") if isinstance(given, Namespace) else None
        if path is not None and not _makes(import_object(path), base):
            raise LDLError(f"model.{key} names {path}, which is no {base.__name__}; give a class of torch.optim")


def _makes(factory: Any, base: type) -> bool:
    if not inspect.isclass(factory):
        try:
            factory = get_type_hints(factory).get("return")
        except (NameError, TypeError):
            return False
    return inspect.isclass(factory) and issubclass(factory, base)


def _plugins() -> set[str]:
    """Modules of heads, backbones and data modules that are imported already."""
    found: set[str] = set()
    waiting: list[type] = [Head, Backbone, LDLDataModule]
    while waiting:
        waiting += (cls := waiting.pop()).__subclasses__()
        found.add(cls.__module__)
    return {module for module in found if all(part.isidentifier() for part in module.split("."))}
