"""Features and values from a file, encoded as label distributions on a grid of labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.collective import process_rank
from ldl.data.base import LDLDataModule, Loaded
from ldl.data.storage import BatchColumn, LazyColumn, RowFile
from ldl.data.tables.module import GroupedRows, GroupProtocol
from ldl.data.tables.reading import LabelledTable
from ldl.errors import LDLError
from ldl.labels import Encoder, LabelSpace
from ldl.moved import old_names
from ldl.options import buffer, option, options
from ldl.protocols import Fold, kfold, stratified_kfold, with_validation

MOST_LABELS = 10_000
"""Largest number of labels: every row and every leaf has an entry per label."""
MOST_CHOSEN = 1000
"""Largest number of labels that is chosen automatically."""
OWN_STEPS = 200
"""Integers, and values with one to three decimals, keep their own step up to this many steps."""


@dataclass(frozen=True)
class LabelGrid:
    """Labels ``low``, ``low + step``, ... up to ``high``, and the standard deviation of the distributions.

    The grid spans the values of the whole file and is the same in every fold. It depends on the test rows only through
    their range and quartiles.
    """

    low: float
    high: float
    step: float
    sigma: float

    @property
    def count(self) -> int:
        """Number of labels."""
        return math.floor((self.high - self.low) / self.step + 1e-9) + 1

    def labels(self, unit: str = "") -> LabelSpace:
        """The label space."""
        return LabelSpace.ordinal([self.low + number * self.step for number in range(self.count)], unit)

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g} in steps of {self.step:g} ({self.count}), sigma {self.sigma:g}"


def choose_grid(
    values: np.ndarray,
    low: float | None = None,
    high: float | None = None,
    step: float | None = None,
    sigma: float | None = None,
) -> LabelGrid:
    """Return the grid for values (N,); None is chosen.

    - ``step``: the step of integers, or of values with one to three decimals, if it makes at most 200 labels; else 1, 2
      or 5 times a power of ten, so that there are 40 to 100 labels, or more if the middle half of the values would lie
      within fewer than ten.
    - ``sigma``: see :func:`choose_sigma`.
    - ``low`` and ``high``: the lowest and highest value, rounded outwards to a multiple of ``step``.

    Raises LDLError for more than 10,000 labels, or for more than 1,000 chosen ones.
    """
    first = float(values.min()) if low is None else low
    last = float(values.max()) if high is None else high
    if first > last:
        raise LDLError(f"data.low {first:g} is above data.high {last:g}; no label lies between them")
    slack = 0.0
    if step is None:
        # A multiple of the step may be off by rounding.
        step, slack = _step(values, last - first), 1e-9
        if (last - first) / step > MOST_CHOSEN:
            quarter, half = np.quantile(values, (0.25, 0.75))
            raise LDLError(
                f"labels reach from {first:g} to {last:g}, and half of the values lie within {quarter:g} to {half:g}: "
                f"to separate these takes more than {MOST_CHOSEN:,} labels; take the values' logarithm, correct "
                "the outliers, or set data.step and data.sigma"
            )
    if not (count := (last - first) / step) <= MOST_LABELS:
        raise LDLError(
            f"there would be {count:,.6g} labels, more than {MOST_LABELS:,}; widen data.step (null chooses it from the "
            "values), or bring data.low and data.high together"
        )
    low = math.floor(first / step + slack) * step if low is None else low
    high = math.ceil(last / step - slack) * step if high is None else high
    return LabelGrid(low, high, step, choose_sigma(step, high - low) if sigma is None else sigma)


def choose_sigma(step: float, span: float) -> float:
    """Return the standard deviation for labels of this step and span: two steps, or one for fewer than 20 labels."""
    return 2 * step if span / step >= 19 else step


def _step(values: np.ndarray, span: float) -> float:
    if not span > 0:
        return 1.0
    for decimals in range(4):
        unit = 10.0**-decimals
        # Values in float32 differ slightly from the numbers that were typed.
        if 1 - 1e-6 <= span / unit <= OWN_STEPS and np.abs(values / unit - np.round(values / unit)).max() < 1e-4:
            return unit
    step = _round_up(span / 100)
    quarter, half = np.quantile(values, (0.25, 0.75))
    if 0 < half - quarter < 10 * step:
        step = _round_up((half - quarter) / 25)
    return max(step, 1.0) if np.all(values == np.round(values)) else step


def _round_up(step: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= step * (1 - 1e-9)), 10 * power)


@options
class Valued(LDLDataModule):
    """Instances with one value each, which is encoded as a label distribution on a grid of labels.

    Labels that are not given span the values of the whole file, so that they are the same in every fold
    (:func:`choose_grid`), and a printed line describes them. A checkpoint is tested with its own labels.

    Args:
        low: Lowest label; None takes the lowest value, rounded down to a multiple of ``step``.
        high: Highest label, likewise.
        step: Distance between labels; None takes the step of integers, or makes 40 to 100 labels.
        unit: Unit of the values.
        sigma: Standard deviation of the label distributions, in the unit of the values; None takes two steps, or one
            for fewer than 20 labels. Near the first and last label it is smaller.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.

    Attributes:
        grid: The labels and the standard deviation, as given or chosen, after ``setup``.
    """

    grid: LabelGrid = buffer()

    low: float | None = option(default=None, role="label")
    high: float | None = option(default=None, role="label")
    step: float | None = option(default=None, above=0, null="one from the values", role="label")
    unit: str = option(default="", role="label")
    sigma: float | None = option(default=None, above=0, null="one from the step", role="label")
    encoder: Encoder = option(default="gaussian", role="label")

    _trained = None  # type: LabelSpace | None

    def choose_labels(self, values: np.ndarray, source: str) -> LabelSpace:
        """Choose or take over the labels of values (N,), and set ``grid``. Raises LDLError for a value outside."""
        self.grid = self._choose(values, source)
        labels = self.grid.labels(self.unit) if self._trained is None else self._trained
        self._check_inside(values, labels, source)
        return labels

    def encode_as(self, labels: LabelSpace) -> Callable[..., Tensor]:
        """Return the picklable function that encodes values (N,) as distributions (N, C)."""
        return partial(_encode, labels, self.grid.sigma, self.encoder)

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take over the labels of a trained task, unless other labels are given."""
        super().follow(labels, input_shape, preprocessing)
        if labels.kind == "ordinal" and len(labels) > 1 and self.low is None and self.high is None:
            step = labels.axes[0][1] - labels.axes[0][0]
            if self.step is None or abs(self.step - step) < 1e-6 * step:
                self._trained = labels

    def _choose(self, values: np.ndarray, source: str) -> LabelGrid:
        if self._trained is not None:
            axis = self._trained.axes[0]
            return choose_grid(values, axis[0], axis[-1], self.step or axis[1] - axis[0], self.sigma)
        grid = choose_grid(values, self.low, self.high, self.step, self.sigma)
        chosen = [name for name in ("step", "sigma") if getattr(self, name) is None]
        if process_rank() == 0 and chosen:
            names = " and ".join(f"data.{name}" for name in chosen)
            print(f"labels of {source}: {grid}; {names} chosen from the file's values", flush=True)
        return grid

    def _check_inside(self, values: np.ndarray, labels: LabelSpace, source: str) -> None:
        low, high = labels.axes[0][0], labels.axes[0][-1]
        # Targets are encoded in float32.
        if len(outside := np.flatnonzero(~((np.float32(values) >= low) & (np.float32(values) <= high)))):
            row = outside[0]
            raise LDLError(
                f"{source}: row {row} has value {values[row]:g}, outside the labels {low:g}..{high:g} in steps "
                f"of {self.grid.step:g} ({len(outside)} such rows); widen data.low and data.high, or correct it"
            )


