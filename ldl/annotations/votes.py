"""Annotations: votes of several annotators on items, read from tables in three layouts.

=========  ==================================================  ==============================================
layout     one row                                             example
=========  ==================================================  ==============================================
counts     an item, with a column for each label               ``path,label:cat,label:dog`` / ``a.png,7,3``
long       a vote, with columns for item, rater and label      ``task,worker,label`` / ``a.png,w17,cat``
matrix     an item, with a column for each rater, gaps empty   ``path,w17,w18`` / ``a.png,cat,``
=========  ==================================================  ==============================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from os.path import commonprefix
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd  # not imported late: scikit-learn imports pandas anyway

from ldl.errors import LDLError, did_you_mean, some
from ldl.labels import LABEL_PREFIX, LabelSpace
from ldl.tables import CsvTable, open_named
from ldl.tables.entries import MISSING, NUMBER, as_text
from ldl.validation.files import kind_of

Layout = Literal["counts", "long", "matrix"]
ITEMS = ("item", "task", "image", "path", "file", "instance", "example", "id", "image_path", "file_name", "filename")
RATERS = ("rater", "annotator", "worker", "reader", "reading", "user", "performer")
VOTES = ("label", "vote", "answer", "rating", "response", "class")


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
    """

    items: np.ndarray
    labels: LabelSpace
    counts: np.ndarray
    layout: Layout
    raters: np.ndarray | None = None
    left_out: int = 0
    totals: bool = False
    groups: np.ndarray | None = None
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
        return self.whole or self.totals

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
        unknown_items="error",
    ) -> tuple[Annotations, np.ndarray]:
        """Return the annotations in the order of a table, and the numbers (n,) of its rows that have votes, rising.

        Args:
            keys: Item of every row of the table, compared as text.
            source: Name of the table, for messages.
            unlabelled: Whether rows without votes are left out or an error.

        Raises:
            LDLError: Votes for an item that is not in the table, an item in two rows of the table, or, with
                ``unlabelled`` ``error``, a row without votes.
        """
        index = _texts(keys)
        if (twice := index.duplicated()).any():
            raise LDLError(
                f"{source}: {int(twice.sum())} rows repeat an item, the first is {index[twice][0]!r}; give every "
                "item one row"
            )
        places = index.get_indexer(_texts(self.items))
        if (lost := places < 0).any():
            raise LDLError(
                f"{int(lost.sum())} of {len(self)} items with votes are not in {source}, the first is "
                f"{str(self.items[lost][0])!r}, where the table has {index[0]!r}; correct the keys, or leave them out"
            )
        order = np.argsort(places, kind="stable")
        missing = len(index) - len(self)
        if missing and unlabelled == "error":
            first = index[np.setdiff1d(np.arange(len(index)), places)[0]]
            raise LDLError(
                f"{source}: {missing} items have no vote, the first is {first!r}; remove them, or pass "
                "unlabelled='drop'"
            )
        groups = None if self.groups is None else self.groups[order]
        found = replace(self, items=self.items[order], counts=self.counts[order], left_out=missing, groups=groups)
        return found, places[order]

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        votes, kind = self.votes, "votes" if self.counted else "shares"
        known = "" if self.raters is None else f", {len(pd.unique(self.raters))} raters"
        left = f"; {self.left_out} items without a vote are left out" if self.left_out else ""
        low, high = votes.min(), votes.max()
        each = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        return (
            f"{self.layout} layout, {len(self)} items, {len(self.labels)} {self.labels.kind} labels, "
            f"{each} {kind} an item{known}{left}"
        )


