"""The audit of a file: what a run reads from it, with its protocol and group leakage, and how annotators agree."""

from __future__ import annotations

import os
import re
import warnings
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ldl.annotations import Annotations, Layout, power_curve, read_annotations, summarize
from ldl.annotations.columns import VoteColumns, VoteOptions, find_columns, matching_columns
from ldl.annotations.exports.direct import ExportTable, is_export, open_export
from ldl.charts.votes import rater_equivalence
from ldl.command.options import CommandParser, add_options
from ldl.data.annotated import Annotated
from ldl.data.base import LDLDataModule
from ldl.data.images.listed import ImageLDL, ImageValues, ListedImages, listed_names, lists_images
from ldl.data.names import find_group
from ldl.data.pictures import SUFFIXES, describe
from ldl.data.row_order import OrderAudit, audit_order, row_ids
from ldl.data.tables.tabular import TabularLDL
from ldl.data.tables.tabular_values import TabularValues
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import options_of
from ldl.run.output import silence
from ldl.tables import CsvTable, Parquet, open_named
from ldl.tables.roles import Role, usual_columns
from ldl.validation.files import as_stored, find_path, visible
from ldl.validation.option import Option

Table = TabularLDL | TabularValues
Data = Table | ImageLDL | ImageValues
KINDS: dict[str, type[Data]] = {kind.__name__: kind for kind in (TabularLDL, ImageLDL, TabularValues, ImageValues)}
READ_ROLES = ("path", "fold", "group", "label", "feature", "place", "speed")
"""Roles of options that decide what is read from a file, and how."""
EVERY_IMAGE = {"crop_size": 8, "skip_unreadable": True}
"""Options with which an audit finds the images that cannot be read; small crops find them too."""
NO_FEATURES: tuple[Role, ...] = ("item", "image", "rater", "group", "split")
"""Roles of columns that are no features beside votes."""


def audit(args: list[str]) -> None:
    """Report the content of a table or of a list of images, and its group leakage.

    The options are those of the run's data. A file of votes without features and images is read as annotations, as any
    file is with --layout, and reported with the agreement of the annotators. So is the export of an annotation tool.
    """
    parser = CommandParser("audit", audit.__doc__)
    parser.add_argument(
        "file",
        help="a .mat, .npz, .csv or .parquet file, a folder, or an export of an annotation tool; relative paths are "
        "searched below LDL_DATA too",
    )
    parser.add_argument("--data", choices=KINDS, help="data class of the run; found by default")
    options_of_kinds = [each for kind in KINDS.values() for each in options_of(kind).items()]
    names = dict.fromkeys(name for name, option in options_of_kinds if _is_read(name, option))
    votes = [name for name in names if name in options_of(Annotated)]
    add_options(parser, KINDS.values(), [name for name in names if name not in votes], {})
    group = parser.add_argument_group("annotations: votes of several annotators on each item")
    add_options(group, KINDS.values(), votes, {"--order": "label_order"})
    group.add_argument(
        "--layout", choices=get_args(Layout), help="layout of the votes, which are then read without features"
    )
    group.add_argument("--out", metavar="FOLDER", help="folder for the chart of the power curve")
    given = parser.parse_args(args)
    silence()
    options = {name: value for name in names if (value := getattr(given, name)) is not None}
    try:
        print("\n".join(_report(given, options)))
    except LDLError as error:
        raise LDLError(_in_own_options(str(error), {*names, "data"})) from None


def _is_read(name: str, option: Option) -> bool:
    """Return whether the audit has an option of the data of a run. It makes no batches, and reads all folds."""
    of_batches = option.role == "speed" and name in options_of(LDLDataModule)
    return option.role in READ_ROLES and not of_batches and name not in ("path", "fold", *EVERY_IMAGE)


