"""Annotations: votes of several annotators on items."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd  # not imported late: scikit-learn imports pandas anyway

from ldl.annotations.columns import Layout, matching_columns
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.moved import old_names
from ldl.tables.entries import spelling

__all__ = ["Annotations", "Layout", "matching_columns", "vote_counts"]


@dataclass(frozen=True, eq=False)
class Annotations:
    """Votes on N items for C labels.

    Attributes:
        items: (N,) key of each item, each once.
        labels: The label space.
        counts: (N, C) float64, at least 0, with a sum above 0 in every row.
        layout: The layout of the table.
        raters: (V,) rater of every vote; None if unknown.
        left_out: Number of items without a vote, which were left out.
        totals: Whether a column gave the number of votes of each item, so that counts need not be whole.
        groups: (N,) group of each item, such as a patient; None if unknown.
        percent: Whether the counts are shares that the table gives in whole percent.
        notes: Lines about what could be read in another way, each with the option that decides.
    """

    items: np.ndarray
    labels: LabelSpace
    counts: np.ndarray
    layout: Layout
    raters: np.ndarray | None = None
    left_out: int = 0
    totals: bool = False
    groups: np.ndarray | None = None
    percent: bool = False
    notes: tuple[str, ...] = ()

    @property
    def votes(self) -> np.ndarray:
        """Votes of each item, (N,)."""
        return self.counts.sum(1)

    @property
    def shares(self) -> np.ndarray:
        """Label distribution of each item, (N, C)."""
        return self.counts / self.votes[:, None]

    @property
    def whole(self) -> bool:
        """Whether all counts are whole numbers, that is votes and not shares."""
        return bool((self.counts == np.round(self.counts)).all())

    @property
    def counted(self) -> bool:
        """Whether the number of votes of each item is known."""
        return self.totals or (self.whole and not self.percent)

    def over(self, labels: LabelSpace) -> Annotations:
        """Return the annotations over a larger label space, which has labels of the same names and others."""
        counts = np.zeros((len(self), len(labels)))
        counts[:, [labels.names.index(name) for name in self.labels.names]] = self.counts
        return replace(self, labels=labels, counts=counts)

    def join(
        self,
        keys: Sequence[Any] | np.ndarray,
        source: str,
        unlabelled: Literal["drop", "error"] = "drop",
        unknown_items: Literal["error", "drop"] = "error",
    ) -> tuple[Annotations, np.ndarray]:
        """Return the annotations in the order of a table, and the numbers (n,) of its rows that have votes, rising.

        Args:
            keys: Item of every row of the table, compared by its :func:`ldl.tables.entries.spelling`.
            source: Name of the table, for messages.
            unlabelled: Whether rows without votes are left out or an error.
            unknown_items: Whether votes for items that are not in the table are an error or left out, such as those for
                questions that test the raters.

        Raises:
            LDLError: Votes for an item that is not in the table, unless they are left out; no votes for items in the
                table; an item in two rows of the table; or, with ``unlabelled`` ``error``, a row without votes.
        """
        index = pd.Index(spellings(keys), dtype=object)
        if (twice := index.duplicated()).any():
            raise LDLError(
                f"{source}: {int(twice.sum())} rows repeat an item, the first is {index[twice][0]!r}; give every "
                "item one row"
            )
        positions = index.get_indexer(pd.Index(spellings(self.items), dtype=object))
        lost, notes = positions < 0, self.notes
        if lost.any():
            message = (
                f"{int(lost.sum())} of {len(self)} items with votes are not in {source}, the first is "
                f"{str(self.items[lost][0])!r}" + (f", where the table has {index[0]!r}" if len(index) else "")
            )
            if unknown_items == "error" or lost.all():
                fix = "" if lost.all() else ", or pass unknown_items drop to leave them out"
                raise LDLError(f"{message}; correct the keys{fix}")
            warnings.warn(f"{message}; they are left out", stacklevel=2)
            notes = (*notes, f"{message}; they are left out")
        order = np.argsort(positions, kind="stable")[int(lost.sum()) :]
        missing = len(index) - len(order)
        if missing and unlabelled == "error":
            first = index[np.setdiff1d(np.arange(len(index)), positions)[0]]
            raise LDLError(
                f"{source}: {missing} items have no vote, the first is {first!r}; remove them, or pass "
                "unlabelled='drop'"
            )
        groups = None if self.groups is None else self.groups[order]
        joined = replace(
            self, items=self.items[order], counts=self.counts[order], left_out=missing, groups=groups, notes=notes
        )
        return joined, positions[order]

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        votes, kind = self.votes, "votes" if self.counted else "shares"
        raters = ", raters unknown" if self.layout == "long" else ""
        if self.raters is not None:
            raters = f", {len(pd.unique(self.raters))} raters"
        left = f"; {self.left_out} items without a vote are left out" if self.left_out else ""
        low, high = votes.min(), votes.max()
        each = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        return (
            f"{self.layout} layout, {len(self)} items, {len(self.labels)} {self.labels.kind} labels, "
            f"{each} {kind} an item{raters}{left}"
        )


def spellings(entries: Any) -> np.ndarray:
    """Return the :func:`ldl.tables.entries.spelling` of each entry, (N,) object."""
    cache: dict[str, str] = {}
    spelled = np.empty(len(entries), object)
    for row, entry in enumerate(pd.Series(entries).astype(object).to_numpy()):
        if type(entry) is str:
            spelled[row] = cache[entry] if entry in cache else cache.setdefault(entry, spelling(entry))
        else:
            spelled[row] = spelling(entry)
    return spelled


def vote_counts(shares: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Return the votes (n, C) on items with observed shares (n, C) of float32 and numbers of votes (n,).

    Counts that are whole up to the precision of the shares are rounded.
    """
    votes = np.asarray(votes, np.float64)[:, None]
    counts = np.asarray(shares, np.float64) * votes
    near = np.round(counts)
    return near if (np.abs(counts - near) < 1e-3 + 1e-6 * votes).all() else counts


__getattr__ = old_names(__name__)
