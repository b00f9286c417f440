"""The command line of a script."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once
from ldl.errors import LDLError


def make_parser(doc: str | None, threads: int | None = None, block: str | None = None) -> argparse.ArgumentParser:
    """A parser that shows the script's docstring.

    Args:
        doc: The docstring.
        threads: Default of an option ``--threads``; None for no such option.
        block: Block of a Markdown page that an option ``--page`` writes; None for no such option.
    """
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if threads is not None:
        made.add_argument("--threads", type=int, default=threads, help="(default: %(default)s)")
    if block is not None:
        made.add_argument("--page", type=Path, help=f"Markdown page in which to replace the table of block {block}")
    return made


def launch(main: Callable[[], None]) -> None:
    """Run a script; what its user can mend is told in one line, with exit code 2."""
    try:
        main()
    except LDLError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
