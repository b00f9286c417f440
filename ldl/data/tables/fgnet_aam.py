"""FG-NET as the appearance model's features that Geng published."""

from __future__ import annotations

import numpy as np

from ldl.data.tables.scaling import Scaling
from ldl.data.tables.tabular_values import TabularValues, ValueProtocol
from ldl.data.tables.values import ValueTable
from ldl.errors import LDLError
from ldl.labels import Encoder

IMAGES = (
    [15, 16, 12, 12, 11, 12, 9, 15, 13, 12, 14, 15, 12, 10, 13, 13, 13, 11, 10, 13, 12, 13, 12, 11, 12, 11, 11, 11]
    + [13, 11, 13, 12, 11, 13, 14, 13, 12, 14, 14, 14, 10, 13, 11, 10, 13, 13, 14, 16, 10, 8, 11, 11, 13, 13, 8, 8]
    + [10, 11, 9, 12, 13, 12, 10, 6, 15, 12, 10, 10, 11, 11, 13, 14, 16, 16, 10, 18, 16, 16, 14, 14, 12, 11]
)
"""Images of each of FG-NET's 82 persons, by number; the file's rows run by person but do not name them."""


class FGNETAAM(TabularValues):
    """FG-NET (Lanitis et al. 2002) as 251 features of an active appearance model, ``ldl/FG-NET_AAM.mat``.

    The file has features and ages of 1,002 images, person by person. They are principal components: their scale
    carries information, so that they are left as they are.

    Protocols: ``leave_one_group_out`` (82 folds, one person each), ``group_exclusive``, ``random_kfold`` (leaks).

    Args:
        path: The file: as it stands, or relative to the data folder.
        protocol: How training and test rows are told apart.
        low: Lowest age of the label space.
        high: Highest age.
        sigma: Standard deviation of the label distributions, in years.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.
        scaling: How features are scaled, see ``TabularLDL``.
        clip: Scaled features are cut off at plus and minus this; None leaves them.
        batch_size: Rows of a global batch, over all processes.
        num_workers: Loader processes, per training process.
        root: Folder of the data; None takes the environment's ``LDL_DATA``, or ``data``.
        folds: Number of folds, for protocols that leave it open.
        fold: The fold that is tested, from 0.
        fold_seed: Seed of the folds.
        val_fraction: Share of the training persons, or rows, that is kept for validation; 0 trains on all.
    """

    def __init__(
        self,
        path: str = "ldl/FG-NET_AAM.mat",
        protocol: ValueProtocol = "leave_one_group_out",
        low: float = 0,
        high: float = 69,
        sigma: float = 2.0,
        encoder: Encoder = "gaussian",
        scaling: Scaling = "none",
        clip: float | None = None,
        batch_size: int = 256,
        num_workers: int = 0,
        root: str | None = None,
        folds: int = 10,
        fold: int = 0,
        fold_seed: int = 0,
        val_fraction: float = 0.0,
    ) -> None:
        super().__init__(
            path, "features", "age", None, protocol, low, high, 1.0, "years", sigma, encoder, scaling, clip, False,
            batch_size, num_workers, root, folds, fold, fold_seed, val_fraction,
        )  # fmt: skip

    def read(self) -> ValueTable:
        """The table, with the persons. Raises LDLError for a file of another number of images."""
        table = super().read()
        if len(table.values) != sum(IMAGES):
            raise LDLError(
                f"{self.path} has {len(table.values)} rows, not FG-NET's {sum(IMAGES)}; for another table use "
                "TabularValues"
            )
        return ValueTable(table.features, table.values, np.repeat(np.arange(1, len(IMAGES) + 1), IMAGES))
