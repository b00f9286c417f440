"""Features and label distributions from a file."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ldl.data.loaded import Loaded
from ldl.data.tables.distributions import read_table
from ldl.data.tables.scaled import ScaledRows
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import options


@options
class TabularLDL(ScaledRows):
    """Features and label distributions from a .mat, .npz or .csv file.

    Every row is checked: numbers finite, mass not negative, sums 1.

    Args:
        feature_key: Name of the features in a .mat or .npz file; None tries the usual ones.
        target_key: Name of the distributions, likewise.
        normalize: Divide rows of the distributions by their sums, instead of refusing sums other than 1.
        label_names: Names of the labels; None takes the file's, or their numbers.
        label_values: Rising values of the labels, which makes them ordinal and adds MAE and such.
        label_unit: Unit of ``label_values``.
    """

    feature_key: str | None = None
    target_key: str | None = None
    normalize: bool = False
    label_names: Sequence[str] | None = None
    label_values: Sequence[float] | None = None
    label_unit: str = ""

    def load(self) -> Loaded:
        """Read and check the file. Raises LDLError."""
        table = read_table(self.file, self.feature_key, self.target_key, self.normalize, self.missing == "keep")
        self.features = table.features
        labels = self._label_space(table.names, table.distributions.shape[1])
        return Loaded(labels, {"target": torch.tensor(table.distributions, dtype=torch.float32)})

    def _label_space(self, names: list[str] | None, count: int) -> LabelSpace:
        for name, given in (("label_names", self.label_names), ("label_values", self.label_values)):
            if given is not None and len(given) != count:
                raise LDLError(f"TabularLDL.{name} has {len(given)} entries, but the file has {count} labels")
        if self.label_values is not None:
            return LabelSpace.ordinal(self.label_values, self.label_unit)
        return LabelSpace.nominal(self.label_names or names or [str(number) for number in range(count)])
