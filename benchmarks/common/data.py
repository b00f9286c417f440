"""Data sets below LDL_DATA, and heads on their folds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.data import LDLDataModule
from ldl.data.tables.reading import read_table
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.metrics import DISTRIBUTION_METRICS

FOLDS = 10
"""Folds of ``KFold(10, shuffle=True, random_state=0)``, the protocol of all tables of distributions."""

H = TypeVar("H", bound=FittedHead)


def data_file(name: str) -> Path:
    """Return the path of a file below LDL_DATA (default ``data``)."""
    return Path(os.environ.get("LDL_DATA") or "data") / name


def read_set(name: str) -> tuple[Tensor, Tensor]:
    """Return features (N, F) and distributions (N, C) of LDL_DATA/ldl/NAME.mat, float32. Raises LDLError."""
    table = read_table(data_file(f"ldl/{name}.mat"))
    features, target = (np.ascontiguousarray(array, np.float32) for array in (table.features, table.target))
    return torch.from_numpy(features), torch.from_numpy(target)


def numbered(count: int) -> LabelSpace:
    """Return a nominal label space of ``count`` labels."""
    return LabelSpace.nominal([str(label) for label in range(count)])


def fit_head(head: H, features: Tensor, target: Tensor) -> H:
    """Build a head for features (N, F) and distributions (N, C) of nominal labels, and fit it on them."""
    head.build(features.shape[1], numbered(target.shape[1]))
    head.fit(Rows(features, target), Collective())
    return head


def fit_rows(head: H, data: LDLDataModule, features: Tensor, rows: np.ndarray) -> H:
    """Build a head for ``features`` (size, ..., F) of all instances of ``data``, and fit it on some rows."""
    index = torch.from_numpy(rows)
    head.build(features.shape[-1], data.labels)
    known = known_columns(data)
    columns = {name: data.columns[name] for name in ("value", "group", "weight") if name in known}
    head.fit(Rows(features, data.columns["target"], **columns)[index], Collective())
    return head


def known_columns(data: LDLDataModule) -> set[str]:
    """Return the columns that training may use. Groups are among them only if folds keep groups apart."""
    return data.columns.keys() - ({"group"} if data.leak else set())


def inputs_of(data: LDLDataModule) -> Tensor:
    """Return the inputs of all instances, as evaluation in the selected fold uses them, (size, ...)."""
    # A loader draws a random number, which must not change later draws.
    with torch.random.fork_rng(devices=[]):
        return torch.cat([batch["input"] for batch in data.whole_dataloader()])


def mean_metrics(
    predicted: Tensor, true: Tensor, metrics: Iterable[str] = tuple(DISTRIBUTION_METRICS)
) -> dict[str, float]:
    """Return the mean of each metric over the rows of distributions (n, C), in double precision."""
    pair = predicted.double(), true.double()
    functions = {name: DISTRIBUTION_METRICS[name].function for name in metrics}
    return {name: float(function(*pair).mean()) for name, function in functions.items() if function is not None}
