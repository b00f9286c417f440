"""The features that a trained model takes, found in arrays, data frames and files whose rows nobody has labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ldl.data.arrays import as_array
from ldl.data.csv_table import CsvTable, read_csv
from ldl.data.files import check_file
from ldl.data.tables.checks import check_matrix
from ldl.data.tables.distributions import FEATURE_KEYS, LABEL_PREFIX, find_name, read_file
from ldl.errors import LDLError, did_you_mean, some

SUFFIXES = (".csv", ".parquet", ".npz", ".mat")
"""Of files of features."""


@dataclass(frozen=True)
class FeatureColumns:
    """Which features a model takes, and how they are called.

    Where names are known, columns are found by them, in any order, and others are left alone, such as labels; an array
    has no names, and needs the features in the order of training.

    Attributes:
        count: Number of features.
        names: Their names, where the table of training had some.
        key: What the matrix of features was called in training; where it is not there, or None, the usual names are.
        missing: Whether features may be NaN.
        given: What it is called in any case; None looks for ``key``.
    """

    count: int
    names: Sequence[str] | None = None
    key: str | None = None
    missing: bool = False
    given: str | None = None

    def of_array(self, array: Any, source: str = "inputs") -> np.ndarray:
        """An array, or a tensor, as (N, F) float64. Raises LDLError for another shape, text, infinities and NaN."""
        array = np.asarray(check_matrix(source, "features", as_array(array), self.missing))
        if array.shape[1] != self.count:
            raise LDLError(
                f"{source}: {array.shape[1]} features a row, but the model takes {self.count}{self._named}; give those "
                "of training, in the same order"
            )
        return array

    def of_frame(self, frame: Any, source: str = "inputs") -> np.ndarray:
        """The features in a data frame of pandas, (N, F) float64. Raises LDLError for columns missing, or of text."""
        columns = []
        for name in self.pick([str(name) for name in frame.columns], source):
            column = frame.iloc[:, name]
            try:
                columns.append(np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan)))
            except (TypeError, ValueError):
                what = f"column {column.name!r} is {column.dtype}"
                raise LDLError(f"{source}: {what}, which are no numbers; encode it as in training") from None
        return self.of_array(np.stack(columns, 1), source)

    def of_file(self, path: Path) -> np.ndarray:
        """The features in a .csv, .parquet, .npz or .mat file, (N, F) float64, labelled or not. Raises LDLError."""
        if path.suffix.lower() == ".parquet":
            return self.of_frame(read_parquet(path), str(path))
        if path.suffix.lower() == ".csv":
            return self.of_table(read_file(path, read_csv))
        return self.of_array(read_file(path, read_csv, self._matrix), str(path))

    def of_table(self, table: CsvTable) -> np.ndarray:
        """The features in the fields of a .csv, (N, F) float64. Raises LDLError."""
        if not table.rows:
            raise LDLError(f"{table.path} has no rows")
        wanted = [table.header[place] for place in self.pick(table.header, str(table.path))]
        return self.of_array(table.numbers(wanted, missing=self.missing), str(table.path))

    def pick(self, header: Sequence[str], source: str) -> list[int]:
        """Where the features are among named columns.

        Raises LDLError for features that are missing, or there twice, or, where the model does not know their names,
        for columns of another number; those named ``label:NAME`` are not counted.
        """
        if self.names is None:
            places = [place for place, name in enumerate(header) if not name.startswith(LABEL_PREFIX)]
            if len(places) != self.count:
                raise LDLError(
                    f"{source}: {len(places)} columns ({some(header)}), but the model takes {self.count} features, "
                    "whose names it does not know; give these alone, in the order of training"
                )
            return places
        counts, wanted = Counter(header), set(self.names)
        if lacking := [name for name in self.names if name not in counts]:
            near = did_you_mean(lacking[0], [name for name in header if name not in wanted])
            raise LDLError(
                f"{source}: no column {some(lacking)}, which the model was trained on{near}; there are {some(header)}"
            )
        if doubled := [name for name in self.names if counts[name] > 1]:
            raise LDLError(f"{source}: column {doubled[0]!r} is there twice; give every column a name of its own")
        place_of = {name: place for place, name in enumerate(header)}
        return [place_of[name] for name in self.names]

    def _matrix(self, path: Path, arrays: Mapping[str, Any]) -> Any:
        given = self.given or (self.key if self.key in arrays else None)
        return arrays[find_name(path, arrays, "features", "feature_key", given, FEATURE_KEYS)]

    @property
    def _named(self) -> str:
        return f" ({some(self.names)})" if self.names else ""


def read_parquet(path: Path) -> Any:
    """A Parquet file as a data frame. Raises LDLError where it cannot be read, or pandas cannot read such."""
    check_file(path, "data file")
    try:
        import pandas

        return pandas.read_parquet(path)
    except ImportError:
        raise LDLError(f"{path}: reading Parquet needs pandas and pyarrow; pip install 'ldl[parquet]'") from None
    except Exception as error:  # those of pyarrow have no common base
        raise LDLError(f"{path} cannot be read as Parquet: {' '.join(str(error).split())[:200]}") from error
