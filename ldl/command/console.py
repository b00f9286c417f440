"""The console command ``ldl``: ``ldl OPTIONS`` is ``python train.py OPTIONS``, ``ldl SUBCOMMAND ...`` is no run."""

from __future__ import annotations

import gc
import importlib.metadata
import pkgutil
import sys
from importlib import import_module

from ldl.errors import LDLError, did_you_mean
from ldl.run.output import stays_open

SUBCOMMANDS = {
    "heads": ("ldl.command.help:heads", "List the heads with how each learns and what it takes, or all about one"),
    "data": ("ldl.command.help:data", "List the data sets with files, source and protocols, or all about one"),
    "new": (
        "ldl.command.scaffold:new",
        "Write a working head or data module, its test and configuration",
    ),
    "export": ("ldl.command.subcommands:export", "Export a checkpoint to one file that runs without ldl"),
    "demo": ("ldl.command.subcommands:demo", "Show the predictions of a trained model on a local web page"),
    "audit": (
        "ldl.command.audit:audit",
        "Report the content of a table, whether its rows look grouped, and its group leakage",
    ),
    "runs": ("ldl.command.subcommands:runs", "List the runs in a folder with their results, or compare two"),
    "faces": (
        "ldl.faces.command:faces",
        "Report the content of a set of faces and its group leakage",
    ),
    "edges-eval": ("ldl.edges.command:edges_eval", "Evaluate a folder of edge maps by the benchmark of BSDS500"),
}
"""By name the function of a subcommand, which is imported at its call, and its line in the help."""


def command(args: list[str] | None = None) -> None:
    """Run a command line, None for that of the process. A user's mistake ends in one line and exit code 2."""
    given = sys.argv[1:] if args is None else args
    if not given or given[0].startswith("-"):
        main(args)
        return
    name, *rest = given
    with stays_open():
        try:
            if name not in SUBCOMMANDS:
                raise LDLError(
                    f"no subcommand {name!r}; give {', '.join(SUBCOMMANDS)}, or without a subcommand the options of "
                    f"train.py, which begin with -{did_you_mean(name, SUBCOMMANDS)}"
                )
            run = pkgutil.resolve_name(SUBCOMMANDS[name][0])
            with import_module("ldl.command.messages").refusals():
                run(rest)
        except LDLError as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            sys.exit(2)


def main(args: list[str] | None = None) -> None:
    """Parse a command line of ``train.py``, None for that of the process, and run it.

    A user's mistake ends in one line on standard error and exit code 2; Ctrl-C, SIGTERM and SIGHUP in one line and
    128 + signal.
    """
    given = sys.argv[1:] if args is None else args
    if "--version" in given:
        print(f"ldl {importlib.metadata.version('ldl')}")
        sys.exit(0)
    collects = gc.isenabled()
    gc.disable()  # a collection during imports takes a fifth of their time and finds nothing
    try:
        training = import_module("ldl.command.training")
    finally:
        if collects:
            gc.enable()
    training.main(args)
