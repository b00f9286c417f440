"""The labels of votes: whether they are classes or a scale, and the value of each."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from os.path import commonprefix
from typing import Any, Literal

import numpy as np

from ldl.errors import LDLError, did_you_mean, some
from ldl.labels import LabelSpace
from ldl.tables.entries import NUMBER, spelling

LabelType = Literal["auto", "nominal", "ordinal"]
NOT_FINITE = re.compile(r"[+-]?(inf(inity)?|nan)", re.IGNORECASE)


def label_space(
    names: Sequence[str],
    votes: Sequence[float] | np.ndarray,
    source: str,
    label_type: LabelType = "auto",
    order: Sequence[Any] = (),
) -> tuple[LabelSpace, np.ndarray, list[str]]:
    """Return the label space of votes, the position of the label of each name, and notes.

    Args:
        names: Names of the labels that have votes or columns, each once, as :func:`ldl.tables.entries.spelling` writes
            them.
        votes: Number of votes of each name.
        source: Name of the table, for messages.
        label_type: ``nominal`` labels are classes, and ``ordinal`` labels lie on a line; ``auto`` takes the line if all
            names are numbers, or an order is given.
        order: All labels from the lowest to the highest; with ``nominal`` in any order. Rising numbers are values.

    Raises:
        LDLError: A name is not in the order, or an ordinal label has no value.
    """
    listed = [spelling(entry, numeral=True) for entry in order]
    if len(set(listed)) < len(listed):
        raise LDLError(f"{source}: the order {some(listed, 20)} has a label twice; give every label one place")
    notes = look_alikes({name: f"{count:g} votes" for name, count in zip(names, votes)}, "labels", source)
    values = None if label_type == "nominal" else label_values(listed or names, source)
    if listed:
        labels, more = _ordered(listed, values, label_type, source)
        return labels, _positions(names, listed, source), notes + more
    if values is not None:
        axis, positions = np.unique(values, return_inverse=True)
        notes += _odd_number(axis, np.bincount(positions, votes), source)
        if label_type == "auto":
            notes.append(
                f"{source}: the labels {some(list(names), 4)} are read as numbers on a scale; if they are codes of "
                "classes, pass label_type nominal (and ordinal if they are a scale)"
            )
        return LabelSpace.ordinal(axis.tolist()), positions, notes
    words = [name for name in names if not NUMBER.fullmatch(name)]
    if label_type == "ordinal":
        raise LDLError(
            f"{source}: the labels {some(words)} are no numbers, so their order is unknown; list all labels from the "
            "lowest to the highest in order, or answers that are no votes in no_vote"
        )
    if label_type == "auto":
        notes += _words_beside_numbers(names, words, votes, source)
    return LabelSpace.nominal(names), np.arange(len(names)), notes


def label_values(names: Sequence[str], source: str) -> list[float] | None:
    """Return the numbers that names spell behind a common prefix, such as ``stars``; None if one spells no number.

    A hyphen or a point behind a letter separates it from the number, unless it follows some names' letter only.
    Raises LDLError for infinity or NaN beside numbers.
    """
    start = len(commonprefix(names)) if len(names) > 1 else 0
    while start and (names[0][start - 1].isdigit() or names[0][start - 1] in ".-+"):
        if not names[0][start - 1].isdigit() and names[0][start - 2 : start - 1].isalpha():
            break
        start -= 1
    rests = [name[start:] for name in names]
    if not all(NUMBER.fullmatch(rest) or NOT_FINITE.fullmatch(rest) for rest in rests):
        return None
    values = list(map(float, rests))
    if odd := [name for name, value in zip(names, values) if not np.isfinite(value)]:
        if len(odd) == len(names):
            return None
        raise LDLError(f"{source}: the label {odd[0]!r} is beside numbers and not finite; correct it, or rename it")
    return values


def natural_order(names: Iterable[str]) -> list[str]:
    """Return names sorted: numbers by their values, then other text."""
    return sorted(names, key=lambda name: (0, float(name), name) if NUMBER.fullmatch(name) else (1, 0.0, name))


def look_alikes(names: dict[str, str], role: str, source: str, case: bool = True) -> list[str]:
    """Return notes about names that differ in what a reader hardly sees.

    Args:
        names: Names, with a text about each.
        role: Their role, for the notes.
        source: Name of the table.
        case: Whether names that differ in upper and lower case look alike.
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        shown = name
        if not name.isascii():
            shown = "".join(
                letter for letter in unicodedata.normalize("NFKC", name) if unicodedata.category(letter) != "Cf"
            )
        shown = " ".join(shown.split())
        alike.setdefault(shown.casefold() if case else shown, []).append(name)
    return [
        f"{source}: the {role} {' and '.join(f'{ascii(name)} ({names[name]})' for name in same)} look alike and are "
        "kept apart; write them in one way if they are the same"
        for same in alike.values()
        if len(same) > 1
    ]


