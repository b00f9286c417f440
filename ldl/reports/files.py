"""Write results: JSON without NaN, CSV with seven digits, Markdown tables, and records for the loggers."""

from __future__ import annotations

import codecs
import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pytorch_lightning.loggers import Logger, WandbLogger

from ldl.charts.drawing import warn_on_error
from ldl.checkpoint import RESUME_ADVICE, replacing
from ldl.tables.entries import NUMBER

ESCAPED = "backslashreplace"
"""Error handler for text that is not Unicode, such as file names with arbitrary bytes."""

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
"""Beginnings of text that spreadsheet programs read as a formula, as OWASP lists them ("CSV Injection")."""

ROWS_AT_ONCE = 2**14
"""Rows of a table that exist as Python objects at the same time."""


def write_json(path: Path, content: dict[str, Any], advice: str = RESUME_ADVICE) -> None:
    """Write a whole JSON file or none; NaN and infinities become null.

    Raises LDLError as :func:`ldl.checkpoint.replacing` does.
    """
    with replacing(path, advice) as file:
        file.write((json.dumps(_without_nan(content), indent=2, allow_nan=False) + "\n").encode())


def _without_nan(value: Any) -> Any:
    """Return a value with None for each NaN or infinity at any depth."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(path: Path, header: list[str], rows: Iterable[list[Any]], quote: bool = False) -> None:
    """Write a whole CSV file or none; numbers have seven digits.

    Args:
        path: The file.
        header: Names of the columns.
        rows: The rows.
        quote: Put an apostrophe before text that spreadsheet programs would read as a formula.
    """
    with replacing(path) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file, ESCAPED))
        for row in chain([header], rows):
            cells = [f"{item:.7g}" if isinstance(item, float) else item for item in row]
            writer.writerow(map(_escaped, cells) if quote else cells)


def write_table(path: Path, table: pd.DataFrame, quote: bool = False) -> None:
    """Write a data frame as :func:`write_csv` does; an unknown number is an empty field."""
    rows = table.astype(object).where(table.notna(), None).to_numpy().tolist()
    write_csv(path, list(table.columns), rows, quote)


def _escaped(cell: Any) -> Any:
    is_formula = isinstance(cell, str) and cell.startswith(FORMULA) and not NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def lines(columns: Iterable[np.ndarray]) -> Iterator[list[Any]]:
    """Yield the rows of columns (n,) as Python objects."""
    columns = list(columns)
    for start in range(0, len(columns[0]), ROWS_AT_ONCE):
        yield from map(list, zip(*(column[start : start + ROWS_AT_ONCE].tolist() for column in columns)))


def below(name: str) -> str:
    """Return an instance's name as a relative path without ``..``, so that a joined path stays in its folder."""
    return "/".join(name_part for name_part in Path(name).parts if name_part not in ("/", "//", "..")) or "_"


def as_text(text: str) -> str:
    """Escape a name for one line of Markdown, so that it is neither markup nor HTML."""
    return re.sub(r"([\\`*\[\]<>|$~&]|(?<!\w)_|_(?!\w)|^[#+-](?=\s))", r"\\\1", " ".join(text.split()))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table without a final newline; entries are Markdown."""
    table_rows = [f"| {' | '.join(entries)} |" for entries in (header, *rows)]
    return "\n".join([table_rows[0], "|---" * len(header) + "|", *table_rows[1:]])


def log_images(loggers: Sequence[Logger], charts: dict[str, Path]) -> None:
    """Send charts to wandb, if it is among the loggers."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            for name, path in charts.items():
                with warn_on_error(f"{name} in wandb"):
                    logger.log_image(f"charts/{name}", [str(path)])


def log_table(loggers: Sequence[Logger], columns: list[str], rows: list[list[Any]]) -> None:
    """Send a table of predictions to wandb, if it is among the loggers."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            with warn_on_error("the table of predictions in wandb"):
                logger.log_table("predictions", columns=columns, data=rows)
