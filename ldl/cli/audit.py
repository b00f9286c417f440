"""The audit of a file: a table or a list of images with its protocol and group leakage, or the votes of annotators."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np

from ldl.annotations import Layout, power_curve, read_annotations, summarize
from ldl.annotations.votes import ITEMS, RATERS, VOTES
from ldl.charts.votes import rater_equivalence
from ldl.cli.options import CommandParser
from ldl.data.images.listed import ImageLDL, ImageValues, lists_images
from ldl.data.pictures import describe
from ldl.data.row_order import OrderAudit, audit_order, row_ids
from ldl.data.tables.tabular import TabularLDL
from ldl.data.tables.tabular_values import TabularValues
from ldl.engine.output import silence
from ldl.errors import LDLError
from ldl.labels import LABEL_PREFIX, LabelSpace
from ldl.options import options_of
from ldl.tables import open_named
from ldl.validation.files import find_path

Table = TabularLDL | TabularValues
Data = Table | ImageLDL | ImageValues
OF_VOTES = (
    *("layout", "label_columns", "rater_columns", "votes_column", "item_column", "rater_column", "vote_column"),
    "order",
)
"""Options of annotations."""


def audit(args: list[str]) -> None:
    """Report the content of a table or a list of images with its group leakage, or how annotators agree.

    An option of votes makes it an audit of annotations, as do columns of an item, a rater and a label, or counts of
    labels without features. A list of images has both.
    """
    parser = CommandParser("audit", audit.__doc__)
    parser.add_argument(
        "file", help="a .mat, .npz, .csv or .parquet file, or a folder; relative paths are searched below LDL_DATA too"
    )
    parser.add_argument("--group_key", help="name of the groups, such as persons: a key or a column")
    parser.add_argument("--feature_key", help="name of the features in a .mat or .npz")
    parser.add_argument("--target_key", help="name of the distributions in a .mat or .npz")
    parser.add_argument("--value_key", help="name of the values, for a table of values instead of distributions")
    parser.add_argument("--drop", nargs="+", default=[], metavar="NAME", help="columns that are left out")
    parser.add_argument("--protocol", help="protocol whose folds are audited, instead of the default")
    parser.add_argument("--normalize", action="store_true", help="divide distributions by their sums")
    votes = parser.add_argument_group("annotations: votes of several annotators on each item")
    votes.add_argument("--layout", choices=get_args(Layout), help="layout of the votes; found by default")
    votes.add_argument(
        "--label_columns", nargs="+", metavar="NAME", help="columns with counts of labels; r* is a pattern"
    )
    votes.add_argument("--rater_columns", nargs="+", metavar="NAME", help="columns with the votes of a rater each")
    votes.add_argument("--votes_column", help="column with the number of votes, if labels have shares")
    votes.add_argument("--item_column", help="column with the item; by default the first usual name, such as id")
    votes.add_argument("--rater_column", help="column with the rater, in a table with a row per vote")
    votes.add_argument("--vote_column", help="column with the label, in a table with a row per vote")
    votes.add_argument("--order", nargs="+", metavar="LABEL", help="all labels from the lowest to the highest")
    votes.add_argument("--out", metavar="FOLDER", help="folder for the chart of the power curve")
    given = parser.parse_args(args)
    silence()
    of_votes = {name: value for name in OF_VOTES if (value := getattr(given, name)) is not None}
    file = find_path(given.file)
    if os.path.isfile(file) and lists_images(file):
        print("\n".join([str(file), *_images(given, of_votes)]))
        return
    if of_votes:
        print("\n".join(lines_of_votes(file, given.group_key, given.out, of_votes)))
        return
    if given.out is not None:
        raise LDLError("--out is the folder of the chart of votes, and this is the audit of a table; pass --layout too")
    options = {"feature_key": given.feature_key, "missing": "keep", "drop": given.drop}
    if given.value_key is None:
        try:
            data: Table = _set_up(TabularLDL, given, target_key=given.target_key, normalize=given.normalize, **options)
        except LDLError:
            if not _holds_votes(file, given.group_key):
                raise
            print("\n".join(lines_of_votes(file, given.group_key, given.out, of_votes)))
            return
    else:
        data = _set_up(TabularValues, given, value_key=given.value_key, **options)
    print("\n".join(lines(data)))


def _holds_votes(file: Path, group_key: str | None) -> bool:
    """Return whether a file has named columns with one vote a row, or with counts of labels and no features."""
    if (table := open_named(file)) is None:
        return False
    header = {name.lower() for name in table.header if name != group_key}
    counts = {name for name in header if name.startswith(LABEL_PREFIX)}
    return not header - counts - {*ITEMS} if counts else all(header & {*usual} for usual in (ITEMS, RATERS, VOTES))


D = TypeVar("D", TabularLDL, TabularValues, ImageLDL, ImageValues)


def _set_up(kind: type[D], given: Namespace, **options: Any) -> D:
    """Return the data of an audited file, with as many folds as a run has. Raises LDLError."""
    # Every table has two folds; the number of rows, known after reading, limits their number.
    options |= {"path": given.file, "group_key": given.group_key, "val_fraction": 0.0, "folds": 2}
    options |= {} if given.protocol is None else {"protocol": given.protocol}
    data = kind(**options)
    try:
        data.setup()
    except LDLError as error:
        raise LDLError(_in_own_options(str(error), vars(given))) from None
    exclusive = data.rule == "group_exclusive" if isinstance(data, Table) else data.protocol == "group_exclusive"
    units = data.groups if exclusive else None
    usual = options_of(kind)["folds"].default
    data.folds = min(usual, data.size if units is None else len(np.unique(units)))
    return data


def _images(given: Namespace, of_votes: dict[str, Any]) -> list[str]:
    """Return the audit of a list of images with votes, or with values."""
    small = {"crop_size": 8, "skip_unreadable": True}  # small crops find images that cannot be read
    data: ImageLDL | ImageValues
    if given.value_key is None:
        names = {"item_column": "path_column", "order": "label_order"}
        options = {names.get(name, name): value for name, value in of_votes.items() if name != "layout"}
        data = _set_up(ImageLDL, given, **small, **options)
        columns = {**of_votes, "item_column": data.path_column}
        said = summarize(read_annotations(find_path(given.file), **columns))
    else:
        data = _set_up(ImageValues, given, **small, value_key=given.value_key)
        said = [f"labels      {data.grid}"]
    copies = np.arange(data.size) if data.copies is None else data.copies
    return [
        f"images      {data.size} can be read, {len(data.crops.failed)} cannot",
        f"copies      {describe(copies, data.records.files) or 'none'}",
        *said,
        *_groups(data),
    ]


def lines_of_votes(file: Path, group_key: str | None, out: str | None, options: dict[str, Any]) -> list[str]:
    """Return the audit of annotations.

    Args:
        file: The table.
        group_key: Column of the groups, such as patients.
        out: Folder for ``rater_equivalence.png``; None draws nothing.
        options: Further options of :func:`ldl.annotations.read_annotations`.
    """
    found = read_annotations(file, group_column=group_key, **options)
    shown = [str(file), *summarize(found)]
    if found.groups is None:
        shown.append("groups      unknown; pass their column, such as --group_key patient, or folds may leak them")
    else:
        sizes = np.unique(found.groups, return_counts=True)[1]
        shown.append(f"groups      {len(sizes)}, of {sizes.min()} to {sizes.max()} items")
    if out is not None:
        combiner, curve, items = power_curve(found.counts, found.groups)
        drawn = {
            "power": curve,
            "items": items,
            "labels": f"{len(found.labels)} {found.labels.kind} labels",
            "components": [combiner.size],
        }
        path = rater_equivalence(Path(out) / "rater_equivalence.png", drawn)
        shown.append(f"chart       {path}")
    return shown


def _in_own_options(message: str, known: Collection[str]) -> str:
    """Replace the names of options of a run in a message by those of the audit."""

    def named(match: re.Match[str]) -> str:
        return f"--{match[1]}" if match[1] in known else match[0]

    return re.sub(r"(?:--)?\bdata\.(\w+)(?: true\b)?", named, message)


def lines(data: Table) -> list[str]:
    """Return the audit of a table that is set up."""
    features, labels = data.audited
    order = audit_order(features, labels)
    constant = int((features == features[:1]).all(0).sum())
    part = f"; the lines below are about {len(features)} of them" if len(features) < data.size else ""
    return [
        str(data.file),
        f"rows        {data.size}{part}",
        f"features    {features.shape[1]}" + (f", {constant} of them constant" if constant else ""),
        *_missing(features),
        f"labels      {_labels(data.labels)}",
        f"duplicates  {_duplicates(features, labels)}",
        f"order       {order.verdict}",
        *_evidence(order),
        *_groups(data, order),
    ]


def _labels(labels: LabelSpace) -> str:
    names = [str(name) for name in labels.names] if labels.names else [f"{value:g}" for value in labels.axes[0]]
    shown = names if len(names) <= 8 else [*names[:4], "...", names[-1]]
    return f"{len(names)}: {', '.join(shown)}"


def _missing(features: np.ndarray) -> list[str]:
    missing = np.isnan(features)
    if not missing.any():
        return []
    return [f"missing     {missing.sum()} of {missing.size} features, in {missing.any(1).sum()} rows"]


def _duplicates(features: np.ndarray, labels: np.ndarray) -> str:
    ids, both = row_ids(features), row_ids(np.concatenate([features, labels], 1))
    again, exact = (len(numbers) - len(np.unique(numbers)) for numbers in (ids, both))
    return f"{again} (rows with the features of an earlier one), {exact} of them with its labels too"


def _evidence(audit: OrderAudit) -> list[str]:
    sample = [f"            on {audit.asked} random rows"] if audit.asked < audit.rows else []
    return sample + [
        f"            within {near.width:2} rows: {near.features:6.1%} by features, {near.labels:6.1%} by labels, "
        f"{near.chance:6.1%} by chance (p {near.p:.1g})"
        for near in audit.found
    ]


def _groups(data: Data, audit: OrderAudit | None = None) -> list[str]:
    if data.groups is None:
        hint = "name them with --group_key" + (
            ", or the folds may leak them" if audit is not None and audit.grouped else ""
        )
        return [
            f"groups      unknown; {hint}",
            f"protocol    {data.protocol}: groups unknown, so group leakage cannot be audited",
        ]
    counts, leaks = np.unique(data.groups, return_counts=True)[1], []
    for fold in range(data.num_folds):
        data.select_fold(fold)
        leaks.append(data.leak or 0.0)
    return [
        f"groups      {len(counts)}, of {counts.min()} to {counts.max()} rows",
        f"protocol    {data.protocol}: {np.mean(leaks):.1%} of the test rows share a group with training, over "
        f"{data.num_folds} folds",
    ]
