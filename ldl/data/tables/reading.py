"""Reading tables of features with distributions or values from .mat, .npz, .csv, .npy and Parquet files."""

from __future__ import annotations

import contextlib
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.io

from ldl.annotations.votes import ITEMS, matching_columns
from ldl.data.cache import cached_folder, files_key
from ldl.data.names import (
    TARGET_KEYS,
    VALUE_KEYS,
    find_features,
    find_group,
    find_name,
    label_columns,
)
from ldl.data.storage import OBJECTS, USUAL, RowFile, Storage, blocks_of, origin
from ldl.data.tables.columns import column_kind, is_plain, typed
from ldl.errors import LDLError, some
from ldl.labels import LABEL_PREFIX
from ldl.tables import CsvTable, Parquet, open_named
from ldl.tables.entries import LARGEST, as_full, is_frame, to_names, to_numbers
from ldl.validation.archive import check_archive, check_mat
from ldl.validation.files import ABSENT, check_file, visible

NORMALIZE = "correct the file, or pass --data.normalize true to divide rows by their sums"
ALL = Storage(np.inf)
R = TypeVar("R", np.ndarray, RowFile)
Keys = dict[str, str | None]
"""Names in a file by the options that set them; None for an absent part."""


@dataclass(frozen=True)
class Table:
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
    """

    features: Any
    target: Any
    groups: np.ndarray | None
    names: list[str] | None = None
    columns: list[str] | None = None
    keys: Keys = field(default_factory=dict)
    items: np.ndarray | None = None


@dataclass(frozen=True)
class Selection:
    """The parts of a table with named columns; columns are given by names or patterns, such as ``r*``.

    Attributes:
        features: Columns of features; none means all columns left over.
        drop: Columns that are left out.
        categories: Columns that are categories although they hold numbers.
        labels: Columns of labels; none means those named ``label:NAME``.
        votes: Column with the number of votes, or None.
        item: Column that names the row, or None.
        apart: Whether votes stand in another file, which is joined by the item.
    """

    features: Sequence[str] | str = ()
    drop: Sequence[str] | str = ()
    categories: Sequence[str] | str = ()
    labels: Sequence[str] | str = ()
    votes: str | None = None
    item: str | None = None
    apart: bool = False

    @property
    def is_annotated(self) -> bool:
        """Whether labels are votes, and not distributions or values."""
        return bool(self.labels or self.votes or self.apart)


@dataclass(frozen=True)
class TableReader:
    """Reads and checks a table; rows of large tables stay on disk.

    ``.mat`` and ``.npz`` files, and folders of .npy files, hold two matrices, each under the given name or the only
    usual one. In ``.csv`` and Parquet files the columns named ``label:NAME`` are the distribution, or one column is the
    value; one may name the groups, and all others are features. A folder of Parquet files is one table.

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
    selection: Selection | None = None
    fill: bool = False

    def read(self, path: Path) -> Table:
        """Read a file or folder.

        Raises:
            LDLError: A missing or unreadable file, key or column; text or NaN among the numbers; a negative
                probability; a row that does not sum to 1; unequal numbers of rows.
        """
        named = open_named(path)
        table = self._of_arrays(path, open_arrays(path, self.storage)) if named is None else self._of_columns(named)
        what = "values" if self.values else "distributions"
        features = table.features
        if not is_frame(features):
            missing = self.missing and not self.fill
            features = check_matrix(path, "features", self.storage.place(features), missing)
        if is_frame(table.target):
            return replace(table, features=features)
        target = np.reshape(table.target, (-1, 1)) if self.values else self.storage.place(table.target)
        target = check_matrix(path, what, target)
        counts = {what: len(target), **({} if table.groups is None else {"groups": len(table.groups)})}
        for name, count in counts.items():
            if count != len(features):
                raise LDLError(
                    f"{path}: {len(features)} rows of features but {count} {name}{_transposed(features, target, what)}"
                )
        target = target[:, 0] if self.values else check_distributions(target, str(path), self.normalize)
        return replace(table, features=features, target=target)

    def _of_arrays(self, path: Path, arrays: Mapping[str, Any]) -> Table:
        if self.selection is not None and any(vars(self.selection).values()):
            raise LDLError(
                f"{path} holds matrices without named columns; data.feature_columns, data.drop and the options of "
                "votes are for .csv and Parquet files"
            )
        features = find_features(path, arrays, self.feature_key, partial(self._find_target, path, arrays))
        target, group = self._find_target(path, arrays), self._find_group(path, arrays)
        keys: Keys = {"feature_key": features, self._target_option: target, "group_key": group}
        groups = to_names(arrays[group], f"{path}: the group") if group else None
        return Table(arrays[features], arrays[target], groups, keys=keys)

    def _of_columns(self, table: CsvTable | Parquet) -> Table:
        if self.feature_key or (self.target_key and not self.values):
            raise LDLError(
                f"{table.path}: the names of matrices are for .mat and .npz, and must be null here: columns of the "
                f"distribution are named {LABEL_PREFIX}NAME, and features are the columns left over"
            )
        if self._has_counts(table):
            counts = replace(self.selection or Selection(), labels=f"{LABEL_PREFIX}*")
            return replace(self, selection=counts)._of_columns(table)
        item = self._find_item(table)
        target, columns, group = self._split_columns(table, item)
        chosen = self.selection
        features: Any
        found: Any
        if isinstance(table, Parquet) and (chosen is None or not self.storage.fits((len(table), len(columns)))):
            if chosen is not None and chosen.categories:
                raise LDLError(
                    f"{table.path} stays on disk, where all features are numbers; leave data.category_columns out, or "
                    "read the table into memory with a larger --data.in_memory"
                )
            features = self.storage.read(table, columns)
        elif chosen is None:
            features = table.numbers(columns, missing=self.missing)
        else:
            features = self._typed(table, columns)
        if chosen is not None and chosen.is_annotated:
            found = table.frame([*target, *([chosen.votes] if chosen.votes else [])])
        else:
            found = self.storage.read(table, target) if isinstance(table, Parquet) else table.numbers(target)
        keys: Keys = {"value_key": target[0]} if self.values else {}
        names = None if self.values else [name.removeprefix(LABEL_PREFIX) for name in target]
        groups = table.groups(group) if group else None
        items = None if item is None else table.groups(item, "which names no item; give every row one")
        keys |= {"group_key": group} | ({} if item is None else {"item_column": item})
        return Table(features, found, groups, names, columns, keys, items)

    def _has_counts(self, table: CsvTable | Parquet) -> bool:
        """Return whether columns ``label:NAME`` hold counts of votes, and not distributions. Raises LDLError."""
        chosen, names = self.selection, label_columns(table.path, table.header)
        if chosen is None or chosen.is_annotated or self.values or self.normalize or not (names and len(table)):
            return False
        if isinstance(table, Parquet) and not self.storage.fits((len(table), len(names))):
            return False
        counts = table.numbers(names)
        return bool((counts >= 0).all() and (counts == np.round(counts)).all() and counts.sum(1).max() > 1)

    def _typed(self, table: CsvTable | Parquet, names: list[str]) -> Any:
        """Return columns as a typed frame, or as a matrix if all are numbers without gaps to fill. Raises LDLError."""
        hint = "; correct it, or name a column of categories with --data.category_columns"
        if not self.missing:
            hint = "; for gaps, pass --data.missing fill, or keep for a head that takes them"
        codes = matching_columns(names, (self.selection or Selection()).categories, str(table.path))
        numbers = [name for name in names if name not in codes]
        frame = table.frame(numbers) if isinstance(table, Parquet) else table.columns(numbers, hint, self.missing)
        frame = frame.join(table.texts(codes).astype("category"))[names] if codes else frame
        frame = typed(frame, str(table.path), "--data.drop")
        if is_plain(frame, self.fill):
            return np.ascontiguousarray(frame.to_numpy(np.float64))
        for name, column in frame.items():
            if not self.missing and column_kind(column) != "category" and (gaps := column.isna()).any():
                raise LDLError(
                    f"{table.path}: row {gaps.to_numpy().argmax()}, column {name!r} is missing ({gaps.sum()} such rows)"
                    + hint
                )
        return frame

    def _find_item(self, table: CsvTable | Parquet) -> str | None:
        """Return the column that names the item of a row, if there is one. Raises LDLError if votes need it."""
        chosen = self.selection or Selection()
        if chosen.item is not None:
            return str(matching_columns(table.header, [chosen.item], str(table.path))[0])
        usual = {name.lower(): name for name in table.header if name.lower() in ITEMS} if chosen.is_annotated else {}
        found = [usual[name] for name in ITEMS if name in usual]
        if chosen.apart and not found:
            raise LDLError(
                f"{table.path}: no column names the items that have votes in data.votes; pass --data.item_column, one "
                f"of {some(table.header, 20)}"
            )
        # Beside its own votes, a column of such a name may be a feature, if it repeats.
        return next((name for name in found if chosen.apart or table.frame([name])[name].is_unique), None)

    def _split_columns(self, table: CsvTable | Parquet, item: str | None) -> tuple[list[str], list[str], str | None]:
        """Return the columns of the target, of the features, and of the groups. Raises LDLError."""
        path, header, chosen = table.path, table.header, self.selection or Selection()
        group, named = self._find_group(path, header), label_columns(path, header)
        drop = matching_columns(header, chosen.drop, str(path))
        target = named = [name for name in named if name not in drop]
        if chosen.is_annotated:
            labels = [] if chosen.apart else matching_columns(header, chosen.labels, str(path)) or named
            target = [name for name in labels if name not in drop]
            drop += [*named, *matching_columns(header, [chosen.votes] if chosen.votes else [], str(path))]
        if self.values:
            if labels := [name for name in target if name not in (self.target_key, group)]:
                raise LDLError(
                    f"{path}: {some(labels)} are of a distribution, no features; leave them out of a table of values, "
                    "or read it with --data TabularLDL"
                )
            target = [self._find_target(path, header)]
        rest = table.others(*target, *drop, *(name for name in (group, item) if name))
        if chosen.features:
            rest = [name for name in matching_columns(header, chosen.features, str(path)) if name in rest]
        if not ((target or chosen.apart) and rest and len(table)):
            needed = (
                "a column of values"
                if self.values
                else f"label columns named {LABEL_PREFIX}NAME or by data.label_columns"
            )
            otherwise = "" if target else "; one value a row is for TabularValues, with --data.value_key COLUMN"
            raise LDLError(
                f"{path}: needs rows, feature columns, and {needed}; it has {len(table)} rows, its columns are "
                f"{some(header)}{otherwise}"
            )
        return target, rest, group

    @property
    def _target_option(self) -> str:
        return "value_key" if self.values else "target_key"

    def _find_target(self, path: Path, names: Any) -> str:
        what, usual = ("value", VALUE_KEYS) if self.values else ("distributions", TARGET_KEYS)
        return find_name(path, names, what, self._target_option, self.target_key, usual)

    def _find_group(self, path: Path, names: Any) -> str | None:
        return find_group(path, names, self.group_key, self.groups_needed)


