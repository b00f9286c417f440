"""The console command ``ldl``: ``ldl OPTIONS`` is ``python train.py OPTIONS``, ``ldl SUBCOMMAND ...`` is no run."""

from __future__ import annotations

import gc
import importlib.metadata
import sys
from collections.abc import Callable
from importlib import import_module

from ldl.errors import LDLError, did_you_mean
from ldl.plugins import registered
from ldl.run.output import ignore_broken_pipes

GROUP = "ldl.commands"
"""Group of entry points by which ldl and other packages register subcommands: a function of the words behind the name.

The first line of its docstring is its line in the help."""


def command(args: list[str] | None = None) -> None:
    """Run a command line, None for that of the process. A user's mistake ends in one line and exit code 2."""
    words = sys.argv[1:] if args is None else args
    if not words or words[0].startswith("-"):
        main(args)
        return
    name, *rest = words
    with ignore_broken_pipes():
        try:
            run = find_subcommand(name)
            with import_module("ldl.command.messages").user_errors():
                run(rest)
        except LDLError as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            sys.exit(2)


def find_subcommand(name: str) -> Callable[[list[str]], None]:
    """Import a subcommand. Raises LDLError for an unknown one, and for one of another package that fails to import."""
    subcommands = registered(GROUP)
    if name not in subcommands:
        raise LDLError(
            f"no subcommand {name!r}; give {', '.join(subcommands)}, or without a subcommand the options of "
            f"train.py, which begin with -{did_you_mean(name, subcommands)}"
        )
    try:
        return subcommands[name].load()
    except (ImportError, AttributeError) as error:
        raise LDLError(f"subcommand {name!r} ({subcommands[name].value}) cannot be imported: {error}") from error


def main(args: list[str] | None = None) -> None:
    """Parse a command line of ``train.py``, None for that of the process, and run it.

    A user's mistake ends in one line on standard error and exit code 2; Ctrl-C, SIGTERM and SIGHUP in one line and
    128 + signal.
    """
    words = sys.argv[1:] if args is None else args
    if "--version" in words:
        print(f"ldl {importlib.metadata.version('ldl')}")
        sys.exit(0)
    collects = gc.isenabled()
    gc.disable()  # a collection during imports takes a fifth of their time and finds nothing
    try:
        run = import_module("ldl.run.main")
    finally:
        if collects:
            gc.enable()
    run.main(args)
