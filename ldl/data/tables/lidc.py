"""LIDC-IDRI: lung nodules that up to four radiologists have rated."""

from __future__ import annotations

from typing import Literal

from ldl.data.base import Loaded
from ldl.data.sources import check_set
from ldl.data.tables.module import GroupProtocol
from ldl.data.tables.tabular import TabularLDL
from ldl.data.text import USUAL_TEXT
from ldl.options import options

Rating = Literal[
    "subtlety", "internal_structure", "calcification", "sphericity", "margin", "lobulation", "spiculation", "texture"
]


@options
class LIDC(TabularLDL):
    """LIDC-IDRI (Armato et al. 2011) as a table: 2,673 lung nodules with one to four ratings each.

    ``nodules.csv`` has the geometry of each nodule in mm, and ``readings.csv`` one row for each reading of a nodule by
    a radiologist. The label distribution of a nodule is that of its ratings, malignancy from 1 to 5 by default.

    Protocols: ``group_exclusive`` (``folds`` folds of whole patients), ``leave_one_group_out`` (one fold per patient),
    ``random_kfold`` (random nodules, which leaks patients).

    Args:
        path: The file of nodules; ``readings.csv`` lies beside it.
        vote_column: The rating.
    """

    path: str = "lidc/nodules.csv"
    protocol: GroupProtocol = "group_exclusive"
    vote_column: Literal["malignancy"] | Rating = "malignancy"
    group_key = "patient"
    item_column = "item"
    rater_column = "reading"
    drop = ("readings",)
    feature_columns = text_columns = label_columns = rater_columns = rater_features = label_order = ()
    text_encoder, text_tokens = USUAL_TEXT
    votes = votes_column = votes_item_column = split_column = raters = None
    feature_key = target_key = label_names = label_values = None
    label_unit, label_type, no_vote = "", "ordinal", ()
    duplicates, multiple, unknown_items = "error", "error", "error"
    normalize = download = False
    in_memory = 256.0
    cache_dir = None

    def load(self) -> Loaded:
        """Read both files. Raises LDLError."""
        files = self.find(self.path), self.find(self.path).with_name("readings.csv")
        for file in files:
            check_set(file.is_file(), "LIDC", file)
        self.votes = str(files[1])
        return super().load()
