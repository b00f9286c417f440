"""The features that a trained model takes, found in arrays, data frames and files without labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ldl.data.names import FEATURE_KEYS, as_number, find_name
from ldl.data.tables.arrays import open_arrays
from ldl.data.tables.checks import check_matrix
from ldl.data.tables.columns import Encoding
from ldl.errors import LDLError, did_you_mean, some
from ldl.labels import LABEL_PREFIX
from ldl.tables import CsvTable, Parquet, open_named
from ldl.tables.entries import as_array, check_distinct_names, to_numbers


@dataclass(frozen=True)
class FeatureColumns:
    """The features that a model takes.

    If their names are known, columns are found by name, in any order, and other columns such as labels are ignored. An
    array has no names: its features must have the order of training.

    Attributes:
        count: Number of features.
        names: Their names, if the training table had any.
        key: Name of the feature matrix in training. If it is absent or None, the usual names are tried.
        missing: Accept NaN.
        override: Name of the feature matrix that is taken in place of ``key``.
        encoding: How the columns become features, if they are not all numbers; ``names`` are then its columns. All
            methods return encoded features, whose number may differ from ``count``.
    """

    count: int
    names: Sequence[str] | None = None
    key: str | None = None
    missing: bool = False
    override: str | None = None
    encoding: Encoding | None = None

    @classmethod
    def of_model(
        cls, count: int, preprocessing: dict[str, Any], missing: bool = False, override: str | None = None
    ) -> Self:
        """Return the features of a model from the ``preprocessing`` in its checkpoint."""
        if (state := preprocessing.get("encoding")) is None:
            return cls(count, preprocessing.get("features"), preprocessing.get("key"), missing, override)
        encoding = Encoding.from_state(state)
        return cls(len(encoding.columns), encoding.inputs, None, missing, override, encoding)

    def of_array(self, array: Any, source: str = "inputs") -> np.ndarray:
        """Convert an array or a tensor to (N, F) float64. Raises LDLError for another shape, text, infinity or NaN."""
        if self.encoding is not None:
            return self._encoded(as_array(array), source)
        array = np.asarray(check_matrix(source, "features", as_array(array), self.missing))
        if array.shape[1] != self.count:
            named = f" ({some(self.names)})" if self.names else ""
            if len(array) == self.count:
                raise LDLError(
                    f"{source}: features have shape {array.shape}, and the model takes (N, {self.count}){named}, one "
                    "row a sample; transpose them, features.T"
                )
            raise LDLError(
                f"{source}: {array.shape[1]} features a row, but the model takes {self.count}{named}; give those of "
                "training, in the same order"
            )
        return array

    def of_frame(self, frame: Any, source: str = "inputs") -> np.ndarray:
        """Return the features in a pandas data frame, (N, F) float64. Raises LDLError for missing or text columns."""
        wanted = self.pick([str(name) for name in frame.columns], source)
        if self.encoding is not None:
            return self._encoded(frame.iloc[:, wanted].set_axis(self.names, axis=1), source)
        columns = [
            to_numbers(frame.iloc[:, position], f"{source}: column {frame.columns[position]!r} is")
            for position in wanted
        ]
        return self.of_array(np.stack(columns, 1), source)

    def _encoded(self, frame: Any, source: str) -> np.ndarray:
        """Return the features of a frame, or of an array (N, columns) of any objects. Raises LDLError."""
        assert self.encoding is not None
        if isinstance(frame, np.ndarray):
            import pandas

            if frame.ndim != 2 or frame.shape[1] != self.count:
                raise LDLError(
                    f"{source} have shape {frame.shape}, but the model takes (N, {self.count}), with the columns "
                    f"{some(self.names or [], 20)}; a data frame is best"
                )
            frame = pandas.DataFrame(frame, columns=self.names)
        for note in self.encoding.notes(frame, source):
            warnings.warn(note, stacklevel=2)
        features = self.encoding.transform(frame, source)
        return np.asarray(check_matrix(source, "features", features, self.missing))

    def of_file(self, path: Path) -> np.ndarray:
        """Return the features in a .csv, .npz, .mat or Parquet file, (N, F) float64. Raises LDLError."""
        if (table := open_named(path)) is not None:
            return self.of_table(table)
        arrays = open_arrays(path)
        key = self.override or (self.key if self.key in arrays else None)
        name = find_name(path, arrays, "features", "feature_key", key, FEATURE_KEYS)
        return self.of_array(arrays[name], str(path))

    def of_table(self, table: CsvTable | Parquet, *others: str) -> np.ndarray:
        """Return the features in the columns of a file without ``others``, (N, F) float64. Raises LDLError."""
        if not len(table):
            raise LDLError(f"{table.path} has no rows")
        header = [name for name in table.header if name not in others]
        wanted = [header[position] for position in self.pick(header, str(table.path))]
        if self.encoding is not None:
            numbers = [column.name for column in self.encoding.columns if column.kind == "number"]
            matrix = table.numbers(numbers, missing=True) if numbers else np.empty((len(table), 0))
            frame = table.texts([name for name in wanted if name not in numbers])
            return self._encoded(frame.assign(**dict(zip(numbers, matrix.T))), str(table.path))
        return self.of_array(table.numbers(wanted, missing=self.missing), str(table.path))

    def pick(self, header: Sequence[str], source: str) -> list[int]:
        """Return the positions of the features among named columns.

        If the names of the features are unknown, all columns not named ``label:NAME`` are features, in their order, or
        by their numbers if these are 0, 1, 2, ... or 1, 2, 3, ... in any order.

        Args:
            header: Names of the columns.
            source: Their origin, for messages.

        Raises:
            LDLError: A feature is absent or occurs twice, or the number of columns differs.
        """
        if self.names is None:
            positions = [position for position, name in enumerate(header) if not name.startswith(LABEL_PREFIX)]
            if len(positions) != self.count:
                raise LDLError(
                    f"{source}: {len(positions)} columns ({some(header)}), but the model takes {self.count} features, "
                    "whose names are unknown; give these columns alone, in the order of training"
                )
            return self._by_number(positions, header, source)
        present, wanted = set(header), set(self.names)
        if lacking := [name for name in self.names if name not in present]:
            near = did_you_mean(lacking[0], [name for name in header if name not in wanted])
            raise LDLError(
                f"{source}: no column {some(lacking)}, which the model was trained on{near}; there are {some(header)}"
            )
        check_distinct_names((name for name in header if name in wanted), source)
        position_of = {name: position for position, name in enumerate(header)}
        return [position_of[name] for name in self.names]

    def _by_number(self, positions: list[int], header: Sequence[str], source: str) -> list[int]:
        """Return positions in the order of numbers that name the columns. Raises LDLError if numbers are no count."""
        parsed = {position: as_number(header[position]) for position in positions}
        numbers = {position: number for position, number in parsed.items() if number is not None}
        if len(numbers) < len(parsed):
            return positions
        in_order = sorted(positions, key=numbers.__getitem__)
        rising, count = [numbers[position] for position in in_order], len(positions)
        if rising not in (list(range(count)), list(range(1, count + 1))):
            raise LDLError(
                f"{source}: its columns are the numbers {some(header)}, and the features were trained without names; "
                "a .csv needs a row of names, and numbers count the features from 0 or 1"
            )
        return in_order