def read_annotations(
    source: str | Path | pd.DataFrame,
    layout: Layout | None = None,
    *,
    item_column: str | None = None,
    rater_column: str | None = None,
    vote_column: str | None = None,
    label_columns: Sequence[str] | str = (),
    rater_columns: Sequence[str] | str = (),
    votes_column: str | None = None,
    order: Sequence[str] = (),
    unlabelled: Literal["drop", "error"] = "drop",
    group_column: str | None = None,
    spell: Callable[[str], str] | None = None,
    **_: Any,
) -> Annotations:
    """Read annotations from a CSV or Parquet file or a DataFrame.

    Labels whose names are numbers are ordinal, with or without a common prefix such as ``stars``; others are nominal.

    Args:
        source: A table.
        layout: Its layout. By default ``counts`` if there are label columns, ``matrix`` with ``rater_columns``, and
            ``long`` if there are columns for item, rater and vote.
        item_column: Column with the keys of the items; by default the first of the usual names, else the row number.
        rater_column: Column of the long layout with the rater.
        vote_column: Column of the long layout with the label.
        label_columns: Names or patterns (``r*``) of the columns of the counts layout; by default all with the prefix
            ``label:``.
        rater_columns: Names or patterns of the columns of the matrix layout.
        votes_column: Column of the counts layout with the number of votes, if the labels have shares. Counts are then
            rounded to whole votes of this sum.
        order: All labels from the lowest to the highest, for ordinal labels whose names are not numbers, in any layout.
        unlabelled: Whether items without a vote are left out or an error.
        group_column: Column with the group of the item, such as a patient.
        spell: Returns the spelling of a key of text under which votes are joined; None keeps it.

    Raises:
        LDLError: No layout fits, a vote is negative, not a number, for an unknown label or given twice, or an item has
            no group or two groups.
    """
    table, name = _read(source)
    label_columns = _label_columns(table, label_columns, name)
    rater_columns = matching_columns(table, rater_columns, name)
    found = {
        "item_column": _find(table, item_column, ITEMS, name),
        "rater_column": _find(table, rater_column, RATERS, name),
        "vote_column": _find(table, vote_column, VOTES, name),
    }
    item, rater, vote = found.values()
    if spell is not None and item is not None:
        table[item] = [spell(key) if isinstance(key, str) else key for key in table[item]]
    if layout is None:
        layout = "counts" if label_columns else "matrix" if rater_columns else "long"
    if layout == "counts" and label_columns:
        made = _from_counts(table, item, label_columns, votes_column, order, name)
    elif layout == "matrix" and rater_columns:
        votes = table[rater_columns].melt(value_name="vote", var_name="rater", ignore_index=False)
        votes = votes.assign(item=_keys(table, item, name)[votes.index])
        made = _from_votes(votes[votes["vote"].notna()], "item", "rater", "vote", "matrix", order, name)
        made = replace(made, left_out=len(table) - len(made))
    elif layout == "long" and item and vote:
        made = _from_votes(table[table[vote].notna()], item, rater, vote, "long", order, name)
        made = replace(made, left_out=table[item].nunique() - len(made))
    else:
        missing = {
            "counts": "label columns; name them label:NAME, or pass label_columns",
            "matrix": "rater columns; pass rater_columns",
            "long": f"{' and '.join(k for k, v in found.items() if v is None)}; pass the names, or label_columns for "
            "counts, or rater_columns for a matrix",
        }
        raise LDLError(f"{name} has no {missing[layout]}. It has {some([str(column) for column in table])}")
    if not len(made):
        raise LDLError(f"{name}: none of {made.left_out} items has a vote; give votes, or correct the columns")
    if made.left_out and unlabelled == "error":
        raise LDLError(f"{name}: {made.left_out} items have no vote; remove them, or pass unlabelled='drop'")
    if group_column is not None:
        made = replace(made, groups=_groups(table, item, _find(table, group_column, (), name), made.items, name))
    return made


def _groups(table: pd.DataFrame, item: str | None, group: Any, items: np.ndarray, name: str) -> np.ndarray:
    """Return the group of each item (N,)."""
    keys = np.arange(len(table)) if item is None else table[item].to_numpy()
    pairs = pd.DataFrame({"item": keys, "group": table[group].to_numpy()}).drop_duplicates()
    pairs = pairs[pairs["item"].isin(items)]
    for wrong, what in ((pairs["group"].isna(), "have no"), (pairs["item"].duplicated(), "are in several groups of")):
        if wrong.any():
            raise LDLError(
                f"{name}: {int(wrong.sum())} items {what} {group}, the first is {str(pairs['item'][wrong].iloc[0])!r}; "
                "give every item one group"
            )
    return np.asarray(pairs.set_index("item")["group"].reindex(items))


