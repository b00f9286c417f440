"""The console command ``ldl``.

``ldl OPTIONS`` starts a run, as ``python train.py OPTIONS`` does. ``ldl SUBCOMMAND ...`` calls a registered function.
"""

from __future__ import annotations

import gc
import importlib.metadata
import sys
from collections.abc import Callable
from importlib import import_module

from ldl.errors import LDLError, did_you_mean
from ldl.plugins import COMMANDS, registered
from ldl.run.output import ignore_broken_pipes


def command(args: list[str] | None = None) -> None:
    """Run a subcommand, or a training run if the command line begins with an option.

    ``args`` None uses the command line of the process. A user's mistake ends in one line on standard error and exit
    code 2.
    """
    words = sys.argv[1:] if args is None else args
    if not words or words[0].startswith("-"):
        main(args)
        return
    name, *rest = words
    with ignore_broken_pipes():
        try:
            run = find_subcommand(name)
            # Imported late, because this module imports torch and Lightning.
            with import_module("ldl.command.messages").user_errors():
                run(rest)
        except LDLError as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            sys.exit(2)


def find_subcommand(name: str) -> Callable[[list[str]], None]:
    """Return the function of a subcommand. Raises LDLError if the name is unknown, or if its import fails."""
    subcommands = registered(COMMANDS)
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
    """Parse a command line of ``train.py`` and run it.

    ``args`` None uses the command line of the process. A user's mistake ends in one line on standard error and exit
    code 2. Ctrl-C, SIGTERM and SIGHUP end in one line and exit code 128 + signal.
    """
    words = sys.argv[1:] if args is None else args
    if "--version" in words:
        print(f"ldl {importlib.metadata.version('ldl')}")
        sys.exit(0)
    is_first = "ldl.run.main" not in sys.modules
    was_enabled = gc.isenabled()
    gc.disable()  # garbage collection takes a fifth of the time of the imports and frees nothing
    try:
        run = import_module("ldl.run.main")
    finally:
        if is_first:
            gc.freeze()  # what was imported stays, and every full collection would visit it again
        if was_enabled:
            gc.enable()
    run.main(args)