@options
class TabularValues(Valued, GroupedRows):
    """Features and one value per row from a table; values are encoded as label distributions.

    The table is a .mat, .npz, .csv or Parquet file, or a folder of .npy files.

    Protocols: ``published`` (the column ``split``); ``group_exclusive`` (``folds`` folds of whole groups with the same
    mix of values, or of rows if there are no groups); ``leave_one_group_out`` (one fold per group); ``random_kfold``
    (random rows, which leaks groups).
    ``persons`` is ``group_exclusive`` and requires groups; ``shuffled`` is ``random_kfold``. Validation takes whole
    groups.

    Args:
        feature_key: Name of the features in a .mat or .npz file; None takes the only usual one.
        value_key: Name of the values, a key or a column of a .csv; None takes ``value``, ``age`` or another usual name.
        protocol: Evaluation protocol; None is ``published`` if the table names the sets of a split, else
            ``group_exclusive``.

    Examples:
        >>> import pandas as pd
        >>> from ldl.data import TabularValues
        >>> pd.DataFrame({"weight": range(20), "value": range(30, 50)}).to_csv("ages.csv", index=False)
        >>> data = TabularValues("ages.csv", unit="years", step=1, folds=2)
        >>> data.setup()
        taken from ages.csv: value 'value', 1 features 'weight'
        labels of ages.csv: 30 to 49 in steps of 1 (20), sigma 2; data.sigma chosen from the file's values
        >>> data.labels.unit, data.columns["target"].shape
        ('years', torch.Size([20, 20]))
    """

    feature_key: str | None = option(default=None, role="feature")
    value_key: str | None = option(default=None, role="label")
    protocol: GroupProtocol | None = option(default=None, role="fold")  # a name after load

    def read(self) -> LabelledTable:
        """Read the table. Raises LDLError."""
        return self.reader(self.value_key, values=True).read(self.file)

    def load(self) -> Loaded:
        """Read and check the file. Raises LDLError."""
        table = self.read()
        self.note(table)
        labels = self.choose_labels(table.target, self.path)
        needed = ("persons", "leave_one_group_out")
        groups = self.choose_protocol(table, table.groups, "group_exclusive", needed)
        encode = self.encode_as(labels)
        large = isinstance(table.features, RowFile)
        target: BatchColumn = LazyColumn(table.target, encode) if large else encode(table.target)
        return Loaded(labels, {"target": target}, table.target, groups, table.row_names)

    def cut_kfold(self) -> Fold:
        """Return the rows of one fold. Raises LDLError for a fold that the protocol does not have."""
        assert self.values is not None
        if self.rule == "random_kfold":
            drawn = kfold(self.size, self.folds, self.fold, self.fold_seed)
            rows = drawn.train, drawn.test
        else:
            width = 5 * self.grid.step
            rows = stratified_kfold(self.values, self.folds, self.fold, self.fold_seed, self.groups, width)
        return with_validation(*rows, self.val_fraction, self.fold_seed, self.fold, self.groups)


def _encode(
    labels: LabelSpace, sigma: float, encoder: Encoder, values: np.ndarray, numbers: np.ndarray | None = None
) -> Tensor:
    return labels.encode(torch.tensor(values, dtype=torch.float32), sigma, encoder)


__getattr__ = old_names(__name__)
