"""Rows to predict: a table, and nothing known of them but their features."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.data.files import check_found
from ldl.data.loaded import Loaded
from ldl.data.unlabelled import Unlabelled
from ldl.errors import LDLError
from ldl.inference.inputs import Inputs
from ldl.inference.rows import read_instances
from ldl.options import buffer, option, options


@options
class TableFile(Unlabelled):
    """All rows, or bags, of a table, for ``--stage predict``; labels, features and scaling come from the checkpoint.

    The file is a .csv, .parquet, .npz or .mat, labelled or not: columns are found by the names that they had in
    training, and others are left alone.

    Args:
        path: The file: as it stands, or relative to the data folder.
        feature_key: Name of the features in a .mat or .npz file; None tries that of training, then the usual ones.
    """

    path: str = option(kw_only=True)
    feature_key: str | None = None

    instances: Inputs = buffer()
    has_missing = False

    def suits(self, input_shape: tuple[int, ...], preprocessing: dict[str, Any]) -> None:
        """Raise LDLError for a task that was not trained on a table."""
        if "scaling" not in preprocessing:
            raise LDLError("the checkpoint was not trained on a table; TableFile predicts for those that were")

    def load(self) -> Loaded:
        """Read and scale the rows. Raises LDLError."""
        labels, self.input_shape, preprocessing = self.trained
        file = check_found(self.find(self.path), self.path)
        if self.feature_key and file.suffix.lower() not in (".mat", ".npz"):
            raise LDLError(f"{file}: feature_key is for .mat and .npz; elsewhere features have names, leave it out")
        self.instances = read_instances(file, self.input_shape, preprocessing, not self._bags, self.feature_key)
        rows = np.arange(self.instances.size)
        if not self._bags:
            self.has_missing = bool(self.instances.make(rows).isnan().any())
        return Loaded(labels, {"index": torch.from_numpy(rows)}, names=self.instances.names)

    @property
    def _bags(self) -> bool:
        # Their missing instances are NaN, their features may not be.
        return len(self.input_shape) == 2

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The instances ``rows``, scaled."""
        return self.instances.make(rows)
