"""Persons of public tables whose rows stand person by person, though the files do not say so."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Persons:
    """A table by the name of its file, and how many of its rows show each person, in the order of the rows."""

    name: str
    rows: tuple[int, ...]


KNOWN = {
    "c8f823cca28fc94f": Persons("SJAFFE.mat", (22, 23, 22, 20, 20, 21, 21, 22, 21, 21)),
    "202cd5461a8b2ac5": Persons("SBU_3DFE.mat", (25,) * 100),
}
"""By :func:`checksum` of the features. BU-3DFE has 25 pictures of each of 100 persons. The borders in SJAFFE are those
that part the features best (``benchmarks/tables/persons.py``); their counts are JAFFE's, in another order."""


def known_persons(features: np.ndarray) -> np.ndarray | None:
    """The person of every row, (N,) from 1, where these are the features of a known table; else None."""
    if not any(sum(table.rows) == len(features) for table in KNOWN.values()):
        return None
    table = KNOWN.get(checksum(features))
    return None if table is None else np.repeat(np.arange(1, len(table.rows) + 1), table.rows)


def stranger(name: str) -> str | None:
    """One line for a file that has the name of a known table, but other features; None for any other name."""
    if name.lower() not in {table.name.lower() for table in KNOWN.values()}:
        return None
    return f"{name} is not the published table, whose persons are known: those of this one are unknown"


def checksum(features: np.ndarray) -> str:
    """The start of the SHA-256 of a table (N, F), the same for any file that holds the same numbers as float64."""
    numbers = np.ascontiguousarray(features, dtype="<f8")
    return hashlib.sha256(repr(numbers.shape).encode() + numbers.tobytes()).hexdigest()[:16]
