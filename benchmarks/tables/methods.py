"""Methods of the tabular benchmark: heads of ldl, and competing packages with ``fit`` and ``predict``."""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from scipy.sparse import csr_matrix

import ldl.backbones
import ldl.heads
from benchmarks.common.data import fit_rows, inputs_of, known_columns, mean_metrics
from benchmarks.tables.columns import Column
from ldl.backbones.base import Identity
from ldl.data import LDLDataModule, TabularLDL
from ldl.data.tables.scaling import Scaling
from ldl.estimator.training import train
from ldl.head import FittedHead, Head
from ldl.heads import Pool
from ldl.metrics.functional import kl
from ldl.schedule import WarmupCosine
from ldl.search.selection import Candidate, Setting
from ldl.task import Task

os.environ.setdefault("KERAS_BACKEND", "torch")  # python-ldl is built on Keras, whose default is TensorFlow

Model = Callable[[torch.Tensor], torch.Tensor]

SPARSE = 0.1
"""A package that takes sparse rows gets them if the share of nonzero numbers is below this one."""
FLOOR = 1e-12
"""Least probability of packages that predict no distribution, before normalisation."""
LARGEST = {"epochs": 2, "folds": 2, "rounds": 5, "trees": 5, "n_estimators": 5, "iterations": 10, "max_iter": 10}
"""Largest values of arguments of any class in the small form of a method."""


@dataclass(frozen=True)
class Method:
    """A method as the configuration describes it. Stored results depend on its ``repr``.

    Attributes:
        name: Name in the tables.
        class_path: Name of a head of ldl, or path of a class with ``fit`` and ``predict``.
        init_args: Arguments of the class.
        grid: Values of arguments to choose from on validation rows.
        tuning: Arguments that make the choice faster, such as fewer trees.
        training: ``epochs``, ``batch_size``, ``lr``, ``weight_decay`` of heads that are trained by gradient.
        scaling: Scaling of the features, see ``TabularLDL``.
        seeded: Name of the argument that takes the seed of a package.
        sparse: Whether a package takes sparse rows, with which it finds the same in less time.
        sets: Sets for which it is meant; None is all.
        fitting: Arguments of a package's ``fit`` in the small form.
    """

    name: str
    class_path: str
    init_args: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    tuning: dict[str, Any] = field(default_factory=dict)
    training: dict[str, float] = field(default_factory=dict)
    scaling: Scaling = "standard"
    seeded: str | None = None
    sparse: bool = field(default=False, repr=False)
    sets: list[str] | None = field(default=None, repr=False)
    fitting: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_head(self) -> bool:
        """Whether it is a head of ldl."""
        return hasattr(ldl.heads, self.class_path)

    def is_for(self, name: str) -> bool:
        """Return whether it is meant for a set."""
        return self.sets is None or name in self.sets

    def settings(self) -> list[Setting]:
        """Return all points of the grid."""
        return [dict(zip(self.grid, values)) for values in itertools.product(*self.grid.values())]


@dataclass(frozen=True)
class OnSet(Candidate):
    """A method on a column, from one seed."""

    column: Column
    method: Method
    seed: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.method.name

    @cached_property
    def settings(self) -> list[Setting]:  # type: ignore[override]
        return self.method.settings()

    def open(self, setting: Setting, fold: int) -> LDLDataModule:
        return open_fold(self.column, setting.get("scaling", self.method.scaling), fold)

    def score(self, setting: Setting, data: LDLDataModule, choosing: bool = False) -> dict[str, float]:
        """Return the mean of ten metrics over the test rows, and the KL of every member of a pool with a weight."""
        arguments = {name: value for name, value in setting.items() if name != "scaling"}
        arguments |= self.method.tuning if choosing else {}
        model = fit(self.method, arguments, data, self.seed)
        inputs, true = inputs_of(data)[data.split.test], data.columns["target"][data.split.test].double()
        metrics = mean_metrics(model(inputs), true)
        if isinstance(model, Pool):
            for number in model.used:
                member = kl(model.members[number](inputs).double(), true)
                metrics[f"kl of {model.names[number]}"] = float(member.mean())
        return metrics


@lru_cache(maxsize=4)
def open_fold(column: Column, scaling: Scaling, fold: int) -> TabularLDL:
    """Open a set with a fold selected. The last few stay open, since a grid has more settings than scalings."""
    data = TabularLDL(path=column.path, protocol=column.protocol, scaling=scaling, fold=fold, val_fraction=0.0)
    data.setup()
    return data


