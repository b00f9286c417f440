"""The console command ``ldl``: ``ldl OPTIONS`` is ``python train.py OPTIONS``, ``ldl VERB ...`` something else."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import NoReturn

from ldl.cli.training import main
from ldl.errors import LDLError, did_you_mean
from ldl.running.output import stays_open
from ldl.running.refusals import refusals

VERBS = {"audit": "ldl.cli.audit", "export": "ldl.cli.export"}
"""Of each verb the module whose ``run(args)`` does it, which is imported only then. Raises LDLError."""


def command(args: list[str] | None = None) -> None:
    """Run a command line, None for that of the process. A mistake of the user ends in one line and exit code 2."""
    given = sys.argv[1:] if args is None else args
    if not given or given[0].startswith("-"):
        main(args)
        return
    verb, *rest = given
    with stays_open():
        try:
            if verb not in VERBS:
                raise LDLError(
                    f"no verb {verb!r}; give {', '.join(VERBS)}, or without a verb the options of train.py, which "
                    f"begin with -{did_you_mean(verb, VERBS)}"
                )
            with refusals():
                import_module(VERBS[verb]).run(rest)
        except LDLError as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            sys.exit(2)


class VerbParser(argparse.ArgumentParser):
    """A parser that raises LDLError, and takes no options by their beginnings."""

    def __init__(self, verb: str, doc: str | None) -> None:
        super().__init__(prog=f"ldl {verb}", description=doc, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise LDLError(f"{message}; see {self.prog} --help")
