"""FG-NET's features of an active appearance model, a table of values."""

from __future__ import annotations

import numpy as np

from ldl.data.tables.module import GroupProtocol
from ldl.data.tables.reading import LabelledTable
from ldl.data.tables.scaling import Scaling
from ldl.data.tables.tabular_values import TabularValues
from ldl.data.text import USUAL_TEXT
from ldl.errors import LDLError
from ldl.options import options

IMAGES = (
    [15, 16, 12, 12, 11, 12, 9, 15, 13, 12, 14, 15, 12, 10, 13, 13, 13, 11, 10, 13, 12, 13, 12, 11, 12, 11, 11, 11]
    + [13, 11, 13, 12, 11, 13, 14, 13, 12, 14, 14, 14, 10, 13, 11, 10, 13, 13, 14, 16, 10, 8, 11, 11, 13, 13, 8, 8]
    + [10, 11, 9, 12, 13, 12, 10, 6, 15, 12, 10, 10, 11, 11, 13, 14, 16, 16, 10, 18, 16, 16, 14, 14, 12, 11]
)
"""Number of images of each of FG-NET's 82 subjects; the file's rows are sorted by subject but do not name them."""


@options
class FGNETAAM(TabularValues):
    """FG-NET (Lanitis et al. 2002) as 251 features of an active appearance model, ``ldl/FG-NET_AAM.mat``.

    Geng's file has features and ages of 1,002 images, sorted by subject. The features are principal components, whose
    scale carries information; therefore they are not scaled.

    Protocols: ``leave_one_group_out`` (82 folds, one subject each), ``group_exclusive``, ``random_kfold`` (leaks).

    Args:
        low: Lowest age of the label space.
        high: Highest age.
        sigma: Standard deviation of the label distributions, in years.
    """

    path: str = "ldl/FG-NET_AAM.mat"
    protocol: GroupProtocol = "leave_one_group_out"
    low: float = 0
    high: float = 69
    sigma: float = 2.0
    scaling: Scaling = "none"
    batch_size: int = 256
    val_fraction: float = 0.0
    feature_key = "features"
    value_key = "age"
    group_key = split_column = None
    step = 1.0
    unit = "years"
    download = False
    missing = "refuse"
    feature_columns = ()
    drop = ()
    category_columns = ()
    text_columns = ()
    text_encoder, text_tokens = USUAL_TEXT
    in_memory = 256.0
    cache_dir = None

    def read(self) -> LabelledTable:
        """Read the table, with the subjects. Raises LDLError for another number of images."""
        table = super().read()
        if (count := len(table.target)) != sum(IMAGES):
            raise LDLError(
                f"{self.path} has {count} rows, not FG-NET's {sum(IMAGES)}; for another table use TabularValues"
            )
        return LabelledTable(table.features, table.target, np.repeat(np.arange(1, len(IMAGES) + 1), IMAGES))
