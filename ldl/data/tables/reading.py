"""Reading tables of features with distributions or values from .mat, .npz, .csv, .npy and Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ldl.annotations.columns import VoteColumns, matching_columns
from ldl.annotations.exports.direct import open_export
from ldl.annotations.exports.tool_files import RECORDS
from ldl.collective import process_rank
from ldl.data.names import (
    TARGET_KEYS,
    VALUE_KEYS,
    find_features,
    find_group,
    find_name,
    find_split,
    label_columns,
    split_sets,
)
from ldl.data.storage import USUAL, RowFile, Storage
from ldl.data.tables.arrays import open_arrays
from ldl.data.tables.checks import check_distributions, check_matrix
from ldl.data.tables.column_roles import ColumnChoice, find_roles, find_texts
from ldl.data.tables.columns import column_kind, is_plain, typed
from ldl.data.tables.item_rows import check_constant, first_rows, take_rows
from ldl.errors import LDLError, some
from ldl.labels import LABEL_PREFIX
from ldl.tables import CsvTable, Parquet, open_named
from ldl.tables.csv_table import parse_csv
from ldl.tables.entries import as_matrix, is_frame, to_names
from ldl.tables.roles import usual_columns
from ldl.validation.files import kind_of

OF_VALUES = "; one value a row is for TabularValues, with --data.value_key COLUMN"
OF_VOTES = "; for votes, name columns with data.label_columns, data.rater_columns, or data.vote_column"
NAMELESS = "which names no item; fill it in, or name another column with data.item_column"
Keys = dict[str, str | None]
"""Names in a file by the options that set them; None for an absent part."""


@dataclass(frozen=True)
class LabelledTable:
    """A table of features with one distribution or one value per row.

    If it stays on disk (``Storage``), features and distributions are those of the file: they are checked, but sums may
    differ slightly from 1.

    Attributes:
        features: (N, F), finite; or a typed frame (``ldl.data.tables.columns``) whose columns are not all numbers, or
            have gaps to fill.
        target: (N, C) distributions, non-negative, or (N,) values, finite float64; or a DataFrame with the columns of
            votes, which may be none.
        groups: (N,) groups of any type, or None.
        names: Names of the C labels, if the file has any.
        columns: Names of the features, if the file has any.
        keys: Names of the other parts.
        items: (N,) item of every row, as text, or None.
        sets: (N,) set of every row in a published split, ``train``, ``val`` or ``test``, or None.
        left_out: Columns that are no features because of their role or their name.
        votes: The columns of votes in ``target``; None if labels are no votes, or stand in another file.
        apart: The columns of votes in another file, or None.
    """

    features: Any
    target: Any
    groups: np.ndarray | None
    names: list[str] | None = None
    columns: list[str] | None = None
    keys: Keys = field(default_factory=dict)
    items: np.ndarray | None = None
    sets: np.ndarray | None = None
    left_out: Sequence[str] = ()
    votes: VoteColumns | None = None
    apart: VoteColumns | None = None

    @property
    def row_names(self) -> list[str] | None:
        """Name of each row in ``predictions.csv``, or None."""
        return None if self.items is None else list(map(str, self.items))

    def take(self, rows: np.ndarray) -> LabelledTable:
        """Return the table with some rows of its features, groups, items and sets."""
        columns = ("features", "groups", "items", "sets")
        taken = {name: getattr(self, name) for name in columns if getattr(self, name) is not None}
        return replace(self, **{name: take_rows(column, rows) for name, column in taken.items()})


@dataclass(frozen=True)
class TableReader:
    """Reads and checks a table; rows of large tables stay on disk.

    Exports of annotation tools in JSON, or a ZIP archive of them, are tables with one row a vote. ``.mat`` and ``.npz``
    files, and folders of .npy files, hold two matrices, each under the given name or the only
    usual one. In ``.csv`` and Parquet files the columns named ``label:NAME`` are the distribution, or one column is the
    value; further columns may name items, groups or sets of a split (:func:`find_roles`), and all others are features.
    A folder of Parquet files is one table.

    Attributes:
        feature_key: Name of the features; None takes the only usual one.
        target_key: Name of the distributions, or of the values, likewise.
        group_key: Name of the groups; None takes the only usual one, if any.
        values: Read one value per row instead of a distribution.
        normalize: Divide distributions by their sums instead of requiring sums of 1.
        missing: Accept missing features as NaN.
        storage: Place of the numbers of large tables.
        groups_needed: Whether a given ``group_key`` must be in the file.
        selection: Parts of a table with named columns, which then may hold text, dates and votes; None accepts numbers
            alone.
        fill: Whether gaps of named columns are filled later; gaps of other matrices are errors.
    """

    feature_key: str | None = None
    target_key: str | None = None
    group_key: str | None = None
    values: bool = False
    normalize: bool = False
    missing: bool = False
    storage: Storage = USUAL
    groups_needed: bool = True
    selection: ColumnChoice | None = None
    fill: bool = False

    def read(self, path: Path) -> LabelledTable:
        """Read a file or folder.

        Raises:
            LDLError: A missing or unreadable file, key or column; text or NaN among the numbers; a negative
                probability; a row that does not sum to 1; unequal numbers of rows.
        """
        named = self._open(path)
        if named is not None:
            return self._checked(path, self._of_columns(named))

        def of_arrays(arrays: Mapping[str, Any]) -> LabelledTable:
            return self._checked(path, self._of_arrays(path, arrays))

        return of_arrays(open_arrays(path, self.storage, of_arrays))

    def _open(self, path: Path) -> CsvTable | Parquet | None:
        """Return a table with named columns, which an annotation tool may have written as JSON. Raises LDLError."""
        if self.values or self.selection is None or kind_of(path) not in {*RECORDS, ".zip"}:
            return open_named(path)
        export = open_export(path, self.selection.export)
        assert export is not None
        if process_rank() == 0:
            print("\n".join(export.notes), flush=True)
        return parse_csv(path, export.table.to_csv(index=False, lineterminator="\n").encode())

    def _checked(self, path: Path, table: LabelledTable) -> LabelledTable:
        role = "values" if self.values else "distributions"
        features = table.features
        if not is_frame(features):
            missing = self.missing and not self.fill
            features = check_matrix(path, "features", self.storage.place(features), missing)
        if is_frame(table.target):
            return replace(table, features=features)
        target = np.reshape(table.target, (-1, 1)) if self.values else self.storage.place(table.target)
        target = check_matrix(path, role, target)
        counts = {role: len(target), **({} if table.groups is None else {"groups": len(table.groups)})}
        for name, count in counts.items():
            if count != len(features):
                raise LDLError(
                    f"{path}: {len(features)} rows of features but {count} {name}{_transposed(features, target, role)}"
                )
        target = target[:, 0] if self.values else check_distributions(target, str(path), self.normalize)
        return replace(table, features=features, target=target)

    def _of_arrays(self, path: Path, arrays: Mapping[str, Any]) -> LabelledTable:
        options = self.selection or ColumnChoice()
        if options.names_columns:
            raise LDLError(
                f"{path} holds matrices without named columns; data.feature_columns, data.drop, data.text_columns and "
                "the options of votes are for .csv and Parquet files"
            )
        features = find_features(path, arrays, self.feature_key, partial(self._find_target, path, arrays))
        target, group = self._find_target(path, arrays), self._find_group(path, arrays)
        split = find_split(path, arrays, options.split, self.groups_needed) if options.splits else None
        keys: Keys = {"feature_key": features, self._target_option: target, "group_key": group, "split_column": split}
        groups = to_names(arrays[group], f"{path}: the group") if group else None
        sets = split_sets(path, split, to_names(arrays[split], f"{path}: the split")) if split else None
        return LabelledTable(arrays[features], arrays[target], groups, keys=keys, sets=sets)

    def _of_columns(self, table: CsvTable | Parquet) -> LabelledTable:
        if self.feature_key or (self.target_key and not self.values):
            raise LDLError(
                f"{table.path}: the names of matrices are for .mat and .npz, and must be null here: columns of the "
                f"distribution are named {LABEL_PREFIX}NAME, and features are the columns left over"
            )
        options = self.selection or ColumnChoice()
        apart = None if options.find_apart is None else options.find_apart(table.path)
        if apart is not None:
            options = replace(options, apart=apart.all)
        drop = matching_columns(table.header, options.drop, str(table.path))
        votes = self._find_votes(table, options, drop)
        target = self._target_columns(table, options, votes, drop)
        roles = find_roles(table, options, target, votes, self.group_key, self.groups_needed)
        self._check_parts(table, options, target, roles.features)
        items = None if roles.item is None else table.groups(roles.item, NAMELESS)
        one_row_a_vote = votes is not None and votes.layout == "long" and items is not None
        instances = pd.Series(items, dtype=object).nunique() if one_row_a_vote else len(table)
        features = self._features(table, roles.features, instances)
        labels, names = self._labels(table, target, votes, apart)
        groups = table.groups(roles.group) if roles.group else None
        sets = split_sets(table.path, roles.split, table.texts([roles.split])[roles.split]) if roles.split else None
        keys: Keys = {"value_key": target[0]} if self.values else {}
        keys |= {"group_key": roles.group, "split_column": roles.split}
        keys |= {} if items is None else {"item_column": roles.item}
        result = LabelledTable(
            features, labels, groups, names, roles.features, keys, items, sets, roles.left_out, votes, apart
        )
        if one_row_a_vote:
            return self._one_row_an_item(result, str(table.path))
        if items is not None and groups is None and len(set(items.tolist())) < len(items):
            return replace(result, groups=items, keys=keys | {"group_key": roles.item})
        return result

    def _labels(
        self, table: CsvTable | Parquet, target: list[str], votes: VoteColumns | None, apart: VoteColumns | None
    ) -> tuple[Any, list[str] | None]:
        """Return the values, the distributions with the names of their labels, or a frame of votes. Raises LDLError."""
        if votes is not None or apart is not None:
            columns = [] if votes is None else votes.all
            return table.texts([name for name in table.header if name in columns]), None
        matrix = self.storage.read(table, target) if isinstance(table, Parquet) else table.numbers(target)
        return matrix, None if self.values else [name.removeprefix(LABEL_PREFIX) for name in target]

    def _one_row_an_item(self, table: LabelledTable, source: str) -> LabelledTable:
        """Return a table without the further rows of its items, which hold further votes. Raises LDLError."""
        assert table.items is not None
        if isinstance(table.features, RowFile):
            raise LDLError(
                f"{source} has one row a vote and stays on disk; read it into memory with a larger --data.in_memory, "
                "or give the votes in a file of their own with --data.votes"
            )
        rows = first_rows(table.items)
        columns = pd.DataFrame(table.features, columns=table.columns)
        for key, column in (("group_key", table.groups), ("split_column", table.sets)):
            columns = columns if column is None else columns.assign(**{str(table.keys[key]): column})
        check_constant(columns, table.items, source)
        return table.take(rows)

    def _find_votes(self, table: CsvTable | Parquet, options: ColumnChoice, drop: Sequence[str]) -> VoteColumns | None:
        """Return the columns of votes in a table, or None if its labels are distributions, values, or elsewhere."""
        if self.values or options.votes is None or options.apart is not None:
            return None
        header = [name for name in table.header if name not in drop]
        named = label_columns(table.path, header)
        long = not named and (options.item or usual_columns(header, "item")) and usual_columns(header, "vote")
        if options.annotated or long or self._has_counts(table, named):
            columns = options.votes(table.header if options.annotated else header, str(table.path))
            return columns.without(drop)
        return None

    def _target_columns(
        self, table: CsvTable | Parquet, options: ColumnChoice, votes: VoteColumns | None, drop: Sequence[str]
    ) -> list[str]:
        """Return the columns of the value, the distribution, or the labels of votes. Raises LDLError."""
        named = label_columns(table.path, table.header)
        if options.apart is not None:
            return []
        if votes is not None:
            return [name for name in (*votes.labels, *votes.raters, votes.vote) if name is not None]
        target = [name for name in named if name not in drop]
        if not self.values:
            return target
        if labels := [name for name in target if name not in (self.target_key, self.group_key)]:
            raise LDLError(
                f"{table.path}: {some(labels)} are of a distribution, no features; leave them out of a table of "
                "values, or read it with --data TabularLDL"
            )
        return [self._find_target(table.path, table.header)]

    def _check_parts(
        self, table: CsvTable | Parquet, options: ColumnChoice, target: Sequence[str], features: Sequence[str]
    ) -> None:
        """Raise LDLError unless a table has rows, features, and labels here or in another file."""
        if (target or options.apart is not None) and features and len(table):
            return
        needed = f"label columns named {LABEL_PREFIX}NAME or by data.label_columns"
        if self.values:
            needed = "a column of values"
        has_votes = usual_columns(table.header, "rater") or usual_columns(table.header, "vote") or options.annotated
        hint = OF_VOTES if has_votes else OF_VALUES
        raise LDLError(
            f"{table.path}: needs rows, feature columns, and {needed}; it has {len(table)} rows, its columns are "
            f"{some(table.header)}{'' if target else hint}"
        )

    def _features(self, table: CsvTable | Parquet, columns: list[str], instances: int) -> Any:
        """Return the features as a matrix, in memory or on disk, or as a typed frame. Raises LDLError."""
        options = self.selection
        if isinstance(table, Parquet) and (options is None or not self.storage.fits((len(table), len(columns)))):
            if options is not None and (options.categories or options.texts):
                raise LDLError(
                    f"{table.path} stays on disk, where all features are numbers; leave data.category_columns and "
                    "data.text_columns out, or read the table into memory with a larger --data.in_memory"
                )
            return self.storage.read(table, columns)
        if options is None:
            return table.numbers(columns, missing=self.missing)
        return self._typed(table, columns, options, instances)

    def _has_counts(self, table: CsvTable | Parquet, names: list[str]) -> bool:
        """Return whether columns ``label:NAME`` hold counts of votes, and not distributions. Raises LDLError."""
        if self.normalize or not (names and len(table)):
            return False
        if isinstance(table, Parquet) and not self.storage.fits((len(table), len(names))):
            return False
        counts = np.nan_to_num(table.numbers(names, missing=True))  # an empty field is no vote
        return bool((counts >= 0).all() and (counts == np.round(counts)).all() and counts.sum(1).max() > 1)

    def _typed(self, table: CsvTable | Parquet, names: list[str], options: ColumnChoice, instances: int) -> Any:
        """Return columns as a typed frame, or as a matrix if all are numbers without gaps to fill. Raises LDLError."""
        hint = "; correct it, or name a column of categories with --data.category_columns"
        if not self.missing:
            hint = "; for gaps, pass --data.missing fill, or keep for a head that takes them"
        codes = [name for name in matching_columns(table.header, options.categories, str(table.path)) if name in names]
        texts = find_texts(options.texts, names, table.texts, str(table.path))
        if both := [name for name in texts if name in codes]:
            raise LDLError(
                f"{table.path}: {some(both)} are both in data.category_columns and data.text_columns; choose one"
            )
        numbers = [name for name in names if name not in (*codes, *texts)]
        frame = table.frame(numbers) if isinstance(table, Parquet) else table.columns(numbers, hint, self.missing)
        if codes or texts:
            frame = frame.join(table.texts(codes).astype("category")).join(table.texts(texts))[names]
        frame = typed(frame, str(table.path), "--data.drop", texts, instances)
        if is_plain(frame, self.fill):
            return as_matrix(frame)
        for name, column in frame.items():
            if not self.missing and column_kind(column) != "category" and (gaps := column.isna()).any():
                raise LDLError(
                    f"{table.path}: row {gaps.to_numpy().argmax()}, column {name!r} is missing ({gaps.sum()} such rows)"
                    + hint
                )
        return frame

    @property
    def _target_option(self) -> str:
        return "value_key" if self.values else "target_key"

    def _find_target(self, path: Path, names: Any) -> str:
        role, usual = ("value", VALUE_KEYS) if self.values else ("distributions", TARGET_KEYS)
        return find_name(path, names, role, self._target_option, self.target_key, usual)

    def _find_group(self, path: Path, names: Any) -> str | None:
        return find_group(path, names, self.group_key, self.groups_needed)


def _transposed(features: Any, target: Any, role: str) -> str:
    """Return the end of a message about matrices whose rows differ, if transposing them makes the rows equal."""
    (rows, width), (count, size) = features.shape, target.shape
    turned = {"features.T": width == count, f"{role}.T": size == rows, f"features.T and {role}.T": width == size > 1}
    fix = next((fix for fix, fits in turned.items() if fits), None)
    return f"; features have shape {(rows, width)} and {role} {(count, size)}, so save {fix}" if fix else ""


def read_table(path: Path, **options: Any) -> LabelledTable:
    """Return features and distributions; ``options`` are those of :class:`TableReader`. Raises LDLError."""
    return TableReader(**options).read(path)


def read_values(path: Path, **options: Any) -> LabelledTable:
    """Return features and one value per row; ``options`` are those of :class:`TableReader`. Raises LDLError."""
    return TableReader(values=True, **options).read(path)
