"""The columns of the tabular benchmark: a set under a protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ldl.cells.store import Row
from ldl.data import TabularLDL
from ldl.data.tables.grouped import GroupProtocol
from ldl.errors import LDLError

PROTOCOLS: dict[str, tuple[GroupProtocol, ...]] = {
    "persons": ("persons", "group_exclusive"),
    "shuffled": ("shuffled", "random_kfold"),
}
"""The honest one first, each with the names that a run may call it by. ``shuffled`` was once called ``kfold``."""


@dataclass(frozen=True)
class Column:
    """A set, its file, and the protocol of its folds; the set's name alone where it has no other protocol."""

    name: str
    path: str
    protocol: GroupProtocol
    title: str


def columns_of(files: dict[str, str], sets: Iterable[str], protocols: Iterable[str]) -> list[Column]:
    """The columns of some sets: persons are kept apart where they are known. Raises LDLError where none is left."""
    found = []
    for name in sets:
        data = TabularLDL(path=files[name])
        data.setup()  # a missing file is no failure of a method
        if data.groups is None:
            found += [Column(name, files[name], "shuffled", name)] if "shuffled" in protocols else []
        else:
            for protocol, names in PROTOCOLS.items():
                column = Column(name, files[name], names[0], f"{name}, {protocol}")
                found += [column] if protocol in protocols else []
    if not found:
        raise LDLError(f"nobody knows the persons of {', '.join(sets)}; take --protocol shuffled")
    return found


def titled(cells: Iterable[Row], columns: Iterable[Column]) -> list[Row]:
    """The cells of some columns, each with the title of its column for its set."""
    titles = {(column.name, column.protocol): column.title for column in columns}
    keyed = [(cell, (cell["set"], cell["protocol"])) for cell in cells]
    return [{**cell, "set": titles[key]} for cell, key in keyed if key in titles]


def protocol_of(results: Row) -> str | None:
    """The protocol of a run's ``results.json`` as columns call it; None of any other."""
    name = "shuffled" if results["protocol"] == "kfold" else results["protocol"]
    return next((protocol for protocol, names in PROTOCOLS.items() if name in names), None)
