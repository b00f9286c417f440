"""Features and values from a file, with groups such as persons where they are known."""

from __future__ import annotations

import math

import numpy as np
import torch

from ldl.data.loaded import Loaded
from ldl.data.tables.grouped import GroupedRows, GroupProtocol
from ldl.data.tables.values import ValueTable, read_values
from ldl.errors import LDLError
from ldl.labels import Encoder, LabelSpace, check_count
from ldl.options import option, options
from ldl.protocols import Fold, kfold, leave_one_group_out, stratified_kfold, with_validation


@options
class TabularValues(GroupedRows):
    """Features and a value a row from a .mat, .npz or .csv file; the label distribution is laid around the value.

    Protocols: ``group_exclusive`` (``folds`` folds of whole groups with the same mix of values, of rows where there are
    no groups); ``leave_one_group_out`` (a fold a group); ``random_kfold`` (rows at random, which leaks groups).
    ``persons`` is ``group_exclusive`` where there are groups, ``shuffled`` is ``random_kfold``. Validation takes whole
    groups.

    Args:
        feature_key: Name of the features in a .mat or .npz file; None tries the usual ones.
        value_key: Name of the values, a key or a column of a .csv; None tries ``value``, ``age`` and such.
        protocol: How training and test rows are told apart.
        low: Lowest label; None takes the lowest value, rounded down to a multiple of ``step``.
        high: Highest label, likewise.
        step: Distance between labels.
        unit: Unit of the values.
        sigma: Standard deviation of the label distributions, in the unit of the values.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.
    """

    feature_key: str | None = None
    value_key: str | None = None
    protocol: GroupProtocol = "group_exclusive"
    low: float | None = None
    high: float | None = None
    step: float = option(default=1.0, above=0)
    unit: str = ""
    sigma: float = option(default=2.0, above=0)
    encoder: Encoder = "gaussian"

    def read(self) -> ValueTable:
        """The table. Raises LDLError."""
        return read_values(self.file, self.feature_key, self.value_key, self.group_key, self.missing == "keep")

    def load(self) -> Loaded:
        """Read and check the file. Raises LDLError."""
        table = self.read()
        self.features, self.feature_names = table.features, table.columns
        labels = self._label_space(table.values)
        groups = self.settle(table.groups, needed=self.protocol in ("persons", "leave_one_group_out"))
        target = labels.encode(torch.tensor(table.values, dtype=torch.float32), self.sigma, self.encoder)
        return Loaded(labels, {"target": target}, table.values, groups)

    def cut(self) -> Fold:
        """The rows of one fold. Raises LDLError for a fold that the protocol does not have."""
        assert self.values is not None
        if self.rule == "random_kfold":
            drawn = kfold(self.size, self.folds, self.fold, self.fold_seed)
            parts = drawn.train, drawn.test
        elif self.rule == "leave_one_group_out":
            assert self.groups is not None
            parts = leave_one_group_out(self.groups, self.fold)
        else:
            width = 5 * self.step
            parts = stratified_kfold(self.values, self.folds, self.fold, self.fold_seed, self.groups, width)
        return with_validation(*parts, self.val_fraction, self.fold_seed, self.fold, self.groups)

    def _label_space(self, values: np.ndarray) -> LabelSpace:
        low = float(values.min()) if self.low is None else self.low
        high = float(values.max()) if self.high is None else self.high
        check_count((high - low) / self.step, "widen data.step, or bring data.low and data.high together")
        low = np.floor(low / self.step) * self.step if self.low is None else low
        high = np.ceil(high / self.step) * self.step if self.high is None else high
        count = math.floor((high - low) / self.step + 1e-9) + 1
        if len(outside := np.flatnonzero(~((values >= low) & (values <= low + (count - 1) * self.step)))):
            row = outside[0]
            raise LDLError(
                f"{self.path}: row {row} has value {values[row]:g}, outside the labels {low:g}..{high:g} in steps "
                f"of {self.step:g} ({len(outside)} such rows); widen data.low and data.high, or correct it"
            )
        return LabelSpace.ordinal([low + number * self.step for number in range(count)], self.unit)
