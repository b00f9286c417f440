"""The columns of a table of annotations: its layout, and which columns hold items, raters and votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from ldl.errors import LDLError, did_you_mean, some
from ldl.labels import LABEL_PREFIX
from ldl.tables.roles import Role, plain_name, usual_columns

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
        split: Column that is named like a published split, in a file of votes alone; it is not read.
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
    split: Any = None
    beside: tuple[Any, ...] = ()

    def without(self, dropped: Iterable[Any]) -> VoteColumns:
        """Return the columns without labels and raters that are dropped."""
        dropped = set(dropped)
        labels, raters = ((name for name in names if name not in dropped) for names in (self.labels, self.raters))
        return replace(self, labels=tuple(labels), raters=tuple(raters))

    @property
    def all(self) -> list[Any]:
        """All columns of the annotations, none of which is a feature."""
        single = (self.item, self.rater, self.vote, self.total, self.group)
        return [name for name in single if name is not None] + [*self.labels, *self.raters, *self.beside]


@dataclass(frozen=True)
class VoteOptions:
    """Options that name columns of votes, as in :func:`ldl.annotations.read_annotations`."""

    item_column: Any = None
    rater_column: Any = None
    vote_column: Any = None
    label_columns: Sequence[Any] | Any = ()
    rater_columns: Sequence[Any] | Any = ()
    votes_column: Any = None
    group_column: Any = None


def find_columns(
    header: Iterable[Any], source: str, layout: Layout | None = None, options: VoteOptions | None = None
) -> VoteColumns:
    """Find the columns of annotations by the names in ``options``, or else by usual names.

    Without ``layout``, it is ``counts`` with ``label_columns``, ``matrix`` with ``rater_columns``, and ``long`` with
    ``vote_column``; otherwise ``counts`` if columns have the prefix ``label:``, and ``long`` if there is a column of
    votes.

    Raises:
        LDLError: A named column is absent, a pattern for numbered columns matches others too, or no layout fits.
    """
    header, options = list(header), options or VoteOptions()
    singles = options.item_column, options.rater_column, options.vote_column, options.votes_column, options.group_column
    named = [column for column in singles if column is not None]
    for column in named:
        if column not in header:
            raise LDLError(f"{source} has no column {column!r}{did_you_mean(str(column), map(str, header))}")
    beside_labels = [options.item_column, options.votes_column, options.group_column]
    labels = _matching_others(header, options.label_columns, beside_labels, source)
    beside_raters = [*beside_labels, *usual_columns(header, "item")]
    raters = _matching_others(header, options.rater_columns, beside_raters, source)
    if labels and raters and layout is None:
        raise LDLError(f"{source}: label_columns are for counts and rater_columns for a matrix; pass one of them")
    _check_numbers(labels, options.label_columns, "label", source)
    described = describing(raters, raters, names=listed_names(options.rater_columns))
    raters = [column for column in raters if column not in described]
    _check_numbers(raters, options.rater_columns, "rater", source)
    prefixed = [column for column in header if str(column).startswith(LABEL_PREFIX) and column not in named]
    if layout is None:
        layout = _choose_layout(labels, raters, options.vote_column, prefixed)
    _check_uses(layout, options, source)
    labels = labels or prefixed
    taken = {*named, *labels, *raters, *described}

    def usual(column: Any, role: Role) -> Any:
        free = (name for name in usual_columns(header, role) if name not in taken)
        return column if column is not None else next(free, None)

    item = usual(options.item_column, "item")
    rater, vote = usual(options.rater_column, "rater"), usual(options.vote_column, "vote")
    total, group = options.votes_column, options.group_column
    if layout == "counts" and labels:
        beside = tuple(column for column in prefixed if column not in labels)
        return VoteColumns(layout, item, labels=tuple(labels), total=total, group=group, beside=beside)
    if layout == "matrix" and raters:
        rest = [column for column in header if column not in {item, group, *raters, *prefixed}]
        beside = *prefixed, *describing(rest, raters)
        return VoteColumns(layout, item, raters=tuple(raters), group=group, beside=beside)
    if layout == "long" and item is not None and vote is not None:
        rest = [column for column in header if column not in {item, rater, vote, group, *prefixed}]
        beside = *prefixed, *describing(rest, [column for column in (rater, vote) if column is not None])
        return VoteColumns(layout, item, rater, vote, group=group, beside=beside)
    absent = [name for name, column in (("item_column", item), ("vote_column", vote)) if column is None]
    missing = {
        "counts": "label columns; name them label:NAME, or pass label_columns",
        "matrix": "rater columns; pass rater_columns",
        "long": f"{' and '.join(absent)}; pass the names, or label_columns for counts, or rater_columns for a matrix",
    }
    raise LDLError(f"{source} has no {missing[layout]}. It has {some([str(column) for column in header])}")


def _choose_layout(labels: list[Any], raters: list[Any], vote_column: Any, prefixed: list[Any]) -> Layout:
    """Return the layout that fits the columns of labels and raters, and those named ``label:NAME``."""
    if labels:
        return "counts"
    if raters:
        return "matrix"
    return "counts" if vote_column is None and prefixed else "long"


def _check_uses(layout: Layout, options: VoteOptions, source: str) -> None:
    """Raise LDLError if an option names a column that a layout does not have."""
    uses = {"counts": ("votes_column",), "long": ("rater_column", "vote_column"), "matrix": ()}[layout]
    for name in ("votes_column", "rater_column", "vote_column"):
        column = getattr(options, name)
        if column is not None and name not in uses:
            raise LDLError(
                f"{source} is read in the {layout} layout, which has no use for {name} {column!r}; leave it out, or "
                "name the columns of another layout"
            )


def matching_columns(header: Iterable[Any], patterns: Sequence[Any] | Any, source: str) -> list[Any]:
    """Return the columns that match a name or pattern, in the order of the header. Raises LDLError for other names."""
    header, matches = list(header), set()
    for pattern in listed_names(patterns):
        # A name may contain [, ] and ?, and a column of this name alone is meant.
        columns = [column for column in header if column == pattern or str(column) == str(pattern)]
        columns = columns or [column for column in header if fnmatchcase(str(column), str(pattern))]
        if not columns:
            raise LDLError(f"{source} has no column {pattern!r}{did_you_mean(str(pattern), map(str, header))}")
        matches.update(columns)
    return [column for column in header if column in matches]


def describing(columns: Iterable[Any], votes: Sequence[Any], names: Sequence[Any] = ()) -> list[Any]:
    """Return the columns that describe votes, such as ``rater1_confidence`` beside ``rater1``.

    Args:
        columns: Columns to choose from.
        votes: Columns of raters or votes. The name of a description is one of theirs with a word behind it, or, beside
            two of them, with the same word before it.
        names: Columns that describe nothing.
    """
    stems = {plain_name(column) for column in votes}
    fronts = Counter(front for column in columns for front, stem in _cuts(column) if stem in stems)
    return [
        column
        for column in columns
        if column not in names
        and any(
            (front in stems and not rest.replace("_", "").isdigit()) or (rest in stems and fronts[front] > 1)
            for front, rest in _cuts(column)
        )
    ]


def _cuts(column: Any) -> list[tuple[str, str]]:
    """Return all ways to cut a name into two between its words."""
    words = plain_name(column).split("_")
    return [("_".join(words[:end]), "_".join(words[end:])) for end in range(1, len(words))]


def listed_names(names: Sequence[Any] | Any) -> list[Any]:
    """Return the names that an option gives: one name, or several."""
    return list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]


def _matching_others(header: list[Any], patterns: Sequence[Any] | Any, roles: list[Any], source: str) -> list[Any]:
    """Return the columns that match, without those of other ``roles`` that a pattern such as ``*`` matches."""
    names = listed_names(patterns)
    return [column for column in matching_columns(header, names, source) if column not in roles or column in names]


def _check_numbers(matches: list[Any], patterns: Sequence[Any] | Any, role: str, source: str) -> None:
    """Raise LDLError if a pattern for numbered columns matches others too."""
    others = [
        str(column) for column in matches if column not in listed_names(patterns) and not str(column)[-1:].isdigit()
    ]
    if others and len(matches) - len(others) > 1:
        raise LDLError(
            f"{source}: the {role} columns {some([str(column) for column in matches])} are numbered, except "
            f"{some(others)}; give a narrower pattern, such as 'r[0-9]*', or the names"
        )
