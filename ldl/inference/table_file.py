"""Rows to predict: a table, and nothing known of them but their features."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.data.base import LDLDataModule
from ldl.data.loaded import Loaded
from ldl.errors import LDLError
from ldl.inference.inputs import Inputs
from ldl.inference.rows import read_instances
from ldl.labels import LabelSpace
from ldl.options import buffer, option, options
from ldl.protocols import Fold


@options
class TableFile(LDLDataModule):
    """All rows, or bags, of a table, for ``--stage predict``; labels, features and scaling come from the checkpoint.

    The file is a .csv, .parquet, .npz or .mat, labelled or not: columns are found by the names that they had in
    training, and others are left alone.

    Args:
        path: The file: as it stands, or relative to the data folder.
    """

    path: str = option(kw_only=True)
    folds, fold, fold_seed, val_fraction = 0, 0, 0, 0.0

    protocol = "none"
    instances: Inputs = buffer()
    has_missing = False
    _trained = None  # type: tuple[LabelSpace, tuple[int, ...], dict[str, Any]] | None

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take labels and scaling of a trained task. Raises LDLError where it was not trained on a table."""
        if preprocessing is None or "scaling" not in preprocessing or input_shape is None:
            raise LDLError("the checkpoint was not trained on a table; TableFile predicts for those that were")
        self._trained = (labels, input_shape, preprocessing)

    def load(self) -> Loaded:
        """Read and scale the rows. Raises LDLError."""
        if self._trained is None:
            raise LDLError("TableFile has no labels to train on or test with; use it with --stage predict")
        labels, self.input_shape, preprocessing = self._trained
        self.instances = read_instances(self.find(self.path), self.input_shape, preprocessing, not self._bags)
        rows = np.arange(self.instances.size)
        if not self._bags:
            self.has_missing = bool(self.instances.make(rows).isnan().any())
        return Loaded(labels, {"index": torch.from_numpy(rows)}, names=self.instances.names)

    @property
    def _bags(self) -> bool:
        # Their missing instances are NaN, their features may not be.
        return len(self.input_shape) == 2

    def cut(self) -> Fold:
        """All rows are to be predicted."""
        nothing = np.arange(0)
        return Fold(nothing, nothing, np.arange(self.size))

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The instances ``rows``, scaled."""
        return self.instances.make(rows)
