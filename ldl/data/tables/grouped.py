"""What data modules of tables with groups share: who names the groups, and the protocols that mind them."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from ldl.data.order import OrderAudit, audit_order
from ldl.data.tables.scaled import ScaledRows
from ldl.errors import LDLError
from ldl.options import options

GroupProtocol = Literal["group_exclusive", "leave_one_group_out", "random_kfold", "persons", "shuffled"]
MEANS = {"persons": "group_exclusive", "shuffled": "random_kfold"}
"""Other words for the same folds: where the groups are persons, and as the literature calls its own."""


@options
class GroupedRows(ScaledRows):
    """Rows that may have groups, such as persons. A subclass calls ``settle`` in ``load``.

    Args:
        group_key: Name of the groups, a key or a column of a .csv; None takes ``group`` or ``person`` where there is
            one.
    """

    group_key: str | None = None
    protocol = "random_kfold"

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
        if self.groups is not None:
            return None
        labels = self.columns["target"].numpy() if self.values is None else np.reshape(self.values, (self.size, -1))
        return audit_order(self.features, labels)