def _transposed(features: Any, target: Any, what: str) -> str:
    """Return the end of a message about matrices whose rows differ, if transposing them makes the rows equal."""
    (rows, width), (count, size) = features.shape, target.shape
    turned = {"features.T": width == count, f"{what}.T": size == rows, f"features.T and {what}.T": width == size > 1}
    fix = next((fix for fix, fits in turned.items() if fits), None)
    return f"; features have shape {(rows, width)} and {what} {(count, size)}, so save {fix}" if fix else ""


def read_table(path: Path, **options: Any) -> Table:
    """Return features and distributions; ``options`` are those of :class:`TableReader`. Raises LDLError."""
    return TableReader(**options).read(path)


def read_values(path: Path, **options: Any) -> Table:
    """Return features and one value per row; ``options`` are those of :class:`TableReader`. Raises LDLError."""
    return TableReader(values=True, **options).read(path)


class Members(Mapping[str, Any]):
    """Matrices by name, each opened on access: a file may hold other content beside them."""

    def __init__(self, openers: dict[str, Callable[[], np.ndarray | RowFile]]) -> None:
        self._openers = openers

    def __getitem__(self, name: str) -> np.ndarray | RowFile:
        return self._openers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._openers)

    def __len__(self) -> int:
        return len(self._openers)


