"""Data sets below LDL_DATA, and heads on their folds."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.data import LDLDataModule
from ldl.data.sources import SOURCES, absent
from ldl.data.tables.distributions import read_table
from ldl.errors import LDLError
from ldl.head import FittedHead, wanted_columns
from ldl.labels import LabelSpace
from ldl.metrics import DISTRIBUTION_METRICS
from ldl.protocols import kfold

FOLDS = 10
"""Of ``KFold(10, shuffle=True, random_state=0)``, the protocol of all tables of distributions."""

H = TypeVar("H", bound=FittedHead)


def data_file(name: str) -> Path:
    """A file below LDL_DATA (default ``data``). Raises LDLError where it is missing."""
    root = Path(os.environ.get("LDL_DATA") or "data")
    if not (root / name).is_file():
        if Path(name).name in SOURCES:
            raise absent(Path(name).name, root / name, root, "the folder that has it")
        raise LDLError(f"no data file {(root / name).absolute()}: let LDL_DATA name the folder that has {name}")
    return root / name


def read_set(name: str) -> tuple[Tensor, Tensor]:
    """Features (N, F) and distributions (N, C) of LDL_DATA/ldl/NAME.mat, float32. Raises LDLError."""
    table = read_table(data_file(f"ldl/{name}.mat"))
    features, target = (np.ascontiguousarray(array, np.float32) for array in (table.features, table.distributions))
    return torch.from_numpy(features), torch.from_numpy(target)


def numbered(count: int) -> LabelSpace:
    """Nominal labels that are called by their numbers."""
    return LabelSpace.nominal([str(label) for label in range(count)])


def fit_head(head: H, features: Tensor, target: Tensor) -> H:
    """The head, built for features (N, F) and distributions (N, C) of nominal labels and fitted on them."""
    head.build(features.shape[1], numbered(target.shape[1]))
    head.fit(features, target, Collective())
    return head


def mean_measures(
    predicted: Tensor, true: Tensor, measures: Iterable[str] = tuple(DISTRIBUTION_METRICS)
) -> dict[str, float]:
    """Each measure's mean over the rows of distributions (n, C), in double precision."""
    pair = predicted.double(), true.double()
    return {name: float(DISTRIBUTION_METRICS[name].function(*pair).mean()) for name in measures}


def score_folds(
    head: FittedHead | Callable[[int], FittedHead],
    features: Tensor,
    target: Tensor,
    measures: tuple[str, ...],
    folds: int = FOLDS,
    val_fraction: float = 0.0,
) -> np.ndarray:
    """Each measure's mean over the test rows of each fold, (folds, measures).

    Args:
        head: A head that is not built, of which every fold gets a copy; or what makes that of a fold from its number.
        features: (N, F).
        target: (N, C).
        measures: Names of measures between distributions.
        folds: How many of the ten.
        val_fraction: Share of the training rows that is set aside; where there is one, it is what is tested.
    """
    scores = []
    for fold in range(folds):
        split = kfold(len(target), FOLDS, fold, 0, val_fraction)
        rows = split.val if val_fraction else split.test
        own = copy.deepcopy(head) if isinstance(head, FittedHead) else head(fold)
        fitted = fit_head(own, features[split.train], target[split.train])
        scores.append(list(mean_measures(fitted(features[rows]), target[rows], measures).values()))
    return np.array(scores)


def inputs_of(data: LDLDataModule) -> Tensor:
    """The inputs of all instances, as evaluation sees them in the selected fold, (size, ...)."""
    # A loader draws a number, which is not to change what follows.
    with torch.random.fork_rng(devices=[]):
        return torch.cat([batch["input"] for batch in data.whole_dataloader()])


def known_columns(data: LDLDataModule) -> set[str]:
    """Names of the columns that training may use: groups only where folds keep them apart."""
    return data.columns.keys() - ({"group"} if data.leak else set())


def fit_rows(head: H, data: LDLDataModule, features: Tensor, rows: np.ndarray) -> H:
    """The head, built for ``features`` (size, ..., F) of all instances and fitted on some rows."""
    index = torch.from_numpy(rows)
    head.build(features.shape[-1], data.labels)
    known = known_columns(data)
    extra = {name: data.columns[name][index] if name in known else None for name in wanted_columns(head)}
    head.fit(features[index], data.columns["target"][index], Collective(), **extra)
    return head
