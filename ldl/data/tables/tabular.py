"""Features and label distributions from a file, with groups such as persons where they are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ldl.collective import process_rank
from ldl.data.column import Column, Made
from ldl.data.loaded import Loaded
from ldl.data.row_file import RowFile
from ldl.data.tables.checks import divided
from ldl.data.tables.distributions import read_table
from ldl.data.tables.grouped import GroupedRows, GroupProtocol
from ldl.data.tables.persons import known_persons, stranger
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import options
from ldl.protocols import Fold, kfold, leave_one_group_out, with_validation


@options
class TabularLDL(GroupedRows):
    """Features and label distributions from a .mat, .npz or .csv file, from Parquet, or a folder of .npy files.

    Every row is checked: numbers finite, mass not negative, sums 1. The persons of SJAFFE and SBU_3DFE are known,
    though their files do not name them (:mod:`ldl.data.tables.persons`).

    Protocols: ``group_exclusive`` (``folds`` folds of whole groups) and ``leave_one_group_out`` (a fold a group), for
    tables with groups; ``random_kfold`` (rows at random, which leaks groups). Where the groups are persons, the first
    is also called ``persons``, and the last ``shuffled``.

    Args:
        feature_key: Name of the features in a .mat or .npz file; None tries the usual ones.
        target_key: Name of the distributions, likewise.
        normalize: Divide rows of the distributions by their sums, instead of refusing sums other than 1.
        protocol: How training and test rows are told apart; None keeps groups apart where they are known, and else
            cuts rows at random.
        label_names: Names of the labels; None takes the file's, or their numbers.
        label_values: Rising values of the labels, which makes them ordinal and adds MAE and such.
        label_unit: Unit of ``label_values``.
    """

    feature_key: str | None = None
    target_key: str | None = None
    normalize: bool = False
    protocol: GroupProtocol | None = None  # type: ignore[assignment]  # a name after load
    label_names: Sequence[str] | None = None
    label_values: Sequence[float] | None = None
    label_unit: str = ""

    def load(self) -> Loaded:
        """Read and check the file. Raises LDLError."""
        keys = self.feature_key, self.target_key
        keep = self.missing == "keep"
        table = read_table(self.file, *keys, self.normalize, self.group_key, keep, self.storage)
        self.features, self.feature_names = table.features, table.columns
        labels = self._label_space(table.names, table.distributions.shape[1])
        small = isinstance(table.features, np.ndarray) and table.groups is None
        persons = known_persons(table.features) if small else None  # type: ignore[arg-type]
        groups = table.groups if persons is None else persons
        hint = stranger(self.file.name) if groups is None else None
        if self.protocol is None:
            self.protocol = "random_kfold" if groups is None else "group_exclusive" if persons is None else "persons"
            if hint and process_rank() == 0:
                print(hint, flush=True)
        groups = self.settle(groups, needed=self.rule != "random_kfold", hint=hint)
        rows = table.distributions
        target: Column = Made(rows, _target) if isinstance(rows, RowFile) else torch.tensor(rows, dtype=torch.float32)
        return Loaded(labels, {"target": target}, groups=groups)

    def cut(self) -> Fold:
        """The rows of one fold. Raises LDLError for a fold that the protocol does not have."""
        if self.rule == "leave_one_group_out":
            assert self.groups is not None
            parts = leave_one_group_out(self.groups, self.fold)
            return with_validation(*parts, self.val_fraction, self.fold_seed, self.fold, self.groups)
        groups = self.groups if self.rule == "group_exclusive" else None
        return kfold(self.size, self.folds, self.fold, self.fold_seed, self.val_fraction, groups)

    def _label_space(self, names: list[str] | None, count: int) -> LabelSpace:
        for name, given in (("label_names", self.label_names), ("label_values", self.label_values)):
            if given is not None and len(given) != count:
                raise LDLError(f"TabularLDL.{name} has {len(given)} entries, but the file has {count} labels")
        if self.label_values is not None:
            return LabelSpace.ordinal(self.label_values, self.label_unit)
        given = names if self.label_names is None else self.label_names
        return LabelSpace.nominal([str(number) for number in range(count)] if given is None else given)


def _target(rows: np.ndarray, numbers: np.ndarray) -> Tensor:
    return torch.tensor(divided(rows), dtype=torch.float32)