def _read(source: str | Path | pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return a table with gaps as missing values, and its name for messages."""
    if isinstance(source, pd.DataFrame):
        name, index = str(source.attrs.get("source", "the DataFrame")), source.index.name
        table = source.reset_index(drop=index is None or index in source)
    else:
        name, opened = str(source), open_named(Path(source))
        if opened is None:
            raise LDLError(
                f"{name}: unknown kind of file; save the votes as .csv with commas between fields, or as .parquet"
            )
        # Fields of a CSV file as text, so that keys such as 007 keep their zeros.
        table = opened.texts(opened.header)
        if isinstance(opened, CsvTable):
            table = table.apply(lambda column: column.map(str.strip)).replace("", np.nan)
    if (twice := table.columns.duplicated()).any():
        raise LDLError(
            f"{name}: column {str(table.columns[twice][0])!r} is there twice; give every column a name of its own"
        )
    return table, name


def _texts(keys: Any) -> pd.Index:
    """Return keys of items as text: a whole number is the same key as an integer and as a float."""
    return pd.Index(
        [key if isinstance(key, str) else as_text(key) or str(key) for key in pd.Series(keys).astype(object)]
    )


def _find(table: pd.DataFrame, given: str | None, usual: Sequence[str], name: str) -> str | None:
    if given is not None and given not in table:
        raise LDLError(f"{name} has no column {given!r}{did_you_mean(given, map(str, table))}")
    lower = {str(column).lower(): column for column in table}
    return given if given is not None else next((lower[known] for known in usual if known in lower), None)


def matching_columns(header: Iterable[Any], patterns: Sequence[str] | str, source: str) -> list[Any]:
    """Return the columns that match a name or pattern, in the order of the header. Raises LDLError for other names."""
    header, patterns = list(header), [patterns] if isinstance(patterns, str) else patterns
    for pattern in patterns:
        if not any(_matches(str(column), pattern) for column in header):
            raise LDLError(f"{source} has no column {pattern!r}{did_you_mean(pattern, map(str, header))}")
    return [column for column in header if any(_matches(str(column), pattern) for pattern in patterns)]


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)  # the name of a column may contain [ and ]


def _label_columns(table: pd.DataFrame, patterns: Sequence[str] | str, name: str) -> list[Any]:
    """Return the columns of labels. Raises LDLError if a pattern for numbered columns matches others too."""
    found = matching_columns(table, patterns, name)
    given = [patterns] if isinstance(patterns, str) else patterns
    others = [str(column) for column in found if column not in given and not str(column)[-1:].isdigit()]
    if others and len(found) - len(others) > 1:
        raise LDLError(
            f"{name}: the label columns {some([str(column) for column in found])} are numbered, except {some(others)}; "
            "give a narrower pattern, such as 'r[0-9]*', or the names"
        )
    return found or [column for column in table if str(column).startswith(LABEL_PREFIX)]


def _keys(table: pd.DataFrame, item: str | None, name: str) -> np.ndarray:
    keys = np.arange(len(table)) if item is None else table[item].to_numpy()
    if (gaps := pd.isna(keys)).any():
        raise LDLError(f"{name}: {int(gaps.sum())} rows have no {item}, the first is {_place(gaps, name)}; fill it in")
    twice = pd.Series(keys).duplicated().to_numpy()
    if twice.any():
        raise LDLError(
            f"{name}: {int(twice.sum())} rows repeat an item of {item}, the first is {str(keys[twice][0])!r}; "
            "add up their votes"
        )
    return keys


def _first(mask: np.ndarray) -> int:
    return int(np.flatnonzero(mask)[0])


def _place(mask: np.ndarray, name: str) -> str:
    """Return the line of a CSV file, or the row from 0 of another table, that a mask of its rows marks first."""
    opened = open_named(Path(name)) if kind_of(Path(name)) == ".csv" and Path(name).is_file() else None
    lines = opened.lines if isinstance(opened, CsvTable) and len(opened) == len(mask) else None
    return f"row {_first(mask)}" if lines is None else f"line {lines[_first(mask)]}"


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    """Return a column as float64, NaN for gaps."""
    column = column.mask(column.astype(str).str.strip().str.lower().isin(MISSING))
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    wrong = (~np.isfinite(numbers) & column.notna().to_numpy()) | (numbers < 0)
    if wrong.any():
        raise LDLError(
            f"{name}: {int(wrong.sum())} entries of {column.name!r} are no counts, the first is "
            f"{str(column.iloc[_first(wrong)])!r} in {_place(wrong, name)}; counts are finite numbers of at least 0"
        )
    return numbers


def _from_counts(
    table: pd.DataFrame, item: str | None, columns: list[Any], total: str | None, order: Sequence[str], name: str
) -> Annotations:
    keys = _keys(table, item, name)
    given = np.nan_to_num(np.stack([_numbers(table[column], name) for column in columns], 1))
    labels, places = _label_space([str(column).removeprefix(LABEL_PREFIX) for column in columns], order, name)
    if wrong := [str(column) for column, place in zip(columns, places) if place < 0]:
        raise LDLError(
            f"{name}: the label columns {some(wrong)} are not in the order {some(order)}; give the order all labels"
        )
    if len(set(places)) < len(places):
        raise LDLError(f"{name}: the label columns {some(list(map(str, columns)))} name a label twice; add them up")
    counts = np.zeros((len(table), len(labels)))
    counts[:, places] = given
    some_vote = counts.sum(1) > 0
    if total is not None:
        votes = np.nan_to_num(_numbers(table[_find(table, total, (), name)], name))
        some_vote &= votes > 0
        counts[some_vote] *= (votes / counts.sum(1).clip(1e-300))[some_vote, None]
        if (votes == np.round(votes)).all():
            counts = _rounded(counts)
    left_out, totals = int((~some_vote).sum()), total is not None
    return Annotations(keys[some_vote], labels, counts[some_vote], "counts", left_out=left_out, totals=totals)


def _rounded(counts: np.ndarray) -> np.ndarray:
    """Round counts (N, C) to whole votes of the same sums, by the largest remainder method.

    Published shares are rounded, so their products with the numbers of votes are not whole.
    """
    whole = np.floor(counts + 1e-9)
    missing = np.round(counts.sum(1) - whole.sum(1))
    rank = np.argsort(np.argsort(whole - counts, axis=1, kind="stable"), axis=1)
    return whole + (rank < missing[:, None])


def _from_votes(
    table: pd.DataFrame, item: str, rater: str, vote: str, layout: Layout, order: Sequence[str], name: str
) -> Annotations:
    if table[[item, rater]].isna().any(axis=None):
        raise LDLError(f"{name}: some votes have no {item} or no {rater}; fill them in, or remove the rows")
    twice = table.duplicated([item, rater]).to_numpy()
    if twice.any():
        row = table.iloc[_first(twice)]
        raise LDLError(
            f"{name}: {int(twice.sum())} votes are by a rater who has voted on the item before, the first by "
            f"{str(row[rater])!r} on {str(row[item])!r}; keep one vote per rater and item"
        )
    texts = table[vote].astype(object).map(lambda value: f"{value:g}" if isinstance(value, float) else str(value))
    gaps = texts.map(str.lower).isin(MISSING)
    if gaps.any() and all(map(NUMBER.fullmatch, texts[~gaps])):
        table, texts = table[~gaps], texts[~gaps]  # beside numbers, NA is no label
    if not len(table):
        raise LDLError(f"{name} has no vote; fill in {vote}")
    codes, names = pd.factorize(texts, sort=True)
    labels, places = _label_space(list(names), order, name)
    number = places[codes]
    if (number < 0).any():
        raise LDLError(
            f"{name}: {int((number < 0).sum())} votes are for no label of the order, the first is "
            f"{texts.iloc[_first(number < 0)]!r}; the labels are {some([str(label) for label in labels.names])}"
        )
    codes, items = pd.factorize(table[item])
    counts = np.zeros((len(items), len(labels)))
    np.add.at(counts, (codes, number), 1.0)
    return Annotations(np.asarray(items), labels, counts, layout, table[rater].to_numpy())


def vote_counts(shares: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Return the votes (n, C) on items with observed shares (n, C) of float32 and numbers of votes (n,).

    Counts that are whole up to the precision of the shares are rounded.
    """
    votes = np.asarray(votes, np.float64)[:, None]
    counts = np.asarray(shares, np.float64) * votes
    near = np.round(counts)
    return near if (np.abs(counts - near) < 1e-3 + 1e-6 * votes).all() else counts


def _label_space(names: list[str], order: Sequence[str], source: str) -> tuple[LabelSpace, np.ndarray]:
    """Return the label space of ``names``, and the position of the label of each name, -1 outside the order."""
    if order:
        if len(set(order)) < len(order):
            raise LDLError(f"{source}: the order {some(list(order), 20)} has a label twice; give every label one place")
        axis = tuple(float(number) for number in range(len(order)))
        return LabelSpace("ordinal", tuple(map(str, order)), (axis,)), pd.Index(order).get_indexer(names)
    start = len(commonprefix(names)) if len(names) > 1 else 0
    while start and (names[0][start - 1].isdigit() or names[0][start - 1] in ".-"):
        start -= 1
    try:
        numbers = np.array([float(label[start:]) for label in names])
    except ValueError:
        return LabelSpace.nominal(names), np.arange(len(names))
    if not np.isfinite(numbers).all():
        first = names[_first(~np.isfinite(numbers))]
        raise LDLError(f"{source}: the label {first!r} is beside numbers and not finite; correct it, or rename it")
    values, places = np.unique(numbers, return_inverse=True)
    return LabelSpace.ordinal(values.tolist()), places
