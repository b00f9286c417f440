"""Features and label distributions from a file, with groups such as subjects if they are known."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.annotations import Annotations
from ldl.annotations.votes import spellings
from ldl.data.annotated import Annotated
from ldl.data.base import Loaded
from ldl.data.names import label_places, matching
from ldl.data.storage import BatchColumn, LazyColumn, RowFile
from ldl.data.tables.checks import divided
from ldl.data.tables.column_roles import ColumnChoice
from ldl.data.tables.label_copies import label_copies
from ldl.data.tables.module import GroupedRows, GroupProtocol
from ldl.data.tables.reading import LabelledTable
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.tables.entries import is_frame


@options
class TabularLDL(Annotated, GroupedRows):
    """Features and label distributions, or votes, from a .mat, .npz, .csv or Parquet file, or a folder of .npy files.

    Every row is checked: numbers are finite, mass is not negative, and sums are 1, unless the labels are votes. The
    subjects of SJAFFE and SBU_3DFE are known, although their files do not name them.

    Columns of a .csv or Parquet file may be numbers, text and dates, with gaps (``ldl.data.tables.columns``). Labels
    are votes if an option describes votes, if columns ``label:NAME`` hold counts, or if there are no such columns, but
    columns of an item and a label with one row a vote. The rows of an item that repeats stay in one part of a split.

    Protocols: ``published`` (the column ``split``); ``group_exclusive`` (``folds`` folds of whole groups) and
    ``leave_one_group_out`` (one fold per group), for tables with groups; ``random_kfold`` (random rows, which leaks
    groups). ``persons`` is a synonym of ``group_exclusive``, and ``shuffled`` of ``random_kfold``.

    Args:
        feature_key: Name of the features in a .mat or .npz file; None takes the only usual one.
        target_key: Name of the distributions, likewise.
        normalize: Divide distributions by their sums instead of requiring sums of 1.
        protocol: Evaluation protocol; None is ``published`` if the table names the sets of a split, else
            ``group_exclusive`` if groups are known, else ``random_kfold``.
        label_names: Names of the labels; None takes the file's, or their numbers. Named columns are put in this order.
        label_values: Rising values of the labels, which make them ordinal and add MAE and similar metrics. They match
            the names of the columns, or ``label_names`` or ``label_order`` one by one.
        label_unit: Unit of ``label_values``.

    Examples:
        >>> import pandas as pd
        >>> from ldl.data import TabularLDL
        >>> table = pd.DataFrame({"size": range(20), "label:no": range(20), "label:yes": range(20, 0, -1)})
        >>> table.to_csv("votes.csv", index=False)
        >>> data = TabularLDL("votes.csv", folds=2)
        >>> data.setup()
        taken from votes.csv: votes (counts layout, 20 items, 2 nominal labels, 20 votes an item), 1 features 'size'
        >>> data.labels.names, data.columns["target"].shape
        (('no', 'yes'), torch.Size([20, 2]))
    """

    feature_key: str | None = option(default=None, role="feature")
    target_key: str | None = option(default=None, role="label")
    normalize: bool = option(default=False, role="label")
    protocol: GroupProtocol | None = option(default=None, role="fold")  # a name after load
    label_names: Sequence[str] | None = option(default=None, role="label")
    label_values: Sequence[float] | None = option(default=None, role="label")
    label_unit: str = option(default="", role="label")

    def load(self) -> Loaded:
        """Read and check the file. Raises LDLError."""
        table = self.reader(self.target_key, normalize=self.normalize).read(self.file)
        if is_frame(table.target):
            return self._load_votes(table)
        labels, positions = self._label_space(table.names, table.target.shape[1])
        table = self._without_labels(table, labels, table.target)
        self.note(table)
        subjects = None
        if isinstance(table.features, np.ndarray) and table.groups is None:
            subjects = known_subjects(table.features)
        groups = self._choose_groups(table, table.groups if subjects is None else subjects, subjects is not None)
        rows = table.target
        large = isinstance(rows, RowFile)
        target: BatchColumn = LazyColumn(rows, _target) if large else torch.tensor(rows, dtype=torch.float32)
        loaded = Loaded(labels, {"target": target}, groups=groups, names=table.row_names)
        return loaded.arranged(labels, positions)

    @property
    def selection(self) -> ColumnChoice:
        """The user's options of columns."""
        return replace(
            super().selection,
            item=self.item_column,
            votes=self.vote_columns,
            annotated=self.describes_votes or self.describes_labels or self.votes is not None,
            find_apart=self.votes_apart,
            export=self._vote_options(self.item_column),
        )

    def _load_votes(self, table: LabelledTable) -> Loaded:
        """Return the rows of a table that have votes. Raises LDLError."""
        votes = table.votes
        item = votes.item if votes is not None and votes.layout == "long" and table.items is not None else None
        keys: Any = [] if table.items is None else table.items
        annotations, rows = self.annotate(table.target, keys, str(self.file), item, columns=votes, apart=table.apart)
        self._check_sums(annotations, rows)
        if len(rows) < len(table.features):
            if isinstance(table.features, RowFile):
                raise LDLError(
                    f"{self.file}: {len(table.features) - len(rows)} rows have no vote, and the table stays on disk; "
                    "remove them, or read it into memory with a larger --data.in_memory"
                )
            table = table.take(rows)
        table = self._with_groups(table, annotations)
        groups = table.groups
        if groups is None and self.group_key is not None and self.groups_needed:
            raise LDLError(
                f"neither {self.file} nor {self.votes} has a column {self.group_key!r}; correct data.group_key"
            )
        table = self._without_labels(
            table, annotations.labels, annotations.shares, annotations.votes if annotations.counted else None
        )
        unused = None if table.apart is None or table.sets is not None else table.apart.split
        beside = "" if unused is None else f", not {unused!r} of {self.votes}: the table of features names the split"
        self.note(table, f"votes ({self.describe_votes(annotations)}){beside}")
        labels, positions = replace(annotations.labels, unit=self.label_unit), list(range(len(annotations.labels)))
        if self.label_names is not None or self.label_values is not None:
            labels, positions = self._label_space(
                [str(name) for name in annotations.labels.names], len(annotations.labels)
            )
        columns = {"target": torch.tensor(annotations.shares, dtype=torch.float32)}
        if annotations.counted:
            columns["votes"] = torch.tensor(annotations.votes, dtype=torch.float32)
        groups = self._choose_groups(table, groups)
        self.annotations = annotations.arranged(labels, positions)
        return Loaded(labels, columns, groups=groups, names=table.row_names).arranged(labels, positions)

    def _with_groups(self, table: LabelledTable, annotations: Annotations) -> LabelledTable:
        """Return a table with the groups of its file of votes. Raises LDLError if both files name others."""
        if table.apart is None or annotations.groups is None:
            return table
        name = str(table.apart.group)
        if table.groups is None:
            return replace(table, groups=annotations.groups, keys={**table.keys, "group_key": name})
        differs = np.flatnonzero(spellings(table.groups) != spellings(annotations.groups))
        if name == table.keys["group_key"] and len(differs):
            raise LDLError(
                f"{self.file} and {self.votes} name different groups in column {name!r} for {len(differs)} items, the "
                f"first is {annotations.items[differs[0]]!r}; correct one, or rename the column"
            )
        return table

    def _without_labels(
        self, table: LabelledTable, labels: LabelSpace, target: Any, votes: np.ndarray | None = None
    ) -> LabelledTable:
        """Return a table without the columns that repeat its labels, unless an option names them."""
        if table.columns is None or isinstance(table.features, RowFile) or isinstance(target, RowFile):
            return table
        copies = label_copies(table.features, table.columns, labels, target, self.selection.explicit, votes)
        kept = [position for position, name in enumerate(table.columns) if name not in copies]
        if not copies or not kept:
            return table
        features = table.features.iloc[:, kept] if is_frame(table.features) else table.features[:, kept]
        columns = [table.columns[position] for position in kept]
        return replace(table, features=features, columns=columns, left_out=[*table.left_out, *copies])

    def _check_sums(self, annotations: Annotations, rows: np.ndarray) -> None:
        """Raise LDLError for shares whose sum is not 1 if the number of votes is unknown."""
        off = np.flatnonzero(np.abs(annotations.votes - 1) > 1e-3)
        if len(off) and not (annotations.counted or self.normalize):
            raise LDLError(
                f"{self.file}: the labels of row {rows[off[0]]} sum to {annotations.votes[off[0]]:.6g}, not 1 "
                f"({len(off)} such rows); name the column with the number of votes with --data.votes_column, or pass "
                "--data.normalize true to divide rows by their sums"
            )

    def _choose_groups(
        self, table: LabelledTable, groups: np.ndarray | None, are_known: bool = False
    ) -> np.ndarray | None:
        """Choose the protocol if none is given, and return the groups, numbered from 0. Raises LDLError."""
        usual: GroupProtocol = "random_kfold" if groups is None else "persons" if are_known else "group_exclusive"
        return self.choose_protocol(table, groups, usual, ("persons", "group_exclusive", "leave_one_group_out"))

    def _label_space(self, names: list[str] | None, count: int) -> tuple[LabelSpace, list[int]]:
        """Return the labels, and the position of each label's column in the file."""
        for name, entries in (("label_names", self.label_names), ("label_values", self.label_values)):
            if entries is not None and len(entries) != count:
                raise LDLError(f"TabularLDL.{name} has {len(entries)} entries, but the file has {count} labels")
        positions, trained = list(range(count)), self.trained_labels
        named = None if self.label_names is None else LabelSpace.nominal(self.label_names)
        if self.label_values is not None:
            labels = LabelSpace.ordinal(self.label_values, self.label_unit)
            if self.label_order and names is not None and matching(names, labels) is None:
                named = LabelSpace.nominal(names)  # in the given order, so that they have values one by one
        elif named is None and names is None and trained is not None and len(trained) == count:
            labels = trained
        else:
            labels = named or LabelSpace.nominal(names or [str(number) for number in positions])
        if names is not None:
            change = "correct" if named else "give"
            fix = f"name the columns by them, or {change} data.label_names in their order"
            positions = label_places(names, named or labels, str(self.file), fix)
        return labels, positions


