"""Writing results: JSON without NaN and never half, CSV with seven digits, tables of Markdown."""

from __future__ import annotations

import codecs
import csv
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ldl.checkpoint import MENDED, replacing

HELD = 2**14
"""Rows of a table of which Python has objects at a time."""


def write_json(path: Path, content: dict[str, Any], mend: str = MENDED) -> None:
    """Write all or nothing; NaN and infinities become null. Raises LDLError as ``replacing``."""
    with replacing(path, mend) as file:
        file.write((json.dumps(_finite(content), indent=2, allow_nan=False) + "\n").encode())


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    """Write a CSV file, all or nothing; numbers keep seven digits."""
    with replacing(path) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file))
        writer.writerow(header)
        writer.writerows([f"{item:.7g}" if isinstance(item, float) else item for item in row] for row in rows)


def lines(columns: Iterable[np.ndarray]) -> Iterator[list[Any]]:
    """The entries of columns (n,) row by row, as Python's own, so many at a time as may be held."""
    columns = list(columns)
    for start in range(0, len(columns[0]), HELD):
        yield from map(list, zip(*(column[start : start + HELD].tolist() for column in columns)))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, without a newline at its end."""
    lines = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])
