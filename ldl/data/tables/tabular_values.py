"""Features and values from a file, with groups such as persons where they are known."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ldl.data.tables.scaled import ScaledTable
from ldl.data.tables.scaling import Scaling
from ldl.data.tables.values import ValueTable, read_values
from ldl.errors import LDLError
from ldl.labels import Encoder, LabelSpace
from ldl.protocols import Fold, kfold, leave_one_group_out, stratified_kfold, with_validation

ValueProtocol = Literal["group_exclusive", "leave_one_group_out", "random_kfold"]


class TabularValues(ScaledTable):
    """Features and a value a row from a .mat, .npz or .csv file; the label distribution is laid around the value.

    Protocols: ``group_exclusive`` (``folds`` folds of whole groups with the same mix of values, of rows where there are
    no groups); ``leave_one_group_out`` (a fold a group); ``random_kfold`` (rows at random, which leaks groups).
    Validation takes whole groups.

    Args:
        path: The file: as it stands, or relative to the data folder.
        feature_key: Name of the features in a .mat or .npz file; None tries the usual ones.
        value_key: Name of the values, a key or a column of a .csv; None tries ``value``, ``age`` and such.
        group_key: Name of the groups, likewise; None takes ``group`` or ``person`` where there is one.
        protocol: How training and test rows are told apart.
        low: Lowest label; None takes the lowest value, rounded down to a multiple of ``step``.
        high: Highest label, likewise.
        step: Distance between labels.
        unit: Unit of the values.
        sigma: Standard deviation of the label distributions, in the unit of the values.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.
        scaling: How features are scaled, see ``TabularLDL``.
        clip: Scaled features are cut off at plus and minus this; None leaves them.
        download: Download a public set of this name (``ldl.data.tables.download.SETS``) where the file is not there.
        batch_size: Rows of a global batch, over all processes.
        num_workers: Loader processes, per training process.
        root: Folder of the data; None takes the environment's ``LDL_DATA``, or ``data``.
        folds: Number of folds, for protocols that leave it open.
        fold: The fold that is tested, from 0.
        fold_seed: Seed of the folds.
        val_fraction: Share of the training groups, or rows, that is kept for validation; 0 trains on all.
    """

    def __init__(
        self,
        path: str,
        feature_key: str | None = None,
        value_key: str | None = None,
        group_key: str | None = None,
        protocol: ValueProtocol = "group_exclusive",
        low: float | None = None,
        high: float | None = None,
        step: float = 1.0,
        unit: str = "",
        sigma: float = 2.0,
        encoder: Encoder = "gaussian",
        scaling: Scaling = "standard",
        clip: float | None = None,
        download: bool = False,
        batch_size: int = 64,
        num_workers: int = 0,
        root: str | None = None,
        folds: int = 10,
        fold: int = 0,
        fold_seed: int = 0,
        val_fraction: float = 0.1,
    ) -> None:
        super().__init__(batch_size, num_workers, root, folds, fold, fold_seed, val_fraction)
        self.path = path
        self.feature_key = feature_key
        self.value_key = value_key
        self.group_key = group_key
        self.protocol: str = protocol
        self.low = low
        self.high = high
        self.step = step
        self.unit = unit
        self.sigma = sigma
        self.encoder: Encoder = encoder
        self.scaling = scaling
        self.clip = clip
        self.download = download
        self.leaky = protocol == "random_kfold"

    def read(self) -> ValueTable:
        """The table. Raises LDLError."""
        return read_values(self.locate(), self.feature_key, self.value_key, self.group_key)

    def load(self) -> None:
        """Read and check the file. Raises LDLError."""
        if self.protocol not in get_args(ValueProtocol):
            raise LDLError(f"data.protocol {self.protocol!r} must be one of {', '.join(get_args(ValueProtocol))}")
        table = self.read()
        self.features, self.values = table.features, table.values
        self.size, width = table.features.shape
        self.input_shape = (width,)
        self.labels = self._label_space()
        value = torch.tensor(self.values, dtype=torch.float32)
        self.targets = self.labels.encode(value, self.sigma, self.encoder)
        self._columns = {"target": self.targets, "value": value}
        self.groups = None
        if table.groups is not None:
            self.groups = np.unique(table.groups, return_inverse=True)[1]
            self._columns["group"] = torch.from_numpy(self.groups)
        elif self.protocol == "leave_one_group_out":
            raise LDLError(f"{self.path} has no groups to leave out; name them with data.group_key, or set protocol")
        else:
            self.leaky = None

    def cut(self) -> Fold:
        """The rows of one fold. Raises LDLError for a fold that the protocol does not have."""
        assert self.values is not None
        if self.protocol == "random_kfold":
            drawn = kfold(self.size, self.folds, self.fold, self.fold_seed)
            parts = drawn.train, drawn.test
        elif self.protocol == "leave_one_group_out":
            assert self.groups is not None
            parts = leave_one_group_out(self.groups, self.fold)
        else:
            width = 5 * self.step
            parts = stratified_kfold(self.values, self.folds, self.fold, self.fold_seed, self.groups, width)
        return with_validation(*parts, self.val_fraction, self.fold_seed, self.fold, self.groups)

    @property
    def num_folds(self) -> int:
        """Number of folds of the protocol, after ``setup``."""
        if self.protocol == "leave_one_group_out" and self.groups is not None:
            return len(np.unique(self.groups))
        return self.folds

    def columns(self) -> dict[str, Tensor]:
        """Target, value and, where groups are known, group of all rows."""
        return self._columns

    def _label_space(self) -> LabelSpace:
        if not self.step > 0:
            raise LDLError(f"data.step {self.step!r} must be above 0")
        assert self.values is not None
        low = math.floor(self.values.min() / self.step) * self.step if self.low is None else self.low
        high = math.ceil(self.values.max() / self.step) * self.step if self.high is None else self.high
        count = math.floor((high - low) / self.step + 1e-9) + 1
        outside = np.flatnonzero(~((self.values >= low) & (self.values <= low + (count - 1) * self.step)))
        if len(outside):
            row = outside[0]
            raise LDLError(
                f"{self.path}: row {row} has value {self.values[row]:g}, outside the labels {low:g}..{high:g} in steps "
                f"of {self.step:g} ({len(outside)} such rows); widen data.low and data.high, or correct it"
            )
        return LabelSpace.ordinal([low + number * self.step for number in range(count)], self.unit)
