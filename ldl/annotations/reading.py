"""Reading annotations from tables in three layouts.

=========  ==================================================  ==============================================
layout     one row                                             example
=========  ==================================================  ==============================================
counts     an item, with a column for each label               ``path,label:cat,label:dog`` / ``a.png,7,3``
long       a vote, with columns for item, rater and label      ``task,worker,label`` / ``a.png,w17,cat``
matrix     an item, with a column for each rater, gaps empty   ``path,w17,w18`` / ``a.png,cat,``
=========  ==================================================  ==============================================

Labels, raters and items are compared by their :func:`ldl.tables.entries.spelling`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ldl.annotations.answers import Duplicates, Multiple, answers_of, check_choice, heading_rows
from ldl.annotations.columns import Layout, VoteColumns, find_columns
from ldl.annotations.labels import LabelType, label_space, look_alikes, natural_order, unused
from ldl.annotations.votes import Annotations, spellings
from ldl.errors import LDLError, some
from ldl.labels import LABEL_PREFIX
from ldl.tables import CsvTable, open_named
from ldl.tables.entries import MISSING, spelling, to_names
from ldl.tables.roles import Role, usual_columns

TINY = 1e-9
"""Largest distance of a count from 0, or from a whole number, that is an error of rounding."""


def read_annotations(
    source: str | Path | pd.DataFrame,
    layout: Layout | None = None,
    *,
    item_column: Any = None,
    rater_column: Any = None,
    vote_column: Any = None,
    label_columns: Sequence[Any] | Any = (),
    rater_columns: Sequence[Any] | Any = (),
    votes_column: Any = None,
    label_type: LabelType = "auto",
    order: Sequence[Any] = (),
    no_vote: Sequence[Any] | str = (),
    duplicates: Duplicates = "error",
    multiple: Multiple = "error",
    unlabelled: Literal["drop", "error"] = "drop",
    group_column: Any = None,
    spell: Callable[[str], str] | None = None,
) -> Annotations:
    """Read annotations from a CSV, TSV or Parquet file or a DataFrame.

    Labels whose names are numbers are ordinal, with or without a common prefix such as ``stars``; others are nominal.
    Where a table can be read in several ways, ``Annotations.notes`` and a ``UserWarning`` for each of them say how it
    was read and which option decides otherwise.

    Args:
        source: A table.
        layout: Its layout. By default ``counts`` if there are label columns, ``matrix`` with ``rater_columns``, and
            ``long`` if there are columns for item and vote.
        item_column: Column with the keys of the items; by default the first of the usual names, else the row number.
        rater_column: Column of the long layout with the rater; by default the first of the usual names, else raters are
            unknown.
        vote_column: Column of the long layout with the label.
        label_columns: Names or patterns (``r*``) of the columns of the counts layout; by default all with the prefix
            ``label:``.
        rater_columns: Names or patterns of the columns of the matrix layout. Columns such as ``rater1_confidence``
            beside ``rater1`` are no votes.
        votes_column: Column of the counts layout with the number of votes, if the labels have shares. Counts are then
            rounded to whole votes of this sum.
        label_type: ``auto``; ``nominal`` for classes, whose names may be numbers; or ``ordinal``.
        order: All labels from the lowest to the highest, in any layout; with ``nominal``, in any order. Rising numbers
            are the values of the labels. By default the order of an ordered Categorical.
        no_vote: Answers, or label columns, that are no votes, such as ``not sure`` or ``-1``.
        duplicates: Whether several votes of a rater on an item, or several rows of an item in the layouts of counts and
            matrix, are an error; ``first`` and ``last`` take one of them, and ``keep`` takes all.
        multiple: Whether several labels in one vote are an error, or each is a vote (``count``): a list, a JSON list,
            or labels of other votes with ``;``, ``|`` or ``,`` between them.
        unlabelled: Whether items without a vote are left out or an error.
        group_column: Column with the group of the item, such as a patient.
        spell: Returns the spelling of a key of text under which votes are joined; None keeps it.

    Raises:
        LDLError: No layout fits, a vote is negative, not a number, for an unknown label or given twice, or an item has
            no group or two groups.
    """
    check_choice("label_type", label_type, LabelType)
    check_choice("duplicates", duplicates, Duplicates)
    check_choice("multiple", multiple, Multiple)
    table, name = _read(source)
    columns = find_columns(
        table.columns,
        name,
        layout,
        item_column=item_column,
        rater_column=rater_column,
        vote_column=vote_column,
        label_columns=label_columns,
        rater_columns=rater_columns,
        votes_column=votes_column,
        group_column=group_column,
    )
    given = {"item_column": item_column, "rater_column": rater_column, "vote_column": vote_column}
    notes = _unclear_columns(table, columns, given, name)
    listed = [order] if isinstance(order, str) else list(order)
    table = _without_headings(table, columns, bool(listed), name, notes)
    excluded = [no_vote] if isinstance(no_vote, str) or not isinstance(no_vote, Sequence) else list(no_vote)
    reader = _Reader(
        name, table, columns, spell, label_type, listed or _category_order(table, columns, name), excluded,
        duplicates, multiple, notes,
    )  # fmt: skip
    made = reader.from_counts() if columns.layout == "counts" else reader.from_votes()
    if not len(made):
        raise LDLError(f"{name}: none of {made.left_out} items has a vote; give votes, or correct the columns")
    if made.left_out and unlabelled == "error":
        raise LDLError(f"{name}: {made.left_out} items have no vote; remove them, or pass unlabelled='drop'")
    if columns.group is not None:
        made = replace(made, groups=reader.groups(made.items))
    made = replace(made, notes=tuple(notes))
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return made


class _Reader:
    """One table that is read, with its options; ``notes`` is filled while reading."""

    def __init__(
        self,
        name: str,
        table: pd.DataFrame,
        columns: VoteColumns,
        spell: Callable[[str], str] | None,
        label_type: LabelType,
        order: list[Any],
        no_vote: list[Any],
        duplicates: Duplicates,
        multiple: Multiple,
        notes: list[str],
    ) -> None:
        self.name, self.table, self.columns, self.label_type, self.order = name, table, columns, label_type, order
        self.no_vote = [spelling(answer, numeral=True) for answer in no_vote]
        self.duplicates, self.multiple, self.notes = duplicates, multiple, notes
        self.spell = spell
        item = np.arange(len(table)) if columns.item is None else table[columns.item].to_numpy()
        if spell is not None and columns.item is not None:
            item = np.array([spell(key) if isinstance(key, str) else key for key in item], object)
        self.items, self.keys = item, spellings(item)

    def from_counts(self) -> Annotations:
        columns = list(self.columns.labels)
        kept = self._check_items()
        given = np.nan_to_num(np.stack([_numbers(self.table[column], self.name) for column in columns], 1))
        counts, percent = self._as_counts(given)
        names = [column.removeprefix(LABEL_PREFIX) if isinstance(column, str) else column for column in columns]
        names = [spelling(name, numeral=True) for name in names]
        if len(set(names)) < len(names):
            raise LDLError(
                f"{self.name}: the label columns {some(list(map(str, columns)))} name a label twice; add them up"
            )
        use = np.array([name not in self.no_vote for name in names])
        self.notes += unused(self.no_vote, names, "no_vote", self.name)
        if dropped := counts[:, ~use].sum():
            self.notes.append(f"{self.name}: {dropped:.10g} votes for {some(self.no_vote)} are no votes and left out")
        counts, names = counts[:, use], [name for name, is_label in zip(names, use) if is_label]
        labels, places, notes = label_space(names, counts.sum(0), self.name, self.label_type, self.order)
        self.notes += notes
        if wrong := [name for name, place in zip(names, places) if place < 0]:
            raise LDLError(
                f"{self.name}: the label columns {some(wrong)} are not in the order "
                f"{some(list(map(str, self.order)))}; give the order all labels"
            )
        if len(set(places)) < len(places):
            raise LDLError(
                f"{self.name}: the label columns {some(list(map(str, columns)))} name a label twice; add them up"
            )
        placed = np.zeros((len(counts), len(labels)))
        placed[:, places] = counts
        placed, codes, first = placed[kept], *_codes(self.keys[kept])
        if len(first) < len(placed) and not (self.columns.total is not None or (placed == np.round(placed)).all()):
            raise LDLError(
                f"{self.name}: several rows of an item hold shares, which do not add up; pass duplicates first or last"
            )
        summed = np.zeros((len(first), len(labels)))
        np.add.at(summed, codes, placed)
        voted = summed.sum(1) > 0
        items = _as_items(self.items[kept][first])[voted]
        total = self.columns.total is not None
        left_out = int((~voted).sum())
        return Annotations(items, labels, summed[voted], "counts", None, left_out, total, percent=percent)

    def _as_counts(self, given: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the votes (N, C) by the entries (N, C) of label columns, and whether they are percentages."""
        near = np.round(given)
        if (np.abs(given - near) <= TINY * near.clip(1)).all():
            given = near
        sums, whole = given.sum(1), bool((given == near).all())
        voted = sums > 0
        if self.columns.total is None:
            if whole and voted.any() and (np.abs(sums[voted] - 100) <= 1).all():
                self.notes.append(
                    f"{self.name}: whole numbers that sum to {sums[voted].min():g} to {sums[voted].max():g} in every "
                    "row are read as percentages, so the number of votes is unknown; give it in a column, votes_column"
                )
                return given / sums.clip(1)[:, None], True
            ones = np.abs(sums - 1) <= 0.02
            if not whole and ones.any() and (voted & ~ones).any():
                self.notes.append(
                    f"{self.name}: {int(ones.sum())} rows sum to 1, as shares do, and {int((voted & ~ones).sum())} to "
                    f"up to {sums.max():g}; all are read as shares; give the number of votes in a column, votes_column"
                )
            return given, False
        votes = np.nan_to_num(_numbers(self.table[self.columns.total], self.name))
        off = voted & (votes > 0) & (sums != votes)
        if whole and off.any() and not (np.ptp(sums[voted]) == 0 or (np.abs(sums[voted] - 100) <= 1).all()):
            self.notes.append(
                f"{self.name}: the counts of {int(off.sum())} rows do not sum to {self.columns.total}, the first sums "
                f"to {sums[off][0]:g} with {votes[off][0]:g}; they are read as shares of that number of votes"
            )
        voted &= votes > 0
        counts = np.zeros_like(given)
        counts[voted] = given[voted] * (votes / sums.clip(1e-300))[voted, None]
        return (_rounded(counts) if (votes == np.round(votes)).all() else counts), False

    def from_votes(self) -> Annotations:
        columns, table = self.columns, self.table
        if columns.layout == "matrix":
            kept = self._check_items()
            cells = [entry for row in zip(*(table[column] for column in columns.raters)) for entry in row]
            rows = np.repeat(np.arange(len(table)), len(columns.raters))
            raters = np.tile(np.array(columns.raters, object), len(table))
            use = kept[rows]
            cells, rows, raters = [cell for cell, used in zip(cells, use) if used], rows[use], raters[use]
        else:
            cells, rows = list(table[columns.vote]), np.arange(len(table))
            raters = None if columns.rater is None else table[columns.rater].to_numpy(object)  # type: ignore[assignment]
        answers = answers_of(cells, self.order, self.no_vote, self.multiple, self.name, self.notes)
        given = np.array([bool(answer) for answer in answers], bool)
        rater_keys = None if raters is None else spellings(raters)
        nameless = (self.keys[rows] == "") | (False if rater_keys is None else rater_keys == "")
        if (nameless & given).any():
            who = "" if columns.layout == "matrix" or columns.rater is None else f" or no {columns.rater}"
            raise LDLError(
                f"{self.name}: some votes have no {columns.item}{who}, the first in "
                f"{self._place(rows[(nameless & given).argmax()])}; fill them in, or remove the rows"
            )
        if rater_keys is not None:
            given = self._check_raters(given, rows, rater_keys)
        picked = np.flatnonzero(given)
        sizes = [len(answers[place]) for place in picked]
        texts = np.array([text for place in picked for text in answers[place]], object)
        if not len(texts):
            column = columns.vote if columns.layout == "long" else ", ".join(map(str, columns.raters[:8]))
            raise LDLError(f"{self.name} has no vote; fill in {column}")
        owners = np.repeat(picked, sizes)
        names = natural_order(dict.fromkeys(texts))
        number = pd.Index(names).get_indexer(texts)
        labels, places, notes = label_space(
            names, np.bincount(number, minlength=len(names)), self.name, self.label_type, self.order
        )
        self.notes += notes
        number = places[number]
        if (number < 0).any():
            raise LDLError(
                f"{self.name}: {int((number < 0).sum())} votes are for no label of the order, the first is "
                f"{texts[number < 0][0]!r}; the labels are {some([str(label) for label in labels.names])}; correct the "
                "vote, or pass it as no_vote"
            )
        codes, first = _codes(self.keys[rows[owners]])
        counts = np.zeros((len(first), len(labels)))
        np.add.at(counts, (codes, number), 1.0)
        self._check_spellings(codes, first, rows[owners], None if rater_keys is None else rater_keys[owners])
        if rater_keys is None and len(first) < len(texts):
            self.notes.append(
                f"{self.name}: no column names the rater, so each row is a vote of its own; name it with rater_column"
            )
        known = None
        if rater_keys is not None:
            rater_codes, rater_first = _codes(rater_keys[owners])
            known = _as_items(raters[owners][rater_first])[rater_codes]
        total = len(set(self.keys) - {""}) if columns.item is not None else len(table)
        items = _as_items(self.items[rows[owners]][first])
        return Annotations(items, labels, counts, columns.layout, known, total - len(first))

    def groups(self, items: np.ndarray) -> np.ndarray:
        """Return the group of each item (N,)."""
        column = self.columns.group
        names = spellings(self.table[column].to_numpy(object))
        wanted = {key: place for place, key in enumerate(spellings(items))}
        places = np.full(len(items), -1)
        for row, (key, group) in enumerate(zip(self.keys, names)):
            if (place := wanted.get(key)) is None:
                continue
            first = places[place]
            missing = group.lower() in MISSING
            if missing or (first >= 0 and names[first] != group):
                wrong = "have no" if missing else "are in several groups of"
                count = self._count_wrong(names, wanted, missing)
                raise LDLError(
                    f"{self.name}: {count} items {wrong} {column}, the first is {key!r}; give every item one group"
                )
            places[place] = row if first < 0 else first
        return to_names(self.table[column].to_numpy()[places], f"{self.name}: the group, column {column!r},")

    def _count_wrong(self, names: np.ndarray, wanted: dict[str, int], missing: bool) -> int:
        pairs = {(key, name) for key, name in zip(self.keys, names) if key in wanted}
        if missing:
            return len({key for key, name in pairs if name.lower() in MISSING})
        keys = [key for key, _ in pairs]
        return sum(keys.count(key) > 1 for key in set(keys))

    def _check_items(self) -> np.ndarray:
        """Return the rows (N,) that count, by ``duplicates``. Raises LDLError for a row without an item."""
        keys, item = self.keys, self.columns.item
        if (gaps := keys == "").any():
            raise LDLError(
                f"{self.name}: {int(gaps.sum())} rows have no {item}, the first is {self._place(gaps.argmax())}; fill "
                "it in"
            )
        return self._chosen(
            pd.Series(keys), f"rows repeat an item of {item}, the first is", lambda row: repr(keys[row])
        )

    def _check_raters(self, given: np.ndarray, rows: np.ndarray, raters: np.ndarray) -> np.ndarray:
        """Return the votes (V,) that count, by ``duplicates``."""
        places = np.flatnonzero(given)
        pairs = pd.Series(list(zip(self.keys[rows[places]], raters[places])), dtype=object)
        what = "votes are by a rater who has voted on the item before, the first by"
        shown = lambda row: f"{pairs[row][1]!r} on {pairs[row][0]!r}"  # noqa: E731
        use = np.zeros(len(given), bool)
        use[places[self._chosen(pairs, what, shown)]] = True
        return use

    def _chosen(self, keys: pd.Series, what: str, shown: Callable[[int], str]) -> np.ndarray:
        """Return which of repeated keys count. Raises LDLError if none may repeat."""
        twice = keys.duplicated().to_numpy()
        if not twice.any():
            return np.ones(len(keys), bool)
        said = f"{self.name}: {int(twice.sum())} {what} {shown(int(twice.argmax()))}"
        if self.duplicates == "error":
            add = "add up their votes" if what.startswith("rows") else "keep one vote per rater and item"
            raise LDLError(f"{said}; {add}, or pass duplicates first, last or keep")
        if self.duplicates == "keep":
            self.notes.append(f"{said}; all count")
            return np.ones(len(keys), bool)
        self.notes.append(f"{said}; the {self.duplicates} counts")
        return ~keys.duplicated(keep=self.duplicates).to_numpy()

    def _check_spellings(
        self, codes: np.ndarray, first: np.ndarray, rows: np.ndarray, raters: np.ndarray | None
    ) -> None:
        for what, keys in (("items", self.keys[rows]), ("raters", raters)):
            if keys is None:
                continue
            names, sizes = np.unique(keys.astype(str), return_counts=True)
            texts = {str(name): f"{size} votes" for name, size in zip(names, sizes)}
            self.notes += look_alikes(texts, what, self.name, case=False)
            if odd := [text for text in texts if text.lower() in MISSING]:
                self.notes.append(
                    f"{self.name}: {some(odd)} among the {what} is taken as a name ({texts[odd[0]]}); if it is a gap, "
                    "leave the field empty"
                )

    def _place(self, row: int) -> str:
        return _place(int(self.table.index[row]), self.name)


