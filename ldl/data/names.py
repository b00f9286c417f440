"""Names of columns and matrices in a table: features, distributions, values, groups, splits and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ldl.errors import LDLError, did_you_mean, some
from ldl.labels import LABEL_PREFIX, LabelSpace
from ldl.tables.entries import NUMBER
from ldl.tables.roles import SPLIT_SETS, USUAL, Role, usual_columns

FEATURE_KEYS = ("features", "feature", "X", "x", "data")
TARGET_KEYS = ("labels", "label_distribution", "distributions", "distribution", "targets", "target", "D", "Y", "y")
VALUE_KEYS = USUAL["value"]


def find_name(
    path: Path, names: Iterable[str], content: str, option: str, chosen: str | None, usual: Sequence[str]
) -> str:
    """Return the given name, or the only usual one, among the names in a file.

    Args:
        path: The file, for messages.
        names: Names of its matrices or columns.
        content: Content under the name, for messages.
        option: Option that sets the name, for messages.
        chosen: The name, or None to look for ``usual`` names.
        usual: Usual names.

    Raises:
        LDLError: The name is absent, several names are usual, or a name is usual except for upper and lower case.
    """
    present = [name for name in dict.fromkeys(names) if not name.endswith("__")]  # scipy adds such names
    alike = {name.lower() for name in usual}
    matches = [name for name in present if (name == chosen if chosen else name.lower() in alike)]
    _check_single(path, matches, content, option)
    if matches and (chosen or matches[0] in usual):
        return matches[0]
    missing = (
        f"no key {chosen!r}{did_you_mean(chosen, present)}" if chosen else f"no {content} under {', '.join(usual)}"
    )
    raise LDLError(f"{path}: {missing}; it has {some([name[:40] for name in present], 20)}: pass --data.{option}")


def find_features(path: Path, arrays: Mapping[str, Any], chosen: str | None, target: Callable[[], str]) -> str:
    """Return the name of the feature matrix in a file.

    If several names are usual, matrices with another number of rows than that called ``target()`` do not count.
    Raises LDLError; see :func:`find_name`.
    """
    usual = [name for name in arrays if chosen is None and name.lower() in map(str.lower, FEATURE_KEYS)]
    others: list[str] = []
    if len(usual) > 1:
        # Values are a row or a column in a .mat file.
        rows = next((side for side in arrays[target()].shape if side > 1), 1)
        others = [name for name in usual if rows not in arrays[name].shape[:1]]
    names = [name for name in arrays if name not in others]
    return find_name(path, names, "features", "feature_key", chosen, FEATURE_KEYS)


def find_group(path: Path, names: Iterable[str], chosen: str | None, needed: bool = True) -> str | None:
    """Return the given name of the groups, or the only usual one; None if there are no groups.

    Args:
        path: The file, for messages.
        names: Names of its matrices or columns that may name groups.
        chosen: The name, or None.
        needed: Whether a given name must be in the file.

    Raises:
        LDLError: A given name is absent, or none is given and several names are usual.
    """
    return _find_role(path, list(names), "group", "group_key", chosen, needed)


def find_split(path: Path, names: Iterable[str], chosen: str | None, needed: bool = True) -> str | None:
    """Return the column of the sets of a published split, or None; as :func:`find_group`."""
    return _find_role(path, list(names), "split", "split_column", chosen, needed)


def _find_role(path: Path, names: list[str], role: Role, option: str, chosen: str | None, needed: bool) -> str | None:
    if chosen is not None and not needed and chosen not in names:
        return None
    return find_usual(path, usual_columns(names, role), role, option, chosen, names)


def find_usual(
    path: Path, usual: Sequence[str], content: str, option: str, chosen: str | None, names: Sequence[str]
) -> str | None:
    """Return the given name, or the only usual one, or None.

    Args:
        path: The file, for messages.
        usual: Those of its names that are usual for the content.
        content: Content under the name, for messages.
        option: Option that sets the name, for messages.
        chosen: The name, or None.
        names: All its names that may hold the content.

    Raises:
        LDLError: A given name is absent, or none is given and several names are usual.
    """
    if chosen is not None:
        return find_name(path, names, content, option, chosen, ())
    _check_single(path, usual, content, option)
    return usual[0] if usual else None


def _check_single(path: Path, names: Sequence[str], content: str, option: str) -> None:
    """Raise LDLError if several names may be the content."""
    if len(names) > 1:
        raise LDLError(f"{path}: each of {some(names)} may be the {content}; choose one with --data.{option} NAME")


def split_sets(path: Path, column: str, entries: Iterable[Any]) -> np.ndarray:
    """Return the set of each row in a published split, (N,): ``train``, ``val`` or ``test``.

    Args:
        path: The file, for messages.
        column: The column of the split.
        entries: Its N entries: these names, or usual synonyms, in upper or lower case.

    Raises:
        LDLError: Another entry.
    """
    texts = [str(entry).strip().lower() for entry in entries]
    if other := [text for text in texts if text not in SPLIT_SETS]:
        raise LDLError(
            f"{path}: column {column!r} is named like a published split, but {len(other)} entries are no train, val or "
            f"test, the first is {other[0]!r}; rename or remove the column, correct it, or pass a data.protocol "
            "that does not use the split"
        )
    return np.array([SPLIT_SETS[text] for text in texts], str)


def label_columns(path: Path, header: Sequence[str]) -> list[str]:
    """Return the columns named ``label:NAME``. Raises LDLError for a prefix with upper-case letters."""
    labels = [name for name in header if name.lower().startswith(LABEL_PREFIX)]
    if wrong := [name for name in labels if not name.startswith(LABEL_PREFIX)]:
        raise LDLError(f"{path}: column {wrong[0]!r} is no label, whose name begins with {LABEL_PREFIX!r}; rename it")
    return labels


def label_places(names: Sequence[str], labels: LabelSpace, source: str, fix: str) -> list[int]:
    """Return the position of each label's column among named columns.

    Names are compared as texts. If all of them are numbers, they are compared as numbers: ``1``, ``1.0`` and ``01`` are
    one label. If the columns are numbered and no label is, the columns are sorted by their numbers.

    Args:
        names: Names of the columns, one per label.
        labels: The labels.
        source: Origin of the columns, for messages.
        fix: What to do about other names, for messages.

    Raises:
        LDLError: The names are not those of the labels.
    """
    if (places := matching(names, labels)) is not None:
        return places
    numbers = [number for number in map(as_number, names) if number is not None]
    unnumbered = labels.kind == "nominal" and all(as_number(name) is None for name in labels.names)
    if len(set(numbers)) == len(names) and unnumbered:
        return sorted(range(len(numbers)), key=numbers.__getitem__)
    raise LDLError(f"{source}: the columns are {some(names)}, but the labels are {some(labels.names)}; {fix}")


def matching(names: Sequence[str], labels: LabelSpace) -> list[int] | None:
    """Return the position of each label's column, or None if the names are not those of the labels."""
    values = labels.axes[0] if labels.kind == "ordinal" else [as_number(name) for name in labels.names]
    return _find(labels.names, names) or _find(values, [as_number(name) for name in names])


def as_number(name: str) -> float | None:
    """Return the finite number that a name spells, or None."""
    number = float(name) if NUMBER.fullmatch(name) else math.inf
    return number if math.isfinite(number) else None


def _find(wanted: Sequence[Hashable], names: Sequence[Hashable]) -> list[int] | None:
    position_of = {name: position for position, name in enumerate(names)}
    same = len(wanted) == len(names) and None not in position_of and position_of.keys() == set(wanted)
    return [position_of[name] for name in wanted] if same and len(position_of) == len(names) else None
