"""Data modules without targets for ``--stage predict``: a table file, or whole images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from ldl.collective import current_collective, process_rank
from ldl.data.base import Loaded
from ldl.data.unlabelled import Unlabelled
from ldl.errors import LDLError
from ldl.inference.inputs import Inputs, read_instances
from ldl.inference.pictures import whole
from ldl.options import buffer, option, options
from ldl.raters.table import rater_numbers
from ldl.tables import CsvTable, Parquet, open_named
from ldl.tables.roles import usual_columns
from ldl.validation.files import check_found

POPULATION = "none"
"""Value of ``rater_column`` for predictions of the population."""


@options
class TableFile(Unlabelled):
    """All rows, or bags, of a table, for ``--stage predict``; labels, features and scaling come from the checkpoint.

    The file is a .csv, .parquet, .npz or .mat, with or without labels. Columns are found by their names in training;
    other columns are ignored. If a model of raters finds a column of raters, each row is the prediction of that rater's
    vote. Intervals and sets of single raters are not calibrated, since calibration is of the population.

    Args:
        path: Path of the file, absolute, or relative to the working directory or the data folder.
        feature_key: Name of the features in a .mat or .npz file; None tries the name in training, then the usual names.
        item_column: Column that names the rows in ``predictions.csv``; None takes the first usual name, such as ``id``,
            if its entries differ and it is no feature.
        rater_column: Column of the rater whose vote is predicted; None takes the first usual name, such as ``rater``,
            that is no feature, and ``none`` predicts the population of raters.
    """

    path: str = option(kw_only=True, role="path")
    feature_key: str | None = None
    item_column: str | None = None
    rater_column: str | None = None

    instances: Inputs = buffer()
    has_missing = False

    def suits(self, input_shape: tuple[int, ...], preprocessing: dict[str, Any]) -> None:
        """Raise LDLError for a task that was not trained on a table."""
        if "scaling" not in preprocessing:
            raise LDLError("the checkpoint was not trained on a table; TableFile needs a model of tables")

    def load(self) -> Loaded:
        """Read and scale the rows. Raises LDLError."""
        labels, self.input_shape, preprocessing = self.trained
        file = check_found(self.find(self.path), self.path)
        self.instances = read_instances(file, self.input_shape, preprocessing, not self._bags, self.feature_key)
        rows = np.arange(self.instances.size)
        if not self._bags:
            self.has_missing = bool(self.instances.make(rows).isnan().any())
        names = self.instances.names or self._items(file, preprocessing.get("features") or [])
        return Loaded(labels, {"index": torch.from_numpy(rows)}, names=names)

    def _items(self, file: Path, features: list[str]) -> list[str] | None:
        """Return the item of every row; None if no column names them. Raises LDLError for an absent or missing item."""
        if (table := open_named(file, lambda row: self.item_column in row or bool(usual_columns(row, "item")))) is None:
            return None
        usual = [name for name in usual_columns(table.header, "item") if name not in features]
        entries = ((name, table.frame([name])[name]) for name in usual)
        column = self.item_column or next(
            (name for name, values in entries if values.is_unique and values.notna().all()), None
        )
        return None if column is None else list(map(str, table.groups(column, "which names no item")))

    def serve_votes(self, names: Sequence[str] = (), train: bool = False) -> None:
        """Add the column ``as_rater`` if the table has a column of raters.

        Raises:
            LDLError: The column is absent, or names no rater in some row, or another one than ``names``.
        """
        if self.rater_column == POPULATION:
            return
        file = check_found(self.find(self.path), self.path)
        table = open_named(file, lambda row: self.rater_column is not None or bool(usual_columns(row, "rater")))
        if (column := self._column_of_raters(table, file)) is None:
            return
        assert table is not None
        fix = f"--data.rater_column {POPULATION} predicts the population"
        raters = list(map(str, table.groups(column, f"which names no rater; {fix}")))
        numbers = rater_numbers(raters, names, f"{file}, column {column!r}", f"; {fix}")
        if process_rank() == 0 and "as_rater" not in self.columns:
            print(f"predictions are of the raters in column {column!r}, without calibration; {fix}", flush=True)
        self.columns = {**self.columns, "as_rater": torch.from_numpy(numbers)}
        self.facts = {**self.facts, "rater": np.array(raters, object)}

    def _column_of_raters(self, table: CsvTable | Parquet | None, file: Path) -> str | None:
        """Return the column of the raters of a table, or None. Raises LDLError for a file without named columns."""
        if self.rater_column is not None:
            if table is None:
                raise LDLError(f"{file} has no names of columns for data.rater_column; save it as .csv or .parquet")
            return self.rater_column
        features = self.trained[2].get("features") or []
        usual = () if table is None else usual_columns(table.header, "rater")
        return next((name for name in usual if name not in features), None)

    def predict_dataloader(self) -> DataLoader[Any]:
        """Return the batches of all rows. Raises LDLError if ``rater_column`` is set and the model has no raters."""
        if self.rater_column not in (None, POPULATION) and "as_rater" not in self.columns:
            raise LDLError(
                f"data.rater_column {self.rater_column!r}: the model has no raters; leave it out, or train with "
                "--model.raters bias or confusion"
            )
        return super().predict_dataloader()

    @property
    def _bags(self) -> bool:
        # NaN marks missing instances, so features may not be NaN.
        return len(self.input_shape) == 2

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the scaled instances ``rows``."""
        return self.instances.make(rows)


@options
class WholePictures(Unlabelled):
    """An image, or all images below a folder, for ``--stage predict`` with a model of maps; sizes may differ.

    Args:
        path: Path of the file or folder, absolute, or relative to the working directory or the data folder.
    """

    path: str = option(kw_only=True, role="path")

    instances: Inputs = buffer()

    def suits(self, input_shape: tuple[int, ...], preprocessing: dict[str, Any]) -> None:
        """Raise LDLError for a task that was not trained on whole images."""
        if len(input_shape) != 3 or preprocessing.keys() - {"dtype"}:
            raise LDLError("the checkpoint was not trained on whole images; leave data out")

    def load(self) -> Loaded:
        """List the images. Raises LDLError."""
        labels, self.input_shape, _ = self.trained
        self.instances = whole(self.find(self.path))
        return Loaded(labels, {}, names=self.instances.names)

    @property
    def eval_batch_size(self) -> int:
        """One image per process, because sizes differ."""
        return current_collective().world_size

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the images ``rows``, of one size."""
        return self.instances.make(rows)