def _codes(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number (N,) of each key in the order of appearance, and the place where each appears first."""
    codes, _ = pd.factorize(keys)
    return codes, np.flatnonzero(~pd.Series(codes).duplicated().to_numpy())


def _as_items(entries: np.ndarray) -> np.ndarray:
    """Return keys as they are, but text in its spelling."""
    if entries.dtype.kind != "O":
        return entries
    return np.array([spelling(entry) if isinstance(entry, str) else entry for entry in entries], object)


def _read(source: str | Path | pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return a table, in which fields of text files are text, and its name for messages."""
    if isinstance(source, pd.DataFrame):
        name, index = str(source.attrs.get("source", "the DataFrame")), source.index.name
        table = source.reset_index(drop=index is None or index in source)
    else:
        name, opened = str(source), open_named(Path(source))
        if opened is None:
            raise LDLError(
                f"{name}: unknown kind of file; save the votes as .csv with commas between fields, as .tsv with tabs, "
                "or as .parquet"
            )
        # Fields of a CSV file as text, so that keys such as 007 keep their zeros.
        table = opened.texts(opened.header)
    if (twice := table.columns.duplicated()).any():
        raise LDLError(
            f"{name}: column {str(table.columns[twice][0])!r} is there twice; give every column a name of its own"
        )
    return table, name


def _place(row: int, name: str) -> str:
    """Return the line of a row, from 0, in a CSV file, or the row in another table."""
    opened = open_named(Path(name)) if Path(name).is_file() else None
    return f"line {opened.lines[row]}" if isinstance(opened, CsvTable) else f"row {row}"


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    """Return a column of counts as float64, NaN for gaps."""
    column = column.mask(column.astype(str).str.strip().str.lower().isin(MISSING))
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    wrong = (~np.isfinite(numbers) & column.notna().to_numpy()) | (numbers < -TINY)
    if wrong.any():
        row = int(wrong.argmax())
        raise LDLError(
            f"{name}: {int(wrong.sum())} entries of {column.name!r} are no counts, the first is "
            f"{str(column.iloc[row])!r} in {_place(int(column.index[row]), name)}; counts are finite numbers of at "
            "least 0"
        )
    return np.maximum(numbers, 0)


def _rounded(counts: np.ndarray) -> np.ndarray:
    """Round counts (N, C) to whole votes of the same sums, by the largest remainder method.

    Published shares are rounded, so their products with the numbers of votes are not whole.
    """
    whole = np.floor(counts + TINY)
    missing = np.round(counts.sum(1) - whole.sum(1))
    rank = np.argsort(np.argsort(whole - counts, axis=1, kind="stable"), axis=1)
    return whole + (rank < missing[:, None])


def _category_order(table: pd.DataFrame, columns: VoteColumns, name: str) -> list[Any]:
    """Return the categories of the votes if they are ordered. Raises LDLError for several orders."""
    votes = columns.raters or ([columns.vote] if columns.layout == "long" else [])
    kinds = [table[column].dtype for column in votes]
    orders = {tuple(kind.categories) for kind in kinds if isinstance(kind, pd.CategoricalDtype) and kind.ordered}
    if len(orders) > 1:
        raise LDLError(f"{name}: the rater columns have different ordered categories; list all labels in order")
    return list(orders.pop()) if orders else []


def _without_headings(
    table: pd.DataFrame, columns: VoteColumns, listed: bool, name: str, notes: list[str]
) -> pd.DataFrame:
    """Return the table without rows that repeat or explain its header, as in exports of surveys."""
    headings = heading_rows(table, columns, name, listed)
    if headings.any():
        notes.append(
            f"{name}: {int(headings.sum())} rows repeat or explain the header, the first is "
            f"{_place(int(headings.argmax()), name)}; they are left out"
        )
    return table[~headings]


def _unclear_columns(table: pd.DataFrame, columns: VoteColumns, given: dict[str, Any], name: str) -> list[str]:
    """Return notes about columns that a usual name does not decide, and about those beside votes."""
    notes = []
    roles: tuple[tuple[Role, Any], ...] = (("item", columns.item), ("rater", columns.rater), ("vote", columns.vote))
    for role, column in roles:
        option = f"{role}_column"
        others = [other for other in usual_columns(table.columns, role) if other not in columns.all]
        if columns.layout == "long" and given[option] is None and column is not None and others:
            notes.append(
                f"{name}: column {column!r} is read as the {role}, although {some(list(map(str, others)))} may be it; "
                f"pass {option}"
            )
    if columns.beside:
        notes.append(
            f"{name}: {some(list(map(str, columns.beside)))} stand beside votes and are neither votes nor features"
        )
    return notes
