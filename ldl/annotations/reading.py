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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ldl.annotations.answers import Duplicates, Multiple, answers_of, check_choice, heading_rows
from ldl.annotations.columns import Layout, VoteColumns, VoteOptions, find_columns, listed_names
from ldl.annotations.counting import counts_of, place_of
from ldl.annotations.exports.direct import ExportTable, open_export
from ldl.annotations.labels import LabelType, label_space, look_alikes, natural_order, unused
from ldl.annotations.votes import Annotations, SingleVotes, spellings
from ldl.errors import LDLError, some
from ldl.labels import LABEL_PREFIX, LabelSpace
from ldl.tables import CsvTable, Parquet, open_named
from ldl.tables.entries import MISSING, as_pandas, check_distinct_names, spelling, to_names
from ldl.tables.roles import Role, usual_columns


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
    """Read annotations from a CSV, TSV or Parquet file, a DataFrame, or the export of an annotation tool.

    An export is read as :func:`ldl.annotations.exports.read_export` does, and the options of columns may name its own
    columns, keys and questions.

    Labels whose names are numbers are ordinal, with or without a common prefix such as ``stars``; others are nominal.
    Where a table can be read in several ways, ``Annotations.notes`` and a ``UserWarning`` for each of them say how it
    was read and which option decides otherwise.

    Args:
        source: A .csv, .tsv or Parquet file, a data frame of pandas, polars or pyarrow, or an export of a tool.
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
        spell: Function from the text of an item to the spelling under which its votes are joined; None keeps the text.

    Raises:
        LDLError: No layout fits, a vote is negative, not a number, for an unknown label or given twice, or an item has
            no group or two groups.

    Examples:
        >>> import pandas as pd
        >>> from ldl.annotations import read_annotations
        >>> votes = pd.DataFrame({"item": ["a", "a", "b"], "rater": ["x", "y", "x"], "label": ["cat", "dog", "dog"]})
        >>> read_annotations(votes).counts
        array([[1., 1.],
               [0., 1.]])
    """
    check_choice("label_type", label_type, LabelType)
    check_choice("duplicates", duplicates, Duplicates)
    check_choice("multiple", multiple, Multiple)
    options = VoteOptions(
        item_column, rater_column, vote_column, label_columns, rater_columns, votes_column, group_column
    )
    table, name, notes = _read(source, options)
    columns = find_columns(table.columns, name, layout, options)
    if not notes:  # those of an export name its columns
        notes = _unclear_columns(table, columns, options, name)
    label_order = listed_names(order)
    table = _without_headings(table, columns, bool(label_order), name, notes)
    label_order = label_order or _category_order(table, columns, name)
    excluded = [spelling(answer, numeral=True) for answer in listed_names(no_vote)]
    ordered = {spelling(label, numeral=True) for label in listed_names(order)}
    if contradictory := [label for label in excluded if label in ordered]:
        raise LDLError(
            f"{name}: {some(contradictory)} is in the order of labels and in no_vote; leave it out of one of them"
        )
    reader = _Reader(name, table, columns, spell, label_type, label_order, excluded, duplicates, multiple, notes)
    annotations = reader.from_counts() if columns.layout == "counts" else reader.from_votes()
    left_out = annotations.left_out
    if not len(annotations):
        raise LDLError(f"{name}: none of {left_out} items has a vote; give votes, or correct the columns")
    if left_out and unlabelled == "error":
        raise LDLError(f"{name}: {left_out} items have no vote; remove them, or pass unlabelled='drop'")
    groups = None if columns.group is None else reader.groups(annotations.items)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return replace(annotations, groups=groups, notes=tuple(notes))


