"""Fits any method of the tabular benchmark: heads of ldl, and peers with ``fit`` and ``predict``."""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from scipy.sparse import csr_matrix

import ldl.heads
from benchmarks.common.folds import fit_rows, inputs_of, known_columns
from ldl.backbones.base import Identity
from ldl.data import LDLDataModule
from ldl.data.tables.scaling import Scaling
from ldl.estimator.training import train
from ldl.head import FittedHead, Head
from ldl.schedule import WarmupCosine
from ldl.task import Task

os.environ.setdefault("KERAS_BACKEND", "torch")  # python-ldl is built on Keras, which else wants TensorFlow

Model = Callable[[torch.Tensor], torch.Tensor]

SPARSE = 0.1
"""Share of numbers other than zero below which a peer that takes sparse rows gets them."""
FLOOR = 1e-12
"""Least probability of peers that predict no distribution, before they are normalised."""


@dataclass(frozen=True)
class Method:
    """One method, as the configuration has it.

    Attributes:
        name: Name in the tables.
        class_path: A head of ldl by name, or the path of any class with ``fit`` and ``predict``.
        init_args: Its arguments.
        grid: Values of arguments to choose from on validation rows.
        tuning: Arguments while choosing, where the final ones would take long: fewer trees.
        training: ``epochs``, ``batch_size``, ``lr``, ``weight_decay`` of heads that are trained by gradient.
        scaling: Of the features, see ``TabularLDL``.
        seeded: Name of the argument that takes the seed, of peers that have one.
        sparse: Whether a peer takes sparse rows, in which it finds the same in less time.
        sets: The sets whose features it is meant for; None is all.
        fitting: Arguments of a peer's ``fit``; of quick methods alone, so that it is no part of what cells depend on.
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
        """Whether it is a head of ldl, and no peer."""
        return hasattr(ldl.heads, self.class_path)

    def is_for(self, name: str) -> bool:
        """Whether it is meant for a set."""
        return self.sets is None or name in self.sets

    def settings(self) -> list[dict[str, Any]]:
        """All points of the grid."""
        return [dict(zip(self.grid, values)) for values in itertools.product(*self.grid.values())]


def predict(method: Method, setting: dict[str, Any], data: LDLDataModule, rows: np.ndarray, seed: int) -> torch.Tensor:
    """Fit, see ``fit``, and predict the distributions of ``rows``, (n, C)."""
    return fit(method, setting, data, seed)(inputs_of(data)[rows])


def fit(method: Method, setting: dict[str, Any], data: LDLDataModule, seed: int) -> Model:
    """Fit on the training rows of ``data``, without its validation rows; maps inputs (n, F) to distributions (n, C).

    Args:
        method: The method.
        setting: Arguments that replace those of the method; ``scaling`` is the data's.
        data: Set up, with the fold to train on.
        seed: Of everything random.

    Returns:
        The head, the task around a head that learns by gradient, or a function of a peer's.
    """
    arguments = {**method.init_args, **setting}
    pl.seed_everything(seed, workers=True, verbose=False)
    inputs = inputs_of(data)
    if not method.is_head:
        return _fit_peer(method, arguments, data, inputs.numpy(), seed)
    head = make_head({"class_path": method.class_path, "init_args": arguments})
    if isinstance(head, FittedHead):
        return fit_rows(head, data, inputs, data.split.train)
    return _train(head, method.training, data)


def make_head(spec: Any) -> Any:
    """The head of a specification with short class names; heads in it, alone or in lists, are made, too."""
    if isinstance(spec, list):
        return [make_head(part) for part in spec]
    if not isinstance(spec, dict) or "class_path" not in spec:
        return spec
    arguments = {name: make_head(value) for name, value in spec.get("init_args", {}).items()}
    return getattr(ldl.heads, spec["class_path"])(**arguments)


def find_class(class_path: str) -> Any:
    """A head of ldl by its name, or any class by its path. Raises ImportError, AttributeError."""
    if hasattr(ldl.heads, class_path):
        return getattr(ldl.heads, class_path)
    module, _, name = class_path.rpartition(".")
    return getattr(importlib.import_module(module), name)


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


def _fit_peer(method: Method, arguments: dict[str, Any], data: LDLDataModule, inputs: np.ndarray, seed: int) -> Model:
    model = find_class(method.class_path)(**arguments, **({method.seeded: seed} if method.seeded else {}))
    train = data.split.train
    is_sparse = method.sparse and np.count_nonzero(inputs) < SPARSE * inputs.size

    def handed(rows: np.ndarray) -> Any:
        return csr_matrix(rows) if is_sparse else rows

    fitting = dict(method.fitting)
    if "group" in inspect.signature(model.fit).parameters and "group" in known_columns(data):
        fitting["group"] = data.columns["group"].numpy()[train]
    model.fit(handed(inputs[train]), data.columns["target"].numpy()[train], **fitting)

    def predict(inputs: torch.Tensor) -> torch.Tensor:
        output = np.maximum(np.asarray(model.predict(handed(inputs.numpy())), np.float64), FLOOR)
        return torch.from_numpy(output / output.sum(1, keepdims=True))

    return predict