def _target(rows: np.ndarray, numbers: np.ndarray) -> Tensor:
    return torch.tensor(divided(rows), dtype=torch.float32)


KNOWN_TABLES = {
    "c8f823cca28fc94f": ("SJAFFE.mat", (22, 23, 22, 20, 20, 21, 21, 22, 21, 21)),
    "202cd5461a8b2ac5": ("SBU_3DFE.mat", (25,) * 100),
}
"""Public tables that are sorted by subject, by the :func:`checksum` of their features: name, rows of each subject.

BU-3DFE has 25 images of each of 100 subjects. In SJAFFE, the borders between subjects are those that separate the
features best (``tests/data/tables/tabular/test_persons.py``); the counts are JAFFE's, in another order.
"""


def known_subjects(features: np.ndarray) -> np.ndarray | None:
    """Return the subject of every row, (N,) from 1, if these are the features of a known table; else None."""
    if not any(sum(rows) == len(features) for _, rows in KNOWN_TABLES.values()):
        return None
    _, rows = KNOWN_TABLES.get(checksum(features), (None, ()))
    return np.repeat(np.arange(1, len(rows) + 1), rows) if rows else None


def checksum(features: np.ndarray) -> str:
    """Return the start of the SHA-256 of a table (N, F), equal for files that hold the same numbers as float64."""
    numbers = np.ascontiguousarray(features, dtype="<f8")
    return hashlib.sha256(repr(numbers.shape).encode() + numbers.tobytes()).hexdigest()[:16]