def open_arrays(path: Path, storage: Storage = ALL) -> Mapping[str, Any]:
    """Return the matrices in a .mat or .npz file, or in a folder of .npy files, by their names.

    A .npz file that is too large for memory is unpacked into the cache.

    Raises:
        LDLError: The file is absent, cannot be read, unpacks to far more than its size, or is of another kind.
    """
    if os.path.isdir(path):  # ``Path.is_dir`` raises for impossible names
        return _open_folder(path)
    check_file(path, "data file", ABSENT)
    kind = path.suffix.lower()
    if kind == ".npy":
        raise LDLError(f"{path} is one matrix of a table; give the folder, with the others as .npy files beside it")
    if kind not in (".mat", ".npz"):
        raise LDLError(
            f"{path}: unknown kind of file {path.suffix!r}; save a table as .csv with commas between fields, or as "
            ".parquet, .npz or .mat"
        )
    with _refuses_damage(path):
        if kind == ".mat":
            check_mat(path)
            return scipy.io.loadmat(str(path))
        check_archive(path)
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        if sum(member.file_size for member in members) > storage.in_memory * 2**20:
            return _open_folder(_unpacked(path, storage))
        return Members({member.filename[:-4]: partial(_member, path, member.filename[:-4]) for member in members})


@contextlib.contextmanager
def _refuses_damage(path: Path) -> Iterator[None]:
    """Raise LDLError for every error of a library that reads ``path``: damage makes them raise errors of any type."""
    try:
        yield
    except (LDLError, MemoryError):
        raise
    except Exception as error:
        raise LDLError(f"{path} cannot be read as {path.suffix}: {' '.join(str(error).split())[:200]}") from error