def fit(method: Method, setting: Setting, data: LDLDataModule, seed: int) -> Model:
    """Fit on the training rows of ``data``; the result maps inputs (n, F) to distributions (n, C).

    Args:
        method: The method.
        setting: Arguments that replace those of the method.
        data: The data with a fold selected.
        seed: Seed of everything random.
    """
    arguments = {**method.init_args, **setting}
    pl.seed_everything(seed, workers=True, verbose=False)
    inputs = inputs_of(data)
    if not method.is_head:
        return _fit_package(method, arguments, data, inputs.numpy(), seed)
    head = make_head({"class_path": method.class_path, "init_args": arguments})
    if isinstance(head, FittedHead):
        return fit_rows(head, data, inputs, data.split.train)
    return _train(head, method.training, data)


def make_head(spec: Any) -> Any:
    """Make the head of a specification with short class names, and all heads and backbones in it."""
    if isinstance(spec, list):
        return [make_head(part) for part in spec]
    if not isinstance(spec, dict) or "class_path" not in spec:
        return spec
    arguments = {name: make_head(value) for name, value in spec.get("init_args", {}).items()}
    return _find_class(spec["class_path"])(**arguments)


def _train(head: Head, training: dict[str, float], data: LDLDataModule) -> Task:
    data.batch_size = int(training["batch_size"])
    task = Task(
        head,
        Identity(),
        optimizer=lambda parameters: torch.optim.AdamW(
            parameters, lr=training["lr"], weight_decay=training.get("weight_decay", 0.01)
        ),
        lr_scheduler=WarmupCosine,
    )
    train(task, data, int(training["epochs"]), accelerator="cpu", verbose=False)
    return task.requires_grad_(False)


def _fit_package(
    method: Method, arguments: dict[str, Any], data: LDLDataModule, inputs: np.ndarray, seed: int
) -> Model:
    model = _find_class(method.class_path)(**arguments, **({method.seeded: seed} if method.seeded else {}))
    train = data.split.train
    is_sparse = method.sparse and np.count_nonzero(inputs) < SPARSE * inputs.size

    def passed(rows: np.ndarray) -> Any:
        return csr_matrix(rows) if is_sparse else rows

    fitting = dict(method.fitting)
    if "group" in inspect.signature(model.fit).parameters and "group" in known_columns(data):
        fitting["group"] = data.columns["group"].numpy()[train]
    model.fit(passed(inputs[train]), data.columns["target"].numpy()[train], **fitting)

    def predict(inputs: torch.Tensor) -> torch.Tensor:
        output = np.maximum(np.asarray(model.predict(passed(inputs.numpy())), np.float64), FLOOR)
        return torch.from_numpy(output / output.sum(1, keepdims=True))

    return predict


def _find_class(class_path: str) -> Any:
    """Return a head or backbone of ldl by its name, or any class by its path. Raises ImportError, AttributeError."""
    for package in (ldl.heads, ldl.backbones):
        if hasattr(package, class_path):
            return getattr(package, class_path)
    module, _, name = class_path.rpartition(".")
    if not module:
        raise ImportError(f"class_path '{class_path}' is neither a head or backbone of ldl nor a path; name its module")
    return getattr(importlib.import_module(module), name)


def quickened(method: Method) -> Method:
    """Return the small form of a method, for any set: the first setting of its grid, few trees, rounds and epochs."""
    training = {**method.training, "epochs": LARGEST["epochs"]} if method.training else {}
    grid = {name: values[:1] for name, values in method.grid.items()}
    spec = _small({"class_path": method.class_path, "init_args": method.init_args})
    fitting = {name: LARGEST[name] for name in _defaults(method.class_path, "fit") if name in LARGEST}
    return replace(
        method, init_args=spec["init_args"], grid=grid, tuning={}, training=training, fitting=fitting, sets=None
    )


def _small(spec: Any) -> Any:
    if isinstance(spec, list):
        return [_small(part) for part in spec]
    if not isinstance(spec, dict) or "class_path" not in spec:
        return spec
    arguments = {name: _small(value) for name, value in spec.get("init_args", {}).items()}
    sizes = {**_defaults(spec["class_path"]), **arguments}
    arguments |= {name: min(sizes[name], most) for name, most in LARGEST.items() if isinstance(sizes.get(name), int)}
    return {**spec, "init_args": arguments}


def _defaults(class_path: str, function: str = "__init__") -> dict[str, Any]:
    try:
        known = inspect.signature(getattr(_find_class(class_path), function)).parameters
    except (ImportError, AttributeError):  # the error of its results names the class
        return {}
    return {name: parameter.default for name, parameter in known.items()}