@dataclass
class _Reader:
    """A reader of one table with the options of :func:`read_annotations`; reading appends to ``notes``.

    Attributes:
        items: (N,) item of each row, as in the table or as ``spell`` returns it.
        keys: (N,) spelling of each item, by which rows are joined.
    """

    name: str
    table: pd.DataFrame
    columns: VoteColumns
    spell: Callable[[str], str] | None
    label_type: LabelType
    order: list[Any]
    no_vote: list[str]
    duplicates: Duplicates
    multiple: Multiple
    notes: list[str]

    def __post_init__(self) -> None:
        spell, item = self.spell, self.columns.item
        self.items: np.ndarray = np.arange(len(self.table)) if item is None else self.table[item].to_numpy()
        if spell is not None and item is not None:
            self.items = _objects(spell(key.strip()) if isinstance(key, str) else key for key in self.items)
        self.keys = spellings(self.items)

    def from_counts(self) -> Annotations:
        """Read counts or shares in label columns."""
        columns, total = list(self.columns.labels), self.columns.total
        rows = self._check_items()
        counts, percent = counts_of(self.table, columns, total, self.name, self.notes)
        counted = total is not None or not percent and bool((counts == np.round(counts)).all())
        names = [column.removeprefix(LABEL_PREFIX) if isinstance(column, str) else column for column in columns]
        names = [spelling(name, numeral=True) for name in names]
        names, counts = self._drop_no_vote_columns(names, counts, counted)
        labels, positions = self._labels_of_columns(names, counts.sum(0))
        codes, first = _codes(self.keys[rows])
        if len(first) < len(codes) and not counted:
            raise LDLError(
                f"{self.name}: several rows of an item hold shares, which do not add up; pass duplicates first or last"
            )
        summed = np.zeros((len(first), len(labels)))
        np.add.at(summed, (codes[:, None], positions), counts[rows])
        voted = summed.sum(1) > 0
        items = _as_keys(self.items[rows][first], self.keys[rows][first])[voted]
        left_out = int((~voted).sum())
        return Annotations(
            items, labels, summed[voted], "counts", left_out=left_out, totals=total is not None, percent=percent
        )

    def _drop_no_vote_columns(
        self, names: list[str], counts: np.ndarray, counted: bool
    ) -> tuple[list[str], np.ndarray]:
        """Drop the label columns that ``no_vote`` names, and return the other names and their columns (N, C).

        Votes in the dropped columns are lost, but shares are rescaled to the sum that their row had before.
        """
        is_kept = np.array([name not in self.no_vote for name in names])
        if not is_kept.any():
            raise LDLError(f"{self.name}: all label columns are in no_vote; leave out those that are labels")
        self.notes += unused(self.no_vote, names, "no_vote", self.name)
        sums, votes_left_out = counts.sum(1), counts[:, ~is_kept].sum()
        names, counts = [name for name, is_label in zip(names, is_kept) if is_label], counts[:, is_kept]
        if votes_left_out:
            unit = "votes" if counted else "shares"
            self.notes.append(
                f"{self.name}: {votes_left_out:.10g} {unit} of {some(self.no_vote)} are no votes and left out"
            )
        if votes_left_out and not counted:
            counts *= np.divide(sums, counts.sum(1), out=np.zeros_like(sums), where=counts.sum(1) > 0)[:, None]
        return names, counts

    def _labels_of_columns(self, names: list[str], votes: np.ndarray) -> tuple[LabelSpace, np.ndarray]:
        """Return the label space of columns with these names, and the position of each. Raises LDLError."""
        columns = some(list(map(str, self.columns.labels)))
        duplicate_label = f"{self.name}: the label columns {columns} name a label twice; add them up"
        if len(set(names)) < len(names):
            raise LDLError(duplicate_label)
        labels, positions, notes = label_space(names, votes, self.name, self.label_type, self.order)
        if len(set(positions[positions >= 0])) < (positions >= 0).sum():
            raise LDLError(duplicate_label)
        self.notes += notes
        if unlisted := [name for name, position in zip(names, positions) if position < 0]:
            raise LDLError(
                f"{self.name}: the label columns {some(unlisted)} are not in the order "
                f"{some(list(map(str, self.order)))}; give the order all labels"
            )
        return labels, positions

    def from_votes(self) -> Annotations:
        """Read single votes, in the long layout or in a matrix."""
        cells, rows, raters = self._vote_cells()
        answers = answers_of(cells, self.order, self.no_vote, self.multiple, self.name, self.notes)
        voters = None if raters is None else spellings(raters)
        used_cells = self._check_votes(np.flatnonzero([bool(answer) for answer in answers]), rows, voters)
        texts = np.array([text for cell in used_cells for text in answers[cell]], object)
        if not len(texts):
            columns = [self.columns.vote] if self.columns.layout == "long" else self.columns.raters
            raise LDLError(f"{self.name} has no vote; fill in {', '.join(map(str, columns[:8]))}")
        cell_of = np.repeat(used_cells, [len(answers[cell]) for cell in used_cells])
        rows = rows[cell_of]
        labels, label_of = self._labels_of_votes(texts)
        items, first = _codes(self.keys[rows])
        counts = np.zeros((len(first), len(labels)))
        np.add.at(counts, (items, label_of), 1.0)
        total = len(self.table) if self.columns.item is None else len(set(self.keys) - {""})
        keys = _as_keys(self.items[rows[first]], self.keys[rows[first]])
        self._note_names("items", self.keys[rows])
        if raters is None or voters is None:
            if len(first) < len(texts):
                self.notes.append(
                    f"{self.name}: no column names the rater, so each row is a vote of its own; name it with "
                    "rater_column"
                )
            return Annotations(keys, labels, counts, self.columns.layout, None, total - len(first))
        self._note_names("raters", voters[cell_of])
        rater_of, first_vote = _codes(voters[cell_of])
        chosen = cell_of[first_vote]
        single = SingleVotes(items, rater_of, label_of, _as_keys(raters[chosen], voters[chosen]))
        return Annotations(keys, labels, counts, self.columns.layout, single, total - len(first))

    def _labels_of_votes(self, texts: np.ndarray) -> tuple[LabelSpace, np.ndarray]:
        """Return the label space of votes (V,), and the position of the label of each. Raises LDLError."""
        names = natural_order(dict.fromkeys(texts))
        codes = pd.Index(names).get_indexer(texts)
        votes = np.bincount(codes, minlength=len(names))
        labels, positions, notes = label_space(names, votes, self.name, self.label_type, self.order)
        self.notes += notes
        label_of = positions[codes]
        if (foreign := label_of < 0).any():
            raise LDLError(
                f"{self.name}: {int(foreign.sum())} votes are for no label of the order, the first is "
                f"{texts[foreign][0]!r}; the labels are {some(list(labels.names))}; correct the vote, or pass it as "
                "no_vote"
            )
        return labels, label_of

    def _vote_cells(self) -> tuple[list[Any], np.ndarray, np.ndarray | None]:
        """Return the cells of votes, with the row and the rater of each; raters are None if they are unknown."""
        columns, table = self.columns, self.table
        if columns.layout == "long":
            raters = None if columns.rater is None else table[columns.rater].to_numpy(object)
            return list(table[columns.vote].to_numpy(object)), np.arange(len(table)), raters
        used = np.flatnonzero(self._check_items())
        matrix = [table[column].to_numpy(object)[used] for column in columns.raters]
        cells = [cell for row in zip(*matrix) for cell in row]
        raters = np.empty(len(columns.raters), object)
        raters[:] = columns.raters
        return cells, np.repeat(used, len(raters)), np.tile(raters, len(used))

    def _check_votes(self, cells: np.ndarray, rows: np.ndarray, voters: np.ndarray | None) -> np.ndarray:
        """Return the ``cells`` whose votes count, by ``duplicates``.

        Raises LDLError for a vote without item or rater, and for a repeated vote if ``duplicates`` is ``error``.
        """
        keys = self.keys[rows[cells]]
        names = None if voters is None else voters[cells]
        nameless = (keys == "") if names is None else (keys == "") | (names == "")
        if nameless.any():
            absent = f"no {self.columns.item}" + ("" if names is None else f" or no {self.columns.rater}")
            raise LDLError(
                f"{self.name}: some votes have {absent}, the first in {self._place(rows[cells[nameless.argmax()]])}; "
                "fill them in, or remove the rows"
            )
        if names is None:
            return cells
        items, raters = _codes(keys)[0], _codes(names)[0]
        # One number for each pair of item and rater.
        pairs = pd.Series(items.astype(np.int64) * (raters.max(initial=0) + 1) + raters)
        repeats = "votes are by a rater who has voted on the item before, the first by"
        fix = "keep one vote per rater and item"
        return cells[self._counts_once(pairs, repeats, fix, lambda vote: f"{names[vote]!r} on {keys[vote]!r}")]

    def groups(self, items: np.ndarray) -> np.ndarray:
        """Return the group of each item (N,). Raises LDLError for an item without a group, or with several."""
        column, wanted = self.columns.group, pd.Index(spellings(items), dtype=object)
        positions = wanted.get_indexer(pd.Index(self.keys, dtype=object))
        names = spellings(self.table[column].to_numpy(object))
        rows = pd.DataFrame({"item": positions, "group": names})[positions >= 0]
        first = rows.drop_duplicates()
        missing, several = first["group"].str.lower().isin(MISSING), first["item"].duplicated()
        for wrong, mistake in ((missing, "have no"), (several, "are in several groups of")):
            if wrong.any():
                count, item = first["item"][wrong].nunique(), wanted[first["item"][wrong].iloc[0]]
                raise LDLError(
                    f"{self.name}: {count} items {mistake} {column}, the first is {item!r}; give every item one group"
                )
        self.notes += look_alikes(dict.fromkeys(first["group"], "a group"), "groups", self.name, case=False)
        row = first.index.to_numpy()[first["item"].argsort()]
        return to_names(self.table[column].to_numpy()[row], f"{self.name}: the group, column {column!r},")

    def _check_items(self) -> np.ndarray:
        """Return the rows (N,) that count, by ``duplicates``. Raises LDLError for a row without an item."""
        keys, item = self.keys, self.columns.item
        if (gaps := keys == "").any():
            raise LDLError(
                f"{self.name}: {int(gaps.sum())} rows have no {item}, the first is {self._place(gaps.argmax())}; fill "
                "it in"
            )
        repeats = f"rows repeat an item of {item}, the first is"
        return self._counts_once(pd.Series(keys), repeats, "add up their votes", lambda row: repr(keys[row]))

    def _counts_once(self, keys: pd.Series, repeats: str, fix: str, describe: Callable[[int], str]) -> np.ndarray:
        """Return which entries count (bool) when keys repeat, by ``duplicates``.

        Args:
            keys: Key of each entry.
            repeats: Begins the message about repeated keys, after their number.
            fix: Remedy in the error.
            describe: Returns the words for the first repeated entry, by its position.

        Raises:
            LDLError: A key repeats, and ``duplicates`` is ``error``.
        """
        repeated = keys.duplicated().to_numpy()
        if not repeated.any():
            return np.ones(len(keys), bool)
        message = f"{self.name}: {int(repeated.sum())} {repeats} {describe(int(repeated.argmax()))}"
        if self.duplicates == "error":
            raise LDLError(f"{message}; {fix}, or pass duplicates first, last or keep")
        if self.duplicates == "keep":
            self.notes.append(f"{message}; all count")
            return np.ones(len(keys), bool)
        self.notes.append(f"{message}; the {self.duplicates} counts")
        return ~keys.duplicated(keep=self.duplicates).to_numpy()

    def _note_names(self, role: str, keys: np.ndarray) -> None:
        """Note names of items or raters that look alike, or look like gaps."""
        names = {str(name): f"{count} votes" for name, count in pd.Series(keys).value_counts(sort=False).items()}
        self.notes += look_alikes(names, role, self.name, case=False)
        if gaps := [name for name in names if name.lower() in MISSING]:
            self.notes.append(
                f"{self.name}: {some(gaps)} among the {role} is taken as a name ({names[gaps[0]]}); if it is a gap, "
                "leave the field empty"
            )

    def _place(self, row: int) -> str:
        return place_of(int(self.table.index[row]), self.name)