def _open_folder(folder: Path) -> Members:
    if not (files := visible(folder, "*.npy")):
        raise LDLError(
            f"{folder} holds no table; give .npy files, such as features.npy and labels.npy, or Parquet files"
        )
    return Members({path.stem: partial(RowFile.open, path) for path in files})


def _member(path: Path, name: str) -> np.ndarray:
    with _refuses_damage(path), np.load(path, allow_pickle=False) as arrays:
        try:
            return np.asarray(arrays[name])
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            raise LDLError(OBJECTS.format(place=f"{path}: {name!r}")) from None


def _unpacked(path: Path, storage: Storage) -> Path:
    def unpack(folder: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as packed, (folder / Path(member.filename).name).open("wb") as file:
                    shutil.copyfileobj(packed, file, 2**22)

    return cached_folder(storage.tables / files_key([path], "npz"), unpack, f"unpacking {path}")


def check_matrix(path: Path | str, what: str, array: Any, missing: bool = False) -> Any:
    """Return a finite (N, F) float64 matrix; rows in a file are checked in blocks and stay there.

    Args:
        path: Origin of the matrix, for messages.
        what: Its name in messages.
        array: The matrix.
        missing: Accept NaN.

    Raises:
        LDLError: Another shape, or an entry that is not a finite number.
    """
    if not isinstance(array, RowFile):
        array = np.asarray(as_full(array, f"{path}: {what}"))
    if len(array.shape) != 2 or 0 in array.shape:
        raise LDLError(f"{path}: {what} have shape {array.shape}; a matrix with one row a sample is needed")
    # Of rows in a file only the type is checked here.
    numbers = to_numbers(np.empty(0, array.dtype) if isinstance(array, RowFile) else array, f"{path}: {what} are")
    array = array if isinstance(array, RowFile) else numbers
    for start, block in blocks_of(array):
        # In float32, LARGEST would be infinite.
        bad = ~((np.abs(block) <= np.float64(LARGEST)) | (missing & np.isnan(block)))
        if bad.any():
            place, column = np.argwhere(bad)[0]
            source, row = origin(array, str(path), start + place)
            name = array.column(column) if isinstance(array, RowFile) else column
            raise LDLError(
                f"{source}: {what} row {row}, column {name} is {block[place, column]}; every entry must be a finite "
                f"number, at most {LARGEST:g}"
            )
    return array


def check_distributions(rows: R, source: str, normalize: bool = False, fix: str = NORMALIZE) -> R:
    """Check that rows lie on the simplex, and return them in float64, divided by sums within 1e-3 of 1.

    Args:
        rows: (N, C), finite. Rows in a file are returned unchanged; see :func:`divided`.
        source: Their origin, for messages.
        normalize: Accept any positive sum.
        fix: What to do about other sums, for messages.

    Raises:
        LDLError: Negative mass, a sum other than 1, or with ``normalize`` a sum of 0.
    """
    sums = np.empty(len(rows))
    for start, block in blocks_of(rows):
        if len(negative := np.argwhere(block < 0)):
            place, column = negative[0]
            where = "{}: distribution row {}".format(*origin(rows, source, start + place))
            raise LDLError(f"{where}, label {column} is {block[place, column]:g}; mass must not be negative")
        sums[start : start + len(block)] = block.sum(1, dtype=np.float64)
    if len(off := np.flatnonzero(sums <= 0 if normalize else ~(np.abs(sums - 1) <= 1e-3))):
        where = "{}: distribution row {}".format(*origin(rows, source, off[0]))
        if normalize:
            raise LDLError(f"{where} is all zero and cannot be normalised; remove it")
        raise LDLError(f"{where} sums to {sums[off[0]]:.6g}, not 1 ({len(off)} such rows); {fix}")
    return rows if isinstance(rows, RowFile) else divided(rows)


def divided(rows: np.ndarray) -> np.ndarray:
    """Return rows (N, C) divided by their sums, float64."""
    rows = rows.astype(np.float64, copy=False)
    return np.asarray(rows / rows.sum(1)[:, None])
