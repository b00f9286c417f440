"""The role of each column of a table: feature, label or vote, item, group, or split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldl.annotations.columns import VoteColumns, VoteOptions, listed_names, matching_columns
from ldl.data.names import find_group, find_split
from ldl.data.tables.columns import found_kind
from ldl.errors import LDLError, some
from ldl.labels import LABEL_PREFIX
from ldl.tables import CsvTable, Parquet
from ldl.tables.roles import USUAL, Role, usual_columns

AUTO = "auto"
"""Text columns with which a table takes those with a usual name."""


@dataclass(frozen=True)
class ColumnChoice:
    """The user's options of the columns of a table; columns are given by names or patterns, such as ``r*``.

    Attributes:
        features: Columns of features; none means all columns left over.
        drop: Columns that are left out.
        categories: Columns that are categories although they hold numbers.
        texts: Columns of text; ``auto`` takes those with a usual name.
        trained: Features of a trained model, which are features here too.
        item: Column that names the row, or None.
        split: Column of the sets of a published split, or None.
        splits: Whether the protocol may be a published split.
        votes: Returns the columns of votes in a header of a named table, or None if labels cannot be votes.
        annotated: Whether options describe votes.
        export: Options that name the columns of an export of an annotation tool.
        find_apart: Returns the columns of the file of votes beside a named table, or None if there is none.
        apart: Columns of the file of votes, which is joined by the item; None if there is none.
    """

    features: Sequence[str] | str = ()
    drop: Sequence[str] | str = ()
    categories: Sequence[str] | str = ()
    texts: Sequence[str] | str = ()
    trained: Sequence[str] = ()
    item: str | None = None
    split: str | None = None
    splits: bool = False
    votes: Callable[[Sequence[str], str], VoteColumns] | None = None
    annotated: bool = False
    export: VoteOptions = VoteOptions()
    find_apart: Callable[[Path], VoteColumns | None] | None = None
    apart: Sequence[str] | None = None

    @property
    def explicit(self) -> set[str]:
        """Columns that are features because an option names them.

        A pattern such as ``*`` only chooses among columns that may be features.
        """
        texts = {*listed_names(self.texts)} - {AUTO}
        return {*listed_names(self.features), *listed_names(self.categories), *self.trained} | texts

    @property
    def names_columns(self) -> bool:
        """Whether an option names a column, which a table of matrices does not have."""
        return bool(self.features or self.drop or self.categories or self.texts or self.item or self.annotated)


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of a table by their role. Every column has at most one.

    Attributes:
        features: Columns of features.
        item: Column that names the item of a row, or None.
        group: Column of the groups, or None.
        split: Column of the sets of a published split, or None.
        left_out: Columns that are no features because of their role or their name.
    """

    features: list[str]
    item: str | None = None
    group: str | None = None
    split: str | None = None
    left_out: list[str] = field(default_factory=list)


def find_roles(
    table: CsvTable | Parquet,
    selection: ColumnChoice,
    target: Sequence[str],
    votes: VoteColumns | None,
    group_key: str | None,
    needed: bool = True,
) -> ColumnRoles:
    """Return the roles of columns, by the user's options and else by usual names.

    Args:
        table: The table.
        selection: The user's options.
        target: Columns of the distribution, the value or the votes.
        votes: All columns of votes in the table, or None.
        group_key: Column of the groups, or None for the only usual name.
        needed: Whether a given ``group_key`` or split must be in the table; the group may also be in a file of votes.

    Raises:
        LDLError: A given column is absent, several columns have the usual name of a role, or votes in another file
            need an item that no column names.
    """
    path, header = table.path, table.header
    drop = matching_columns(header, selection.drop, str(path))
    chosen = matching_columns(header, selection.features, str(path))
    of_votes = {*(votes.all if votes else ()), *(selection.apart or ())}
    # Groups and sets may stand in the file of votes too.
    others = {*target, *(votes.all if votes else ()), *selection.explicit}
    free = [name for name in header if name not in others]
    item = _find_item(table, selection, votes, [name for name in free if name != group_key])
    free = [name for name in free if name != item]
    group = find_group(path, header if group_key else free, group_key, needed and selection.apart is None)
    taken = {*drop, group}
    free = [name for name in free if name not in taken]
    split = None
    if selection.splits:
        split = find_split(path, header if selection.split else free, selection.split, needed)
    taken |= {*target, item, split}
    rest = [name for name in table.others() if name not in taken and name not in of_votes]
    among = set(rest)
    if chosen:
        rest = [name for name in chosen if name in among]
        among = set(rest)
    roles: tuple[Role, ...] = ("item", "group", "split")
    named = {name for role in roles for name in usual_columns([name for name in free if name in among], role)}
    spare = (*votes.beside, votes.item) if votes else ()
    named |= {name for name in (*spare, *(selection.apart or ())) if name not in taken}
    # Distributions beside votes in another file.
    named |= {name for name in rest if name.startswith(LABEL_PREFIX)}
    left_out = [name for name in header if name in named]
    return ColumnRoles([name for name in rest if name not in named], item, group, split, left_out)


def find_texts(
    patterns: Sequence[str] | str, features: Sequence[str], read: Callable[[list[str]], Any], source: str
) -> list[str]:
    """Return the features that are columns of text.

    Args:
        patterns: Names or patterns of the columns of text; ``auto`` takes those with a usual name that hold text.
        features: Columns of features.
        read: Returns a frame of some columns.
        source: Origin of the columns, for messages.

    Raises:
        LDLError: There is no feature of a given name, or none of a usual name holds text.
    """
    if listed_names(patterns) != [AUTO] or AUTO in features:
        return [str(name) for name in matching_columns(features, patterns, source)]
    usual = [str(name) for name in usual_columns(features, "text")]
    columns = read(usual) if usual else {}
    texts = [name for name in usual if found_kind(columns[name]) == "category"]
    if not texts:
        raise LDLError(
            f"{source}: no feature has a usual name of a column of text, such as {', '.join(USUAL['text'][:5])}; "
            f"name it with --data.text_columns, one of {some(features, 20)}"
        )
    return texts


def _find_item(
    table: CsvTable | Parquet, selection: ColumnChoice, votes: VoteColumns | None, free: Sequence[str]
) -> str | None:
    """Return the column that names the item of a row, if there is one. Raises LDLError if votes need it."""
    if selection.item is not None:
        return str(matching_columns(table.header, [selection.item], str(table.path))[0])
    if votes is not None and votes.layout == "long":
        return votes.item if votes.item in table.header else None
    usual = [str(name) for name in usual_columns([*free, *([votes.item] if votes and votes.item else [])], "item")]
    if selection.apart is not None:
        # The item of the votes is among their columns.
        usual = [str(name) for name in usual_columns([*free, *selection.apart], "item") if name in table.header]
        if not usual:
            raise LDLError(
                f"{table.path}: no column names the items that have votes in data.votes; pass --data.item_column, one "
                f"of {some(table.header, 20)}"
            )
        return usual[0]
    columns = {name: column[column.fillna("") != ""] for name, column in table.texts(usual).items()} if usual else {}
    full = [name for name, column in columns.items() if len(column) == len(table)]
    # Rows of one item must stay together, so a repeated item counts more than a number of the row.
    repeated = [name for name, column in columns.items() if not column.is_unique]
    return next(iter([*repeated, *full]), None)
