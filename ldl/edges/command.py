"""What the commands of this folder share: how they end, and the chart they may draw."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg

from ldl.errors import LDLError


def run(parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], None], args: list[str] | None) -> None:
    """Do the work of a command line; a mistake of the user ends in one line on standard error and exit code 2."""
    options = parser.parse_args(args)
    try:
        work(options)
    except LDLError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def check_chart(path: Path | None) -> None:
    """Raise LDLError for a chart of a kind that cannot be drawn, before anything is measured."""
    if path is not None and path.suffix and path.suffix[1:].lower() not in FigureCanvasAgg.filetypes:
        raise LDLError(f"--chart {path} cannot be drawn as {path.suffix!r}; let its name end in .png, .pdf or .svg")


@contextmanager
def drawing(path: Path) -> Iterator[None]:
    """Draw a chart within. Raises LDLError where it cannot be written."""
    try:
        yield
    except OSError as error:
        raise LDLError(f"--chart {path} cannot be written: {error.strerror}; the figures are in --out") from error
