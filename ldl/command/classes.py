"""The classes that a configuration may name: the parser imports and calls them."""

from __future__ import annotations

import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import pytorch_lightning as pl
from jsonargparse import Namespace, set_parsing_settings
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

# Packages whose classes can be named, so that all of them exist wherever names are looked up.
import ldl.callbacks  # noqa: F401
import ldl.heads  # noqa: F401
import ldl.inference.data  # noqa: F401
from ldl.backbones.base import Backbone
from ldl.command._compat import restored_parsing_settings
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.head import Head
from ldl.moved import current_path

BASES: dict[str, type] = {
    "model.head": Head,
    "data": LDLDataModule,
    "model.backbone": Backbone,
    "model.optimizer": Optimizer,
    "model.lr_scheduler": LRScheduler,
}
"""Options that name a class, with the base class that it must have."""

OURS = ("model.head", "data", "model.backbone")
"""Those of ``BASES`` that ldl and plugins define classes for."""

ALLOWED = ("ldl", "torch.optim", "albumentations")
"""Packages whose heads, data, backbones, optimisers, schedulers, callbacks and image transforms a configuration beside
a checkpoint may name. Those of plugins are allowed too."""

HARMLESS = tuple(
    f"pytorch_lightning.{name}"
    for name in (
        *("callbacks.EarlyStopping", "callbacks.ModelCheckpoint", "callbacks.LearningRateMonitor", "callbacks.Timer"),
        *("callbacks.GradientAccumulationScheduler", "callbacks.StochasticWeightAveraging", "callbacks.ModelSummary"),
        *("callbacks.RichModelSummary", "callbacks.RichProgressBar", "callbacks.TQDMProgressBar"),
        *("callbacks.DeviceStatsMonitor", "loggers.CSVLogger", "loggers.TensorBoardLogger"),
    )
)
"""Classes of Lightning that it may name: none calls a function that it is given, or writes where
:mod:`ldl.command.beside` does not look."""


def subclasses(base: type) -> Iterator[type]:
    """Return all imported classes below a base class that a configuration can name."""
    direct: list[type] = base.__subclasses__()
    for cls in direct:
        if not inspect.isabstract(cls) and not cls.__name__.startswith("_"):
            yield cls
        yield from subclasses(cls)


def find_class(key: str, given: str) -> type | None:
    """Return the class that an option names by its name or import path; None for no class, or for several."""
    if "." in given:
        try:
            found = pkgutil.resolve_name(current_path(given))
        except (ValueError, ImportError, AttributeError):
            return None
        return found if inspect.isclass(found) else None
    named = {cls for cls in subclasses(BASES[key]) if cls.__name__ == given} if key in BASES else set()
    return named.pop() if len(named) == 1 else None


@contextmanager
def class_paths(beside: Path | None, named: Iterable[str] = ()) -> Iterator[None]:
    """Restrict the class paths that the parser imports within the block.

    Commands, interpreters and unpicklers, as jsonargparse lists them, are never allowed. The user trusts a
    configuration that the command line names. A configuration that was found beside a checkpoint may name the classes
    of :func:`harmless_paths` only, and no function.

    Args:
        beside: The configuration that was found beside a checkpoint, or None.
        named: Import paths that the user has named beside it.
    """
    with restored_parsing_settings():
        if beside is None:
            set_parsing_settings(import_path_denylist=[])  # turns jsonargparse's warning into an error
        else:
            known = (path for path in named if _is_dotted(path))
            set_parsing_settings(import_path_denylist=["*"], import_path_allowlist=[*harmless_paths(), *known])
        yield


def harmless_paths() -> set[str]:
    """Return the import paths of all classes that a configuration beside a checkpoint may name."""
    from albumentations import BaseCompose, BasicTransform  # late: tables need no images

    plugins = {cls.__module__ for key in OURS for cls in subclasses(BASES[key])}
    bases = [*BASES.values(), pl.Callback, BasicTransform, BaseCompose]
    classes = {cls for base in bases for cls in (base, *subclasses(base))}
    allowed = {
        cls
        for cls in classes
        if cls.__module__ in plugins or any(f"{cls.__module__}.".startswith(f"{name}.") for name in ALLOWED)
    }
    allowed |= {pkgutil.resolve_name(path) for path in (*HARMLESS, "ldl.run.loggers.UsualLoggers")}
    return {path for cls in allowed for path in _import_paths(cls) if _is_dotted(path)}


def _import_paths(cls: type) -> Iterator[str]:
    """Yield the path of a class, and those by which the packages above its module export it."""
    yield f"{cls.__module__}.{cls.__qualname__}"
    package = cls.__module__
    while package := package.rpartition(".")[0]:
        # Not by getattr, which imports names that moved out of the package.
        if package in sys.modules and vars(sys.modules[package]).get(cls.__name__) is cls:
            yield f"{package}.{cls.__name__}"


def _is_dotted(path: str) -> bool:
    return "." in path and all(part.isidentifier() for part in path.split("."))


def check_factories(model: Namespace) -> None:
    """Raise LDLError if the optimiser or the scheduler is neither such a class nor a function that returns one.

    jsonargparse checks classes, and accepts any function.
    """
    for name in ("optimizer", "lr_scheduler"):
        given, base = model.get(name), BASES[f"model.{name}"]
        path = given.get("class_path") if isinstance(given, Namespace) else None
        if path is not None and not _makes(pkgutil.resolve_name(path), base):
            raise LDLError(f"model.{name} names {path}, which is no {base.__name__}; give a class of torch.optim")


def _makes(factory: Any, base: type) -> bool:
    if not inspect.isclass(factory):
        try:
            factory = get_type_hints(factory).get("return")
        except (NameError, TypeError):
            return False
    return inspect.isclass(factory) and issubclass(factory, base)
