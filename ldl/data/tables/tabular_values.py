"""Features and values from a file, with groups such as persons where they are known."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.collective import process_rank
from ldl.data.column import Column, Made
from ldl.data.loaded import Loaded
from ldl.data.row_file import RowFile
from ldl.data.tables.grouped import GroupedRows, GroupProtocol
from ldl.data.tables.label_grid import LabelGrid, choose_grid
from ldl.data.tables.values import ValueTable, read_values
from ldl.errors import LDLError
from ldl.labels import Encoder, LabelSpace
from ldl.options import buffer, option, options
from ldl.protocols import Fold, kfold, leave_one_group_out, stratified_kfold, with_validation


@options
class TabularValues(GroupedRows):
    """Features and a value a row from a table, around which the label distribution is laid.

    The table is a .mat, .npz or .csv file, Parquet, or a folder of .npy files.

    Protocols: ``group_exclusive`` (``folds`` folds of whole groups with the same mix of values, of rows where there are
    no groups); ``leave_one_group_out`` (a fold a group); ``random_kfold`` (rows at random, which leaks groups).
    ``persons`` is ``group_exclusive`` where there are groups, ``shuffled`` is ``random_kfold``. Validation takes whole
    groups.

    Labels that nobody chose are laid over the values of the whole file, so that they are the same in every fold
    (:mod:`ldl.data.tables.label_grid`), and one line says which; a checkpoint is tested with its own.

    Args:
        feature_key: Name of the features in a .mat or .npz file; None tries the usual ones.
        value_key: Name of the values, a key or a column of a .csv; None tries ``value``, ``age`` and such.
        protocol: How training and test rows are told apart.
        low: Lowest label; None takes the lowest value, rounded down to a multiple of ``step``.
        high: Highest label, likewise.
        step: Distance between labels; None takes that of whole numbers, or makes 40 to 100 labels.
        unit: Unit of the values.
        sigma: Standard deviation of the label distributions, in the unit of the values; None takes two steps, or one
            where there are fewer than 20 labels.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.

    Attributes:
        grid: The labels and the deviation, as given or chosen, after ``setup``.
    """

    grid: LabelGrid = buffer()

    feature_key: str | None = None
    value_key: str | None = None
    protocol: GroupProtocol = "group_exclusive"
    low: float | None = None
    high: float | None = None
    step: float | None = option(default=None, above=0, null="one from the values")
    unit: str = ""
    sigma: float | None = option(default=None, above=0, null="one from the step")
    encoder: Encoder = "gaussian"

    _trained = None  # type: LabelSpace | None

    def read(self) -> ValueTable:
        """The table. Raises LDLError."""
        keep = self.missing == "keep"
        return read_values(self.file, self.feature_key, self.value_key, self.group_key, keep, self.storage)

    def load(self) -> Loaded:
        """Read and check the file. Raises LDLError."""
        table = self.read()
        self.features, self.feature_names = table.features, table.columns
        self.grid = self._choose(table.values)
        labels = self.grid.labels(self.unit) if self._trained is None else self._trained
        self._check_inside(table.values, labels)
        groups = self.settle(table.groups, needed=self.protocol in ("persons", "leave_one_group_out"))
        encode = partial(_encode, labels, self.grid.sigma, self.encoder)
        large = isinstance(table.features, RowFile)
        target: Column = Made(table.values, encode) if large else encode(table.values)
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
            width = 5 * self.grid.step
            parts = stratified_kfold(self.values, self.folds, self.fold, self.fold_seed, self.groups, width)
        return with_validation(*parts, self.val_fraction, self.fold_seed, self.fold, self.groups)

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take the labels of a trained task, where none are given."""
        if labels.kind == "ordinal" and len(labels) > 1 and self.low is None and self.high is None:
            step = labels.axes[0][1] - labels.axes[0][0]
            if self.step is None or abs(self.step - step) < 1e-6 * step:
                self._trained = labels

    def _choose(self, values: np.ndarray) -> LabelGrid:
        if self._trained is not None:
            axis = self._trained.axes[0]
            return choose_grid(values, axis[0], axis[-1], self.step or axis[1] - axis[0], self.sigma)
        grid = choose_grid(values, self.low, self.high, self.step, self.sigma)
        chosen = [name for name in ("step", "sigma") if getattr(self, name) is None]
        if process_rank() == 0 and chosen:
            names = " and ".join(f"data.{name}" for name in chosen)
            print(f"labels of {self.path}: {grid}; {names} chosen from the file's values", flush=True)
        if process_rank() == 0 and grid.sigma > grid.high - grid.low > 0:
            print(
                f"data.sigma {grid.sigma:g} is wider than the labels {grid.low:g} to {grid.high:g}: all rows get "
                "nearly the same distribution; lower it, or leave it out",
                flush=True,
            )
        return grid

    def _check_inside(self, values: np.ndarray, labels: LabelSpace) -> None:
        low, high = labels.axes[0][0], labels.axes[0][-1]
        # float32 is what targets are laid in.
        if len(outside := np.flatnonzero(~((np.float32(values) >= low) & (np.float32(values) <= high)))):
            row = outside[0]
            raise LDLError(
                f"{self.path}: row {row} has value {values[row]:g}, outside the labels {low:g}..{high:g} in steps "
                f"of {self.grid.step:g} ({len(outside)} such rows); widen data.low and data.high, or correct it"
            )


def _encode(
    labels: LabelSpace, sigma: float, encoder: Encoder, values: np.ndarray, numbers: np.ndarray | None = None
) -> Tensor:
    return labels.encode(torch.tensor(values, dtype=torch.float32), sigma, encoder)
