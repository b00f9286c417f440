"""Bags of instances for multiple-instance learning, read from a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ldl.data.base import Loaded
from ldl.data.names import is_reserved
from ldl.data.tables.module import ScaledRows
from ldl.errors import LDLError, some
from ldl.labels import LabelSpace
from ldl.options import options
from ldl.protocols import Fold, stratified_kfold, with_validation
from ldl.tables.csv_table import read_csv
from ldl.validation.files import ABSENT, check_file

NAMES = {"label", "bag"}
NO_BAG = "no name of a bag; give every row one"
LABELS = {-1.0: 0, 0.0: 0, 1.0: 1}


@dataclass(frozen=True)
class BagTable:
    """Instances sorted by bag; bags are in the order of their first rows in the file.

    Attributes:
        features: (N, F), finite.
        bag: (N,) bag of each instance, rising from 0.
        label: (B,) 0 or 1 for each bag.
        names: Names of the bags.
        columns: Names of the features, if the file has a header.
    """

    features: np.ndarray
    bag: np.ndarray
    label: np.ndarray
    names: list[str]
    columns: list[str] | None = None


def read_bags(path: Path) -> BagTable:
    """Read a table of instances: label, bag, features; in any order if a header names ``label`` and ``bag``.

    Raises:
        LDLError: A missing or unreadable file or column, a field that is not a finite number, a label other than 0, 1
            or -1, a row without a bag, or a bag with different labels.
    """
    table = read_csv(check_file(path, "data file", ABSENT), has_header=lambda first: bool(NAMES & set(first)))
    headed = bool(NAMES & set(table.header))
    label, bag = ("label", "bag") if headed else ("1", "2")
    if not len(table) or len(table.header) < 3:
        raise LDLError(
            f"{path}: needs rows of label, bag and at least one feature; its columns are {some(table.header)}"
        )
    bags = table.groups(bag, NO_BAG)
    names: dict[str, int] = {}
    owner = np.array([names.setdefault(str(name), len(names)) for name in bags])
    hint = "" if headed else "; a header must name the columns label and bag"
    labels = table.numbers([label], hint)[:, 0]
    if len(wrong := np.flatnonzero(~np.isin(labels, list(LABELS)))):
        table.refuse(wrong[0], label, "no label: these are 0 or -1 (negative) and 1 (positive)")
    columns = table.others(label, bag)
    if headed and (reserved := [name for name in columns if is_reserved(name) or name.lower() in NAMES]):
        raise LDLError(
            f"{path}: column {reserved[0]!r} is called as labels, bags or groups are, and taken for a feature; rename "
            "it, or leave it out"
        )
    features = table.numbers(columns, hint)
    order = np.argsort(owner, kind="stable")
    owner, sides = owner[order], np.array([LABELS[value] for value in labels[order]])
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    if len(mixed := np.flatnonzero(sides != sides[first][owner])):
        name = list(names)[owner[mixed[0]]]
        raise LDLError(f"{path}: bag {name!r} is both negative and positive; a bag has one label")
    return BagTable(features[order], owner, sides[first], list(names), columns if headed else None)


@options
class Bags(ScaledRows):
    """Bags of instances from a .csv file; only bags have labels.

    A row is an instance: the label of its bag, its bag, and its features, in this order, or in any order if a header
    names the columns ``label`` and ``bag``. Labels are 0 or -1 for negative, 1 for positive. Bags may be numbers or
    names, and the rows of a bag may lie anywhere.

    A whole bag is one instance of the framework: ``input`` is (B, J, F) with J the instances of the largest bag of the
    file, and NaN where a bag has fewer. Folds take whole bags, each with the same share of positive ones.

    Args:
        batch_size: Bags of a global batch, over all processes.
    """

    batch_size: int = 32
    val_fraction: float = 0.0
    download = False
    unserved = (*ScaledRows.unserved, "table")

    def load(self) -> Loaded:
        """Read and check the file. Raises LDLError."""
        self.table = read_bags(self.file)
        self.features, self.feature_names = self.table.features, self.table.columns
        names = self.table.columns
        known = f"label, bag and {len(names)} features {some(names)}" if names else "label in column 1, bag in column 2"
        self.tell_taken(known)
        # The number of instances differs between files, and no model depends on it.
        self.input_shape = (-1, self.features.shape[1])
        self.ends = np.cumsum(np.bincount(self.table.bag))
        labels = LabelSpace.nominal(["negative", "positive"])
        return Loaded(labels, {"target": torch.eye(2)[torch.from_numpy(self.table.label)]}, names=self.table.names)

    def cut(self) -> Fold:
        """Return the bags of ``fold``, stratified by label."""
        train, test = stratified_kfold(self.table.label, self.folds, self.fold, self.fold_seed, width=1)
        return with_validation(train, test, self.val_fraction, self.fold_seed, self.fold)

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
