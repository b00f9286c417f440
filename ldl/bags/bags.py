"""Bags of instances for multiple-instance learning, read from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ldl.annotations.columns import matching_columns
from ldl.data.base import Loaded
from ldl.data.names import find_group, find_split, label_columns, split_sets
from ldl.data.tables.module import ScaledRows
from ldl.errors import LDLError, some
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.protocols import Fold, leave_one_group_out, published_split, stratified_kfold, with_validation
from ldl.tables.csv_table import CsvTable, read_csv
from ldl.tables.roles import Role, bag_column, plain_name, usual_columns
from ldl.validation.files import ABSENT, check_file, kind_of

BagProtocol = Literal["published", "group_exclusive", "leave_one_group_out", "kfold"]
NO_BAG = "no name of a bag; give every row one"
LABEL_NUMBERS = {-1.0: 0, 0.0: 0, 1.0: 1}
UNUSED_ROLES: tuple[Role, ...] = ("bag", "group", "split", "item", "image", "rater", "vote")
"""Roles of columns that are features only if ``feature_columns`` names them."""


@dataclass(frozen=True)
class BagColumns:
    """The choice of columns in a table of instances; see the options of :class:`Bags`.

    Attributes:
        group: Column of the groups; None takes the only usual one.
        split: Column of the sets of a published split, likewise.
        features: Names or patterns of the features; none means all columns without another usual role.
        drop: Names or patterns of columns that are left out.
        needed: Whether given columns of groups and sets must be in the file.
        splits: Whether the sets of the split are read.
    """

    group: str | None = None
    split: str | None = None
    features: Sequence[str] | str = ()
    drop: Sequence[str] | str = ()
    needed: bool = True
    splits: bool = True


@dataclass(frozen=True)
class BagTable:
    """Instances sorted by bag; bags are in the order of their first rows in the file.

    Attributes:
        features: (N, F), finite.
        bag: (N,) bag of each instance, rising from 0.
        label: (B,) 0 or 1 for each bag.
        names: Names of the bags.
        columns: Names of the features, if the file has a header.
        groups: (B,) group of each bag, as text; None if unknown.
        sets: (B,) set of each bag in a published split: ``train``, ``val`` or ``test``; None without one.
        keys: Columns by their option, ``group_key`` and ``split_column``; None if absent.
        taken: Summary of the columns that are used and left out.
    """

    features: np.ndarray
    bag: np.ndarray
    label: np.ndarray
    names: list[str]
    columns: list[str] | None = None
    groups: np.ndarray | None = None
    sets: np.ndarray | None = None
    keys: dict[str, str | None] = field(default_factory=dict)
    taken: str = ""


def read_bags(path: Path, chosen: BagColumns = BagColumns()) -> BagTable:
    """Read a table of instances: label, bag, features; in any order if a header names ``label`` and ``bag``.

    Args:
        path: The .csv file.
        chosen: The columns, if the file has a header; by default by their usual names.

    Raises:
        LDLError: A missing or unreadable file or column, a field that is not a finite number, a label other than 0, 1
            or -1, a row without a bag, or a bag with different labels, groups or sets.
    """
    if kind_of(check_file(path, "data file", ABSENT)) == ".parquet":
        raise LDLError(
            f"{path}: bags are read from .csv; write one, as by pandas.read_parquet(file).to_csv(file, index=False)"
        )
    table = read_csv(path, has_header=_names_columns)
    headed = _names_columns(table.header)
    label, bag = _label_and_bag(table.header) if headed else ("1", "2")
    if not len(table) or len(table.header) < 3:
        raise LDLError(
            f"{path}: needs rows of label, bag and at least one feature; its columns are {some(table.header)}"
        )
    bags = table.groups(bag, NO_BAG)
    names: dict[str, int] = {}
    owner = np.array([names.setdefault(str(name), len(names)) for name in bags])
    hint = "" if headed else "; a header must name the columns label and bag"
    labels = table.numbers([label], "" if headed else hint)[:, 0]
    if len(wrong := np.flatnonzero(~np.isin(labels, list(LABEL_NUMBERS)))):
        table.refuse(wrong[0], label, "no label: these are 0 or -1 (negative) and 1 (positive)")
    columns, taken = table.others(label, bag), "label in column 1, bag in column 2"
    keys: dict[str, str | None] = {}
    if headed:
        columns, keys, taken = _choose(table, label, bag, chosen)
    group, split = keys.get("group_key"), keys.get("split_column") if chosen.splits else None
    features = table.numbers(columns, hint)
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    first = np.flatnonzero(np.diff(owner, prepend=-1))

    def of_bags(entries: np.ndarray, content: str) -> np.ndarray:
        entries = entries[order]
        if len(mixed := np.flatnonzero(entries != entries[first][owner])):
            one, other = entries[first][owner[mixed[0]]], entries[mixed[0]]
            raise LDLError(
                f"{path}: bag {list(names)[owner[mixed[0]]]!r} has several {content}, {str(one)!r} and {str(other)!r}; "
                "give the rows of a bag one"
            )
        return entries[first]

    sides = of_bags(np.array(["negative", "positive"])[[LABEL_NUMBERS[value] for value in labels]], "labels")
    groups = None if group is None else of_bags(table.groups(group), f"entries of {group!r}")
    sets = None if split is None else of_bags(split_sets(path, split, table.groups(split)), f"entries of {split!r}")
    label_of_bag = (sides == "positive").astype(int)
    feature_names = columns if headed else None
    return BagTable(features[order], owner, label_of_bag, list(names), feature_names, groups, sets, keys, taken)


def _names_columns(first: list[str]) -> bool:
    """Return whether the first row of a file names the label or the bag."""
    return bag_column(first) is not None or any(plain_name(name) == "label" for name in first)


def _label_and_bag(header: list[str]) -> tuple[str, str]:
    label = next((name for name in header if plain_name(name) == "label"), "label")
    return label, bag_column(header) or "bag"


def _choose(table: CsvTable, label: str, bag: str, chosen: BagColumns) -> tuple[list[str], dict[str, Any], str]:
    """Return the features, the columns of groups and sets by their option, and a summary. Raises LDLError."""
    path, source = table.path, str(table.path)
    names = table.others(label, bag)
    names = [name for name in names if name not in matching_columns(names, chosen.drop, source)]
    named = matching_columns(names, chosen.features, source)
    others = [name for name in names if name not in named]
    group = find_group(path, others, chosen.group, chosen.needed)
    split = find_split(path, others, chosen.split, chosen.needed)
    named_alike = {name for role in UNUSED_ROLES for name in usual_columns(others, role)} | {
        *label_columns(path, others)
    }
    free = [name for name in others if name not in named_alike]
    features = named or [name for name in free if name not in (group, split)]
    if not features:
        raise LDLError(
            f"{path}: no column is a feature; name features with --data.feature_columns, it has {some(names)}"
        )
    left = [name for name in others if name not in (group, split, *features)]
    parts = [f"label {label!r}, bag {bag!r}"]
    parts += [f"{fact} {name!r}" for fact, name in (("group", group), ("split", split)) if name is not None]
    parts.append(f"{len(features)} features {some(features)}")
    summary = ", ".join(parts) + (f"; left out {some(left)}, unless --data.feature_columns names them" if left else "")
    return features, {"group_key": group, "split_column": split}, summary


@options
class Bags(ScaledRows):
    r"""Bags of instances from a .csv file; only bags have labels.

    A row is an instance: the label of its bag, its bag, and its features, in this order, or in any order if a header
    names the columns ``label`` and ``bag``. Labels are 0 or -1 for negative, 1 for positive. Bags may be numbers or
    names, and the rows of a bag may lie anywhere. Columns that name a group, a set of a split, an item or a rater are
    no features.

    A whole bag is one instance of the framework: ``input`` is (B, J, F) with J the instances of the largest bag of the
    file, and NaN where a bag has fewer.

    Protocols: ``published`` (the column ``split``); ``group_exclusive`` (``folds`` folds of whole groups) and
    ``leave_one_group_out`` (one fold per group) if groups are known; ``kfold`` (random bags, which leaks groups). Folds
    have the same share of positive bags as far as groups allow.

    Args:
        batch_size: Bags of a global batch, over all processes.
        protocol: Evaluation protocol; None is ``published`` if a column names the sets of a split, else
            ``group_exclusive`` if groups are known, else ``kfold``.
        group_key: Column of the groups of bags, such as patients; None takes the only usual one.
        split_column: Column of the sets of a published split: ``train``, ``val`` and ``test``, or usual synonyms; None
            takes the only usual one.
        feature_columns: Names or patterns, such as ``x*``, of the columns that are features; by default all columns
            whose names are not usual for something else.
        drop: Names or patterns of columns that are left out.

    Examples:
        >>> from pathlib import Path
        >>> from ldl.bags import Bags
        >>> rows = [f"{bag % 2},bag{bag},{bag},{instance}" for bag in range(20) for instance in range(3)]
        >>> file = Path("bags.csv")
        >>> _ = file.write_text("\n".join(["label,bag,length,width", *rows]))
        >>> data = Bags("bags.csv")
        >>> data.setup()
        taken from bags.csv: label 'label', bag 'bag', 2 features 'length', 'width'
        >>> next(iter(data.test_dataloader()))["input"].shape
        torch.Size([2, 3, 2])
    """

    batch_size: int = 32
    val_fraction: float = 0.0
    download = False
    protocol: BagProtocol | None = option(default=None, role="fold")  # type: ignore[assignment]  # a name after load
    group_key: str | None = option(default=None, role="group")
    split_column: str | None = option(default=None, role="group")
    feature_columns: Sequence[str] | str = option(default=(), role="feature")
    drop: Sequence[str] | str = option(default=(), role="feature")
    unserved = (*ScaledRows.unserved, "table")

    _needed = True

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take over the labels of a trained task, which may be tested without the groups and sets of its run."""
        super().follow(labels, input_shape, preprocessing)
        self._needed = False

    def load(self) -> Loaded:
        """Read and check the file. Raises LDLError."""
        splits = self.protocol in (None, "published")
        chosen = BagColumns(self.group_key, self.split_column, self.feature_columns, self.drop, self._needed, splits)
        self.table = table = read_bags(self.file, chosen)
        self.features, self.feature_names = table.features, table.columns
        if self.protocol is None:
            usual: BagProtocol = "kfold" if table.groups is None else "group_exclusive"
            self.protocol = usual if table.sets is None else "published"
        self.leaky = None if table.groups is None else self.protocol in ("kfold", "published")
        unused = table.keys.get("split_column") is not None and self.protocol != "published"
        self.report_columns(table.taken + f"; protocol {self.protocol} does not use the split" * unused)
        self.chosen = table.keys
        for name, column in table.keys.items():
            setattr(self, name, column)
        # The number of instances differs between files, and no model depends on it.
        self.input_shape = (-1, self.features.shape[1])
        self.ends = np.cumsum(np.bincount(table.bag))
        labels = LabelSpace.nominal(["negative", "positive"])
        target = torch.eye(2)[torch.from_numpy(table.label)]
        return Loaded(labels, {"target": target}, groups=table.groups, names=table.names)

    def cut(self) -> Fold:
        """Return the bags of one fold. Raises LDLError if the file lacks the groups or sets of the protocol."""
        table, fold, seed = self.table, self.fold, self.fold_seed
        if self.protocol == "published":
            return published_split(self._sets, self.val_fraction, seed, fold, table.groups)
        if self.protocol == "leave_one_group_out":
            parts = leave_one_group_out(self._groups, fold)
        else:
            groups = self._groups if self.protocol == "group_exclusive" else None
            parts = stratified_kfold(table.label, self.folds, fold, seed, groups, width=1)
        return with_validation(*parts, self.val_fraction, seed, fold, table.groups)

    @property
    def num_folds(self) -> int:
        """Number of folds: 1 if published, one for each group if groups are left out in turn, else ``folds``."""
        if self.protocol == "published":
            return 1
        return len(np.unique(self._groups)) if self.protocol == "leave_one_group_out" else self.folds

    @property
    def _groups(self) -> np.ndarray:
        if self.table.groups is None:
            raise self._lacks("has no groups to keep apart", "group_key")
        return self.table.groups

    @property
    def _sets(self) -> np.ndarray:
        if self.table.sets is None:
            raise self._lacks("names no sets of a published split", "split_column")
        return self.table.sets

    def _lacks(self, problem: str, key: str) -> LDLError:
        fix = f"name their column with data.{key}, or set another data.protocol than {self.protocol}"
        return LDLError(f"{self.path} {problem}; {fix}")

    def rows_of(self, instances: np.ndarray) -> np.ndarray:
        """Return the rows of some bags."""
        return np.flatnonzero(np.isin(self.table.bag, instances))

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the bags ``rows``, padded with NaN and without augmentation."""
        assert isinstance(self.scaled, Tensor)
        sizes = np.diff(self.ends, prepend=0)
        padded = self.scaled.new_full((len(rows), int(sizes.max()), self.scaled.shape[1]), torch.nan)
        for bag, row in zip(padded, rows):
            bag[: sizes[row]] = self.scaled[self.ends[row] - sizes[row] : self.ends[row]]
        return padded