def _ordered(
    listed: list[str], values: list[float] | None, label_type: LabelType, source: str
) -> tuple[LabelSpace, list[str]]:
    if label_type == "nominal":
        return LabelSpace.nominal(listed), []
    if values is not None and all(low < high for low, high in zip(values, values[1:])):
        return LabelSpace.ordinal(values), []
    labels = LabelSpace("ordinal", tuple(listed), (tuple(map(float, range(len(listed)))),))
    if numbers := [name for name in listed if NUMBER.fullmatch(name)]:
        why = "do not rise" if len(numbers) == len(listed) else "stand beside words"
        return labels, [
            f"{source}: the numbers {some(numbers, 4)} of the order {why}, so values are the places 0 to "
            f"{len(listed) - 1} in the order; list rising numbers alone for values of their own"
        ]
    return labels, []


def _positions(names: Sequence[str], listed: list[str], source: str) -> np.ndarray:
    """Return the position of each name in the order, -1 if it is not there; numbers are compared by value."""
    positions = {name: position for position, name in enumerate(listed)}
    if all(map(NUMBER.fullmatch, [*names, *listed])):
        numbers = {float(name): position for name, position in positions.items()}
        return np.array([numbers.get(float(name), -1) for name in names], np.int64)
    return np.array([positions.get(name, -1) for name in names], np.int64)


def _odd_number(axis: np.ndarray, votes: np.ndarray, source: str) -> list[str]:
    """Return a note about a number that may be a code for no answer, such as -1 or 99."""
    for odd, others in ((0, axis[1:]), (-1, axis[:-1])):
        far = len(others) > 2 and np.abs(others - axis[odd]).min() >= np.ptp(others)
        negative = odd == 0 and len(others) > 2 and axis[0] < 0 <= others.min() and others.max() > -axis[0]
        if far or negative:
            return [
                f"{source}: the label {axis[odd]:.10g} ({votes[odd]:g} of {votes.sum():g} votes) stands apart from the "
                f"others, {others[0]:.10g} to {others[-1]:.10g}; if it is no vote, pass it as no_vote"
            ]
    return []


def _words_beside_numbers(
    names: Sequence[str], words: list[str], votes: Sequence[float] | np.ndarray, source: str
) -> list[str]:
    if len(names) - len(words) > 1:
        counts = [
            f"{name!r} ({count:g} of {np.sum(votes):g} votes)" for name, count in zip(names, votes) if name in words
        ]
        return [
            f"{source}: labels are nominal because {', '.join(counts[:8])} {'is' if len(words) == 1 else 'are'} no "
            "number, and the others are; if that is no vote, pass it as no_vote; for a scale, pass order; for classes, "
            "pass label_type nominal"
        ]
    if len(names) > 2 and all(re.match(r"[+-]?[0-9]", name) for name in names):
        return [
            f"{source}: the labels {some(list(names), 4)} begin with numbers and are read as nominal; for a scale, "
            "list them from the lowest to the highest in order"
        ]
    return []


def unused(answers: Iterable[Any], names: Iterable[str], option: str, source: str) -> list[str]:
    """Return notes about entries of an option that are no answer of the table."""
    present = list(names)
    return [
        f"{source}: {option} has {answer!r}, which nobody answered{did_you_mean(answer, present)}"
        for answer in answers
        if answer not in present
    ]
