"""Annotations: votes of several annotators on items."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd  # not imported late: scikit-learn imports pandas anyway

from ldl.annotations.columns import Layout, matching_columns
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.moved import old_names
from ldl.tables.entries import spelling

__all__ = ["Annotations", "Layout", "SingleVotes", "matching_columns", "vote_counts"]


class SingleVotes(NamedTuple):
    """V single votes, one entry a vote, in the order of the table.

    Attributes:
        item: (V,) int64 row of the item in ``Annotations.items``.
        rater: (V,) int64 row of the rater in ``names``.
        label: (V,) int64 number of the label.
        names: (R,) key of each rater, each once. A subset of the votes keeps the numbers of all raters.

    Examples:
        >>> import pandas as pd
        >>> from ldl.annotations import read_annotations
        >>> votes = pd.DataFrame({"item": ["a", "a", "b"], "rater": ["x", "y", "x"], "label": ["cat", "dog", "dog"]})
        >>> single = read_annotations(votes).single
        >>> single.names[single.rater], single.label
        (array(['x', 'y', 'x'], dtype=object), array([0, 1, 1]))
    """

    item: np.ndarray
    rater: np.ndarray
    label: np.ndarray
    names: np.ndarray

    def take(self, rows: np.ndarray) -> SingleVotes:
        """Return the votes on the items ``rows`` (n,), each given once; their first item becomes item 0."""
        position = np.full(max(self.item.max(initial=-1), rows.max(initial=-1)) + 1, -1)
        position[rows] = np.arange(len(rows))
        item = position[self.item]
        kept = item >= 0
        return SingleVotes(item[kept], self.rater[kept], self.label[kept], self.names)

    def counts(self, items: int, labels: int) -> np.ndarray:
        """Return the number of votes (items, labels) on each of ``items`` items for each of ``labels`` labels."""
        cells = np.bincount(self.item * labels + self.label, minlength=items * labels)
        return cells.reshape(items, labels)

    def relabel(self, places: np.ndarray) -> SingleVotes:
        """Return the votes with the label ``places[k]`` in place of the label k."""
        return self._replace(label=places[self.label])


@dataclass(frozen=True, eq=False)
class Annotations:
    """Votes on N items for C labels.

    Attributes:
        items: (N,) key of each item, each once.
        labels: The label space.
        counts: (N, C) float64, at least 0, with a sum above 0 in every row.
        layout: The layout of the table.
        single: The single votes with their raters; None if raters are unknown.
        left_out: Number of items without a vote, which were left out.
        totals: Whether a column gave the number of votes of each item, so that counts need not be whole.
        groups: (N,) group of each item, such as a patient; None if unknown.
        percent: Whether the counts are shares that the table gives in whole percent.
        notes: Lines about what could be read in another way, each with the option that decides.

    Examples:
        >>> import pandas as pd
        >>> from ldl.annotations import read_annotations
        >>> votes = pd.DataFrame({"item": ["a", "a", "b"], "rater": ["x", "y", "x"], "label": ["cat", "dog", "dog"]})
        >>> annotations = read_annotations(votes)
        >>> annotations.labels.names, annotations.shares
        (('cat', 'dog'), array([[0.5, 0.5],
               [0. , 1. ]]))
    """

    items: np.ndarray
    labels: LabelSpace
    counts: np.ndarray
    layout: Layout
    single: SingleVotes | None = None
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
    def raters(self) -> np.ndarray | None:
        """Rater of every vote, (V,); None if unknown."""
        return None if self.single is None else self.single.names[self.single.rater]

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
        places = np.array([labels.names.index(name) for name in self.labels.names])
        counts = np.zeros((len(self), len(labels)))
        counts[:, places] = self.counts
        single = None if self.single is None else self.single.relabel(places)
        return replace(self, labels=labels, counts=counts, single=single)

    def arranged(self, labels: LabelSpace, places: Sequence[int]) -> Annotations:
        """Return the annotations with other ``labels``, whose columns stand at ``places`` (C,) of the present ones."""
        columns = np.array(places)
        single = None if self.single is None else self.single.relabel(np.argsort(columns))
        return replace(self, labels=labels, counts=self.counts[:, columns], single=single)

    def take(self, rows: np.ndarray) -> Annotations:
        """Return the annotations of the items ``rows`` (n,), each given once, in this order."""
        single = None if self.single is None else self.single.take(rows)
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, items=self.items[rows], counts=self.counts[rows], single=single, groups=groups)

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
        return replace(self.take(order), left_out=missing, notes=notes), positions[order]

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        votes, kind = self.votes, "votes" if self.counted else "shares"
        raters = ", raters unknown" if self.layout == "long" else ""
        if self.single is not None:
            raters = f", {len(np.unique(self.single.rater))} raters"
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
