"""Label distribution learning on Lightning.

The names that most programs need are available here. Each is imported at its first use, so ``import ldl`` is fast.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ldl.moved import alias_old_modules

if TYPE_CHECKING:
    from ldl.backbones.base import Backbone as Backbone
    from ldl.data.base import LDLDataModule as LDLDataModule
    from ldl.estimator import LDLRegressor as LDLRegressor
    from ldl.head import AlternatingHead as AlternatingHead
    from ldl.head import FittedHead as FittedHead
    from ldl.head import Head as Head
    from ldl.inference import Predictor as Predictor
    from ldl.jobs.crossval import crossvalidate as crossvalidate
    from ldl.labels import LabelSpace as LabelSpace
    from ldl.task import Task as Task

# Read when torch loads its OpenMP runtime. Waiting threads that spin make a step up to a hundred times slower
# as soon as another process uses the cores; sleeping threads have no measurable cost.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

alias_old_modules()

__version__ = "0.2.0"

_HOMES = {
    "AlternatingHead": "ldl.head",
    "Backbone": "ldl.backbones",
    "FittedHead": "ldl.head",
    "Head": "ldl.head",
    "LDLDataModule": "ldl.data",
    "LDLRegressor": "ldl.estimator",
    "LabelSpace": "ldl.labels",
    "Predictor": "ldl.inference",
    "Task": "ldl.task",
    "crossvalidate": "ldl.jobs.crossval",
}
"""The module of each name."""

__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ldl' has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