def _arguments_of(function: Callable[..., object], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a function has as arguments of the same names."""
    return {name: options[name] for name in signature(function).parameters if name in options}


def _report(given: Namespace, options: dict[str, Any]) -> list[str]:
    """Return the lines of the audit. Raises LDLError."""
    file = find_path(os.path.expanduser(given.file), given.root and os.path.expanduser(given.root))
    table = open_named(file)
    kind = KINDS[given.data] if given.data else None if given.layout else _kind(file, table, options)
    if kind is None:
        used = {*_arguments_of(read_annotations, options), "label_order", "group_key", "drop", "root"}
        if unused := [name for name in options if name not in used]:
            raise LDLError(
                f"{file} is read as votes without features, which have no use for --{unused[0]}; leave it out, or name "
                "the data class with --data"
            )
        return lines_of_votes(file, given.layout, options, given.out)
    try:
        data = _set_up(kind, given.file, options)
    except LDLError as error:
        if given.data or table is None or not _describes_votes(kind, table, options):
            raise
        reason = f"run         stops, so these lines are about the votes alone: {error}"
        return [*lines_of_votes(file, None, options, given.out), _in_own_options(reason, {*options_of(kind), "data"})]
    shown = _images(data) if isinstance(data, ListedImages) else lines(data)
    if given.out is not None:
        shown.append(_chart(getattr(data, "annotations", None), given.out))
    return [str(file), *shown]


def _kind(file: Path, table: CsvTable | Parquet | None, options: dict[str, Any]) -> type[Data] | None:
    """Return the data class of a run that reads a file; None for votes without features."""
    if is_export(file, _named(options)):
        return None
    values = "value_key" in options
    if table is None:
        folder = os.path.isdir(file) and not visible(file, "*.npy")
        pictures = folder and any(path.suffix.lower() in SUFFIXES for path in visible(file, "**/*"))
        return ImageLDL if pictures else TabularValues if values else TabularLDL
    if "path_column" in options or lists_images(table):
        return ImageValues if values else ImageLDL
    if values:
        return TabularValues
    with suppress(LDLError):  # the data class reports it
        columns = _vote_columns(table, options)
        if "votes" not in options and not _beside_votes(table, columns, options):
            return None
    return TabularLDL


def _vote_columns(table: CsvTable | Parquet | ExportTable, options: dict[str, Any]) -> VoteColumns:
    """Return the columns of votes in a table. Raises LDLError if there are none."""
    return find_columns(table.header, str(table.path), options=_named(options))


def _named(options: dict[str, Any]) -> VoteOptions:
    """Return the options that name columns of votes."""
    return VoteOptions(**_arguments_of(VoteOptions, options), group_column=options.get("group_key"))


def _beside_votes(table: CsvTable | Parquet, columns: VoteColumns, options: dict[str, Any]) -> list[str]:
    """Return the columns beside votes that may be features."""
    drop = matching_columns(table.header, options.get("drop", ()), str(table.path))
    others = [name for name in table.header if name not in {*columns.all, *drop, options.get("split_column")}]
    return [name for name in others if not any(usual_columns([name], role) for role in NO_FEATURES)]


def _describes_votes(kind: type[Data], table: CsvTable | Parquet, options: dict[str, Any]) -> bool:
    """Return whether a table holds votes by an option, or single votes by the usual names, and no images."""
    if kind is not TabularLDL or "votes" in options:
        return False
    try:
        columns = _vote_columns(table, options)
    except LDLError:
        return False
    return columns.layout == "long" or bool(_arguments_of(VoteOptions, options).keys() - {"item_column"})


def _set_up(kind: type[Data], file: str, options: dict[str, Any]) -> Data:
    """Return the data of an audited file, with as many folds as a run has. Raises LDLError."""
    known = options_of(kind)
    if others := [name for name in options if name not in known]:
        kinds = [other for other, cls in KINDS.items() if others[0] in options_of(cls)]
        raise LDLError(
            f"{file} is read by {kind.__name__}, which has no option {others[0]}; leave it out, or pass --data "
            f"{' or '.join(kinds)}"
        )
    usual = {"missing": "keep"} if issubclass(kind, Table) else EVERY_IMAGE
    # Every table has two folds; the number of rows, known after reading, limits their number.
    data = kind(**{**usual, "folds": 2, **options, "path": file, "val_fraction": 0.0})
    data.setup()
    if "folds" not in options:
        exclusive = "group_exclusive" in (getattr(data, "rule", None), data.protocol)
        units = data.groups if exclusive else None
        data.folds = min(known["folds"].default, data.size if units is None else len(np.unique(units)))
    return data


def _images(data: ImageLDL | ImageValues) -> list[str]:
    """Return the audit of a list of images that is set up."""
    votes = getattr(data, "annotations", None)
    copies = np.arange(data.size) if data.copies is None else data.copies
    return [
        f"images      {data.size} can be read, {len(data.crops.failed)} cannot",
        f"copies      {describe(copies, data.records.files) or 'none'}",
        *([f"labels      {data.grid}"] if isinstance(data, ImageValues) else []),
        *([] if votes is None else summarize(votes)),
        *_groups(data),
    ]


def lines_of_votes(file: Path, layout: Layout | None, options: dict[str, Any], out: str | None = None) -> list[str]:
    """Return the audit of annotations, without features and images.

    Args:
        file: The table.
        layout: Its layout; None finds it.
        options: Options of the data of a run, such as ``group_key``.
        out: Folder for ``rater_equivalence.png``; None draws nothing.

    Raises:
        LDLError: The votes cannot be read, or there is a chart to draw and no item has two votes.
    """
    columns = _arguments_of(read_annotations, options)
    table: CsvTable | Parquet | ExportTable | None = open_export(file, _named(options)) or open_named(file)
    group = options.get("group_key")
    images: list[str] = []
    if table is not None:
        known: list[Any] = []
        with suppress(LDLError):  # read_annotations reports it
            found = _vote_columns(table, options)
            if dropped := matching_columns(table.header, options.get("drop", ()), str(file)):
                kept = found.without(dropped)
                columns |= {"label_columns": kept.labels, "rater_columns": kept.raters}
            known = found.all
            if found.item is not None and not isinstance(table, ExportTable):
                images = listed_names(table, found.item)
        if group is None:
            group = find_group(file, [name for name in table.header if name not in known], None)
    columns["spell"] = partial(as_stored, folder=file.parent) if images else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they are the notes
        votes = read_annotations(file, layout, group_column=group, order=options.get("label_order", ()), **columns)
    shown = [str(file), *summarize(votes), *(f"note        {note}" for note in votes.notes)]
    if images and not any((file.parent / name).is_file() for name in images):
        shown.append(f"images      none of {len(set(images))} is there, the first is {images[0]}")
    if votes.groups is None:
        shown.append("groups      unknown; pass their column, such as --group_key patient, or folds may leak them")
    else:
        sizes = np.unique(votes.groups, return_counts=True)[1]
        column = "" if "group_key" in options else f" (column {group!r})"
        shown.append(f"groups      {len(sizes)}, of {sizes.min()} to {sizes.max()} items{column}")
    return shown if out is None else [*shown, _chart(votes, out)]


def _chart(votes: Annotations | None, out: str) -> str:
    """Draw the power curve, and return a line about the chart. Raises LDLError for labels that are no votes."""
    if votes is None:
        raise LDLError("--out is the folder of the chart of votes, and this file has none; leave it out")
    combiner, curve, items = power_curve(votes.counts, votes.groups)
    drawn = {
        "power": curve,
        "items": items,
        "labels": f"{len(votes.labels)} {votes.labels.kind} labels",
        "components": [combiner.size],
    }
    path = rater_equivalence(Path(out).expanduser() / "rater_equivalence.png", drawn)
    return f"chart       {path}"


def _in_own_options(message: str, known: set[str]) -> str:
    """Replace the names of options of a run in a message by those of the audit."""

    def named(match: re.Match[str]) -> str:
        return f"--{match[1]}" if match[1] in known else match[0]

    message = re.sub(r"(?:--)?\bdata\.path\b", "FILE", message)
    return re.sub(r"(?:--)?\bdata\.(\w+)(?: true\b)?", named, message)


def lines(data: Table) -> list[str]:
    """Return the audit of a table that is set up, without its name."""
    features, labels = data.audited
    order = audit_order(features, labels)
    constant = int((features == features[:1]).all(0).sum())
    part = f"; the lines below are about {len(features)} of them" if len(features) < data.size else ""
    votes = getattr(data, "annotations", None)
    return [
        f"rows        {data.size}{part}",
        f"features    {features.shape[1]}" + (f", {constant} of them constant" if constant else ""),
        *_missing(features),
        *([f"labels      {_labels(data.labels)}"] if votes is None else []),
        f"duplicates  {_duplicates(features, labels)}",
        # The order of the rows is judged by features too.
        *(line for line in ([] if votes is None else summarize(votes)) if not line.startswith("order ")),
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
