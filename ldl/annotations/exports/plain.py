"""Tables and JSON of no known tool, by the names of their columns and paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from ldl.annotations.exports.crowds import table_of
from ldl.annotations.exports.json_exports import records_of
from ldl.annotations.exports.responses import ExportOptions, Responses
from ldl.annotations.exports.tool_files import FIRST_RECORDS, ToolFile
from ldl.errors import LDLError, did_you_mean, some
from ldl.tables.roles import Role, usual_columns

ROLES: tuple[Role, ...] = ("item", "rater", "vote")


def plain_votes(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read single votes, a row each, in a table, or at the paths of JSON that the options name.

    Raises:
        LDLError: A column is absent, or the options do not name the paths of JSON.
    """
    of_records = any(file.table is None for file in files)
    table = _from_records(files, options) if of_records else table_of(files)
    named = {role: getattr(options, f"{role}_column") for role in ROLES}
    columns = {role: name or next(iter(usual_columns(table, role)), None) for role, name in named.items()}
    for role, name in columns.items():
        if (name is None and role != "rater") or (name is not None and name not in table):
            near = f" {name!r}{did_you_mean(name, table)}" if name else ""
            raise LDLError(
                f"{files[0].name} has no {role} column{near}; name it with {role}_column. It has {some(list(table))}"
            )
    item, rater, vote = columns["item"], columns["rater"], columns["vote"]
    return Responses(
        str(vote),
        list(table[item]),
        None if rater is None else list(table[rater]),
        list(table[vote]),
        table.drop(columns=[name for name in (item, rater, vote) if name is not None]).astype(str),
        item=str(item),
        rater=str(rater or "unknown"),
    )


def _from_records(files: Sequence[ToolFile], options: ExportOptions) -> pd.DataFrame:
    """Return a row for each of the deepest objects on the paths that the options name. Raises LDLError."""
    records = records_of(files)
    paths = list(dict.fromkeys(path for record in records[:FIRST_RECORDS] for path in _paths(record)))
    named = [options.item_column, options.rater_column, options.vote_column]
    if options.item_column is None or options.vote_column is None:
        ends = {path: path.rpartition(".")[2].removesuffix("[]") for path in paths}
        hints = []
        for role, words in zip(ROLES, ("items", "raters", "labels")):
            usual = set(usual_columns(ends.values(), role))
            hints.append(f"{words} {some([path for path, end in ends.items() if end in usual], 4)}")
        raise LDLError(
            f"{files[0].name} is JSON of no known tool; name the paths with item_column, rater_column and vote_column. "
            f"By their names, these may be {'; '.join(hints)}"
        )
    for path in filter(None, named):
        if path not in paths and path not in [each.removesuffix("[]") for each in paths]:
            raise LDLError(f"{files[0].name} has no path {path!r}{did_you_mean(path, paths)}; it has {some(paths)}")
    wanted = [path for path in named if path]
    return pd.DataFrame([row for record in records for row in _rows(record, "", wanted)], dtype=object)


def _paths(node: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all values in an object; ``[]`` stands for each entry of a list."""
    if isinstance(node, dict):
        for key, child in node.items():
            yield from _paths(child, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list):
        for child in node[:1]:
            yield from _paths(child, f"{path}[]")
    else:
        yield path


def _rows(node: Any, path: str, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Return the values of an object by their paths, in a row for each object of the lists on a wanted path."""
    if isinstance(node, list) and any(isinstance(child, dict) for child in node):
        if not any(each.startswith(f"{path}[]") for each in wanted):
            return [{}]
        return [row for child in node for row in _rows(child, f"{path}[]", wanted)]
    if isinstance(node, dict):
        rows: list[dict[str, Any]] = [{}]
        for key, child in node.items():
            further = _rows(child, f"{path}.{key}" if path else str(key), wanted)
            rows = [row | more for row in rows for more in further]
        return rows
    return [{path: node}]
