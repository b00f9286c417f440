"""Bags of instances from a table."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ldl.data.bags.table import read_bags
from ldl.data.loaded import Loaded
from ldl.data.tables.scaled import ScaledRows
from ldl.labels import LabelSpace
from ldl.options import options
from ldl.protocols import Fold, stratified_kfold, with_validation


@options
class Bags(ScaledRows):
    """Bags of instances from a .csv file; only bags have labels.

    A row is an instance: its bag's label, its bag, and its features, in this order, or in any where a header names
    the columns ``label`` and ``bag``. Labels are 0 or -1 for negative, 1 for positive; bags may be numbers or names,
    and their rows may lie anywhere.

    The whole bag is one instance of the framework: ``input`` is (B, J, F) with J the instances of the largest bag of
    the file, and NaN where a bag has fewer. Folds take whole bags, each with the same share of positive ones.

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
        # The number of instances differs from file to file, and no model depends on it.
        self.input_shape = (-1, self.features.shape[1])
        self.ends = np.cumsum(np.bincount(self.table.bag))
        labels = LabelSpace.nominal(["negative", "positive"])
        return Loaded(labels, {"target": torch.eye(2)[torch.from_numpy(self.table.label)]}, names=self.table.names)

    def cut(self) -> Fold:
        """The bags of ``fold``; folds are stratified by label."""
        train, test = stratified_kfold(self.table.label, self.folds, self.fold, self.fold_seed, width=1)
        return with_validation(train, test, self.val_fraction, self.fold_seed, self.fold)

    def rows_of(self, instances: np.ndarray) -> np.ndarray:
        """The rows of some bags."""
        return np.flatnonzero(np.isin(self.table.bag, instances))

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The bags as they are, padded with NaN; training adds no augmentation."""
        assert isinstance(self.scaled, Tensor)
        sizes = np.diff(self.ends, prepend=0)
        padded = self.scaled.new_full((len(rows), int(sizes.max()), self.scaled.shape[1]), torch.nan)
        for bag, row in zip(padded, rows):
            bag[: sizes[row]] = self.scaled[self.ends[row] - sizes[row] : self.ends[row]]
        return padded
