"""What the commands of this folder share: how they end, and the chart they may draw."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from matplotlib.backends.backend_agg import FigureCanvasAgg

from ldl.checkpoint import MENDED_OUT
from ldl.errors import LDLError


def run(parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], None], args: list[str] | None) -> None:
    """Do the work of a command line; a mistake of the user ends in one line on standard error and exit code 2."""
    options = parser.parse_args(args)
    try:
        work(options)
    except LDLError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def check_out(path: Path) -> None:
    """Make the folder of a file to write. Raises LDLError where it cannot be written, before anything is measured."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise LDLError(f"--out {path} cannot be written: {error.strerror}; {MENDED_OUT}") from error


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