def _codes(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the keys by first appearance; return each key's number (N,), and the position of each first appearance."""
    codes, _ = pd.factorize(keys)
    return codes, np.flatnonzero(~pd.Series(codes).duplicated().to_numpy())


def _as_keys(entries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the entries, with text replaced by its spelling in ``keys``."""
    if entries.dtype.kind != "O":
        return entries
    return _objects(key if isinstance(entry, str) else entry for entry, key in zip(entries, keys))


def _objects(entries: Iterable[Any]) -> np.ndarray:
    """Return entries, which may be tuples, as an array of objects (N,)."""
    return pd.Series(list(entries), dtype=object).to_numpy()


def _read(source: str | Path | pd.DataFrame, options: VoteOptions) -> tuple[pd.DataFrame, str, list[str]]:
    """Return a table, in which fields of text files are text, its name for messages, and the notes of an export."""
    source, notes = as_pandas(source), []
    if isinstance(source, pd.DataFrame):
        name, index = str(source.attrs.get("source", "the DataFrame")), source.index.name
        table = source.reset_index(drop=index is None or index in source)
    elif not isinstance(source, str | Path):
        raise LDLError(f"votes are read from a file or a data frame, not from {type(source).__name__}")
    else:
        name, opened = str(source), open_votes(Path(source), options)
        # Fields of a CSV file as text, so that keys such as 007 keep their zeros.
        table = opened.texts(opened.header)
        if isinstance(opened, ExportTable):
            name, notes = f"{source} (votes)", list(opened.notes)  # rows of the votes are no lines of the file
    check_distinct_names(table.columns, name)
    return table, name, notes


def open_votes(path: Path, options: VoteOptions | None = None) -> CsvTable | Parquet | ExportTable:
    """Return the named columns of a file of votes, which an annotation tool may have written.

    Args:
        path: The file.
        options: Options that name columns of an export.

    Raises:
        LDLError: The file is absent, of another kind, or an export that cannot be read.
    """
    if (export := open_export(path, options)) is not None:
        return export
    if (table := open_named(path)) is None:
        raise LDLError(
            f"{path}: unknown kind of file; save the votes as .csv with commas between fields, as .tsv with tabs, or "
            "as .parquet, or give the export of an annotation tool"
        )
    return table


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
            f"{place_of(int(headings.argmax()), name)}; they are left out"
        )
    return table[~headings]


def _unclear_columns(table: pd.DataFrame, columns: VoteColumns, options: VoteOptions, name: str) -> list[str]:
    """Return notes about roles that several columns may have, and about columns that describe votes."""
    notes = []
    roles: tuple[tuple[Role, Any], ...] = (("item", columns.item), ("rater", columns.rater), ("vote", columns.vote))
    for role, column in roles:
        option = f"{role}_column"
        others = [other for other in usual_columns(table.columns, role) if other not in columns.all]
        if columns.layout == "long" and getattr(options, option) is None and column is not None and others:
            notes.append(
                f"{name}: column {column!r} is read as the {role}, although {some(list(map(str, others)))} may be it; "
                f"pass {option}"
            )
    if columns.beside:
        notes.append(
            f"{name}: {some(list(map(str, columns.beside)))} describe votes; they are neither votes nor features"
        )
    return notes
