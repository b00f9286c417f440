"""The columns of a table of annotations: its layout, and which columns hold items, raters and votes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from ldl.errors import LDLError, did_you_mean, some
from ldl.labels import LABEL_PREFIX
from ldl.tables.roles import Role, usual_columns

Layout = Literal["counts", "long", "matrix"]


@dataclass(frozen=True)
class VoteColumns:
    """Columns of a table of annotations.

    Attributes:
        layout: The layout.
        item: Column that names the item, or None if each row is an item.
        rater: Column of the rater in the long layout; None if raters are unknown.
        vote: Column of the label in the long layout.
        labels: Columns of the labels in the layout of counts.
        raters: Columns of the raters in a matrix.
        total: Column with the number of votes, in the layout of counts.
        group: Column of the group of the item, or None.
        beside: Columns that describe votes, such as a rater's confidence, and are neither votes nor features.
    """

    layout: Layout
    item: Any = None
    rater: Any = None
    vote: Any = None
    labels: tuple[Any, ...] = ()
    raters: tuple[Any, ...] = ()
    total: Any = None
    group: Any = None
    beside: tuple[Any, ...] = ()

    @property
    def all(self) -> list[Any]:
        """All columns of the annotations, none of which is a feature."""
        single = (self.item, self.rater, self.vote, self.total, self.group)
        return [name for name in single if name is not None] + [*self.labels, *self.raters, *self.beside]


def find_columns(
    header: Iterable[Any],
    source: str,
    layout: Layout | None = None,
    *,
    item_column: Any = None,
    rater_column: Any = None,
    vote_column: Any = None,
    label_columns: Sequence[Any] | Any = (),
    rater_columns: Sequence[Any] | Any = (),
    votes_column: Any = None,
    group_column: Any = None,
) -> VoteColumns:
    """Find the columns of annotations by names that are given, or else by usual names.

    Without ``layout``, it is ``counts`` if there are label columns, ``matrix`` with ``rater_columns``, and ``long`` if
    there is a column of votes. See :func:`ldl.annotations.read_annotations` for the options.

    Raises:
        LDLError: A given column is absent, or no layout fits.
    """
    header = list(header)

    def single(given: Any, role: Role | None) -> Any:
        if given is not None and given not in header:
            raise LDLError(f"{source} has no column {given!r}{did_you_mean(str(given), map(str, header))}")
        return given if given is not None or role is None else next(iter(usual_columns(header, role)), None)

    labels = _label_columns(header, label_columns, source)
    raters = matching_columns(header, rater_columns, source)
    item, rater, vote = single(item_column, "item"), single(rater_column, "rater"), single(vote_column, "vote")
    total, group = single(votes_column, None), single(group_column, None)
    if layout is None:
        layout = "counts" if labels else "matrix" if raters else "long"
    if layout == "counts" and labels:
        return VoteColumns(layout, item, labels=tuple(labels), total=total, group=group)
    if layout == "matrix" and raters:
        return VoteColumns(layout, item, raters=tuple(raters), group=group)
    if layout == "long" and item is not None and vote is not None:
        return VoteColumns(layout, item, rater, vote, group=group)
    absent = [name for name, column in (("item_column", item), ("vote_column", vote)) if column is None]
    missing = {
        "counts": "label columns; name them label:NAME, or pass label_columns",
        "matrix": "rater columns; pass rater_columns",
        "long": f"{' and '.join(absent)}; pass the names, or label_columns for counts, or rater_columns for a matrix",
    }
    raise LDLError(f"{source} has no {missing[layout]}. It has {some([str(column) for column in header])}")


def matching_columns(header: Iterable[Any], patterns: Sequence[Any] | Any, source: str) -> list[Any]:
    """Return the columns that match a name or pattern, in the order of the header. Raises LDLError for other names."""
    header, patterns = list(header), [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in patterns:
        if not any(_matches(column, pattern) for column in header):
            raise LDLError(f"{source} has no column {pattern!r}{did_you_mean(str(pattern), map(str, header))}")
    return [column for column in header if any(_matches(column, pattern) for pattern in patterns)]


def _matches(column: Any, pattern: Any) -> bool:
    # The name of a column may contain [ and ].
    return bool(column == pattern) or str(column) == str(pattern) or fnmatchcase(str(column), str(pattern))


def _label_columns(header: list[Any], patterns: Sequence[Any] | Any, source: str) -> list[Any]:
    """Return the columns of labels. Raises LDLError if a pattern for numbered columns matches others too."""
    matches = matching_columns(header, patterns, source)
    names = [patterns] if isinstance(patterns, str) else list(patterns)
    others = [str(column) for column in matches if column not in names and not str(column)[-1:].isdigit()]
    if others and len(matches) - len(others) > 1:
        raise LDLError(
            f"{source}: the label columns {some([str(column) for column in matches])} are numbered, except "
            f"{some(others)}; give a narrower pattern, such as 'r[0-9]*', or the names"
        )
    return matches or [column for column in header if str(column).startswith(LABEL_PREFIX)]
