"""Features and label distributions from a file."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ldl.data.tables.distributions import read_table
from ldl.data.tables.scaled import ScaledTable
from ldl.data.tables.scaling import Scaling
from ldl.errors import LDLError
from ldl.labels import LabelSpace


class TabularLDL(ScaledTable):
    """Features and label distributions from a .mat, .npz or .csv file.

    Every row is checked: numbers finite, mass not negative, sums 1.

    Args:
        path: The file: as it stands, or relative to the data folder.
        feature_key: Name of the features in a .mat or .npz file; None tries the usual ones.
        target_key: Name of the distributions, likewise.
        normalize: Divide rows of the distributions by their sums, instead of refusing sums other than 1.
        label_names: Names of the labels; None takes the file's, or their numbers.
        label_values: Rising values of the labels, which makes them ordinal and adds MAE and such.
        label_unit: Unit of ``label_values``.
        scaling: How features are scaled, learnt from the training part of each fold: ``standard`` (mean 0,
            deviation 1), ``hellinger`` (square roots, for histograms), ``quantile_normal`` or ``quantile_uniform``
            (ranks, mapped to such a distribution), or ``none``.
        clip: Scaled features are cut off at plus and minus this; None leaves them.
        download: Download a public set of this name (``ldl.data.tables.download.SETS``) where the file is not there.
        batch_size: Rows of a global batch, over all processes.
        num_workers: Loader processes, per training process.
        root: Folder of the data; None takes the environment's ``LDL_DATA``, or ``data``.
        folds: Number of folds.
        fold: The fold that is tested, from 0.
        fold_seed: Seed of the folds.
        val_fraction: Share of the training rows that is kept for validation; 0 trains on all.
    """

    def __init__(
        self,
        path: str,
        feature_key: str | None = None,
        target_key: str | None = None,
        normalize: bool = False,
        label_names: Sequence[str] | None = None,
        label_values: Sequence[float] | None = None,
        label_unit: str = "",
        scaling: Scaling = "standard",
        clip: float | None = None,
        download: bool = False,
        batch_size: int = 64,
        num_workers: int = 0,
        root: str | None = None,
        folds: int = 10,
        fold: int = 0,
        fold_seed: int = 0,
        val_fraction: float = 0.1,
    ) -> None:
        super().__init__(batch_size, num_workers, root, folds, fold, fold_seed, val_fraction)
        self.path = path
        self.feature_key = feature_key
        self.target_key = target_key
        self.normalize = normalize
        self.label_names = label_names
        self.label_values = label_values
        self.label_unit = label_unit
        self.scaling = scaling
        self.clip = clip
        self.download = download

    def load(self) -> None:
        """Read and check the file. Raises LDLError."""
        table = read_table(self.locate(), self.feature_key, self.target_key, self.normalize)
        self.features = table.features
        self.targets = torch.tensor(table.distributions, dtype=torch.float32)
        self.labels = self._label_space(table.names, table.distributions.shape[1])
        self.size, width = table.features.shape
        self.input_shape = (width,)

    def columns(self) -> dict[str, Tensor]:
        """The distributions of all rows."""
        return {"target": self.targets}

    def _label_space(self, names: list[str] | None, count: int) -> LabelSpace:
        for option, given in (("label_names", self.label_names), ("label_values", self.label_values)):
            if given is not None and len(given) != count:
                raise LDLError(f"data.{option} has {len(given)} entries, but the file has {count} labels")
        if self.label_values is not None:
            return LabelSpace.ordinal(self.label_values, self.label_unit)
        return LabelSpace.nominal(self.label_names or names or [str(number) for number in range(count)])
