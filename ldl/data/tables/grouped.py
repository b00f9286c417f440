"""What data modules of tables with groups share: who names the groups, and the protocols that mind them."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
import torch

from ldl.data.order import OrderAudit, audit_order
from ldl.data.row_file import RowFile
from ldl.data.tables.on_disk import Storage
from ldl.data.tables.scaled import ScaledRows
from ldl.errors import LDLError
from ldl.options import option, options

GroupProtocol = Literal["group_exclusive", "leave_one_group_out", "random_kfold", "persons", "shuffled"]
MEANS = {"persons": "group_exclusive", "shuffled": "random_kfold"}
"""Other words for the same folds: where the groups are persons, and as the literature calls its own."""
AUDITED = 50_000
"""Rows of a table on disk whose order is looked at."""


@options
class GroupedRows(ScaledRows):
    """Rows that may have groups, such as persons. A subclass calls ``settle`` in ``load``.

    Args:
        group_key: Name of the groups, a key or a column of a .csv; None takes ``group`` or ``person`` where there is
            one.
        in_memory: Matrices of more MB than this, as float32, stay on disk, in .npy files, an .npz or Parquet.
        cache_dir: Folder of what has to be written anew, such as Parquet as rows that can be read in place; None takes
            the environment's ``LDL_CACHE``, or ``~/.cache/ldl``.
    """

    group_key: str | None = None
    in_memory: float = option(default=256.0, least=0)
    cache_dir: str | None = None
    protocol = "random_kfold"

    @property
    def storage(self) -> Storage:
        """Where the numbers of the table may lie."""
        return Storage(self.in_memory, self.cache_dir)

    def settle(self, groups: np.ndarray | None, needed: bool, hint: str | None = None) -> np.ndarray | None:
        """Note whether the protocol leaks; the groups, numbered from 0.

        Args:
            groups: (N,) of any type, or None where nobody knows them.
            needed: Whether the protocol cannot do without.
            hint: Why there are none.

        Raises:
            LDLError: groups are needed, and there are none.
        """
        if groups is None and needed:
            why = f" ({hint})" if hint else ""
            raise LDLError(
                f"{self.path} has no groups to leave out{why}; name them with data.group_key, or set another "
                f"data.protocol than {self.protocol}"
            )
        self.leaky = None if groups is None else self.rule == "random_kfold"
        return None if groups is None else np.unique(groups, return_inverse=True)[1]

    @property
    def rule(self) -> str:
        """The protocol by the first of its names."""
        return MEANS.get(self.protocol, self.protocol)

    @property
    def num_folds(self) -> int:
        if self.rule == "leave_one_group_out" and self.groups is not None:
            return len(np.unique(self.groups))
        return self.folds

    @cached_property
    def order_audit(self) -> OrderAudit | None:
        """What the order of the rows tells of groups, after ``setup``; None where the groups are known."""
        return audit_order(*self.audited) if self.groups is None else None

    @property
    def audited(self) -> tuple[np.ndarray, np.ndarray]:
        """Features (n, F) and labels (n, C) of the rows that audits look at: all, or a stretch of a table on disk."""
        features, rows = self.features, slice(None)
        if isinstance(features, RowFile):
            start = max(0, self.size - AUDITED) // 2
            rows = slice(start, start + AUDITED)
            features = features[rows].astype(np.float64)
        if self.values is not None:
            return features, self.values[rows].reshape(len(features), -1)
        return features, self.columns["target"][torch.arange(self.size)[rows]].numpy()
