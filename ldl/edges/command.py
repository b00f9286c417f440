"""How the commands of this folder end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from ldl.errors import LDLError


def run(parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], None], args: list[str] | None) -> None:
    """Do the work of a command line; a mistake of the user ends in one line on standard error and exit code 2."""
    options = parser.parse_args(args)
    try:
        work(options)
    except LDLError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
