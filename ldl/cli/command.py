"""The console command ``ldl``: ``ldl OPTIONS`` is ``python train.py OPTIONS``, ``ldl VERB ...`` something else."""

from __future__ import annotations

import argparse
import ast
import atexit
import gc
import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from ldl.errors import LDLError, did_you_mean
from ldl.running.output import stays_open
from ldl.start.check import check, options_of
from ldl.start.help import asks_help, help_page
from ldl.start.memory import recall
from ldl.start.parent import end_with_agent
from ldl.start.schema import Schema
from ldl.start.wording import version

VERBS = {
    "heads": "ldl.cli.heads",
    "data": "ldl.cli.data",
    "new": "ldl.cli.new",
    "export": "ldl.cli.export",
    "demo": "ldl.cli.demo",
    "audit": "ldl.cli.audit",
    "runs": "ldl.cli.runs",
    "faces": "ldl.cli.faces",
    "edges-eval": "ldl.cli.edges_eval",
}
"""Of each verb the module whose ``run(args)`` does it, which is imported only then. Raises LDLError."""

RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
"""Variables that launchers number processes by."""


def command(args: list[str] | None = None) -> None:
    """Run a command line, None for that of the process. A mistake of the user ends in one line and exit code 2."""
    given = sys.argv[1:] if args is None else args
    if not given or given[0].startswith("-"):
        main(args)
        return
    verb, *rest = given

    def do() -> None:
        if verb not in VERBS:
            raise LDLError(
                f"no verb {verb!r}; give {', '.join(VERBS)}, or without a verb the options of train.py, which "
                f"begin with -{did_you_mean(verb, VERBS)}"
            )
        _import(VERBS[verb]).run(rest)

    _in_one_line(do)


def known_schema() -> Schema:
    """What can be said on a command line: as it was learned before, or learned now."""
    cold = is_cold()
    return (recall() if cold else None) or _import("ldl.cli.training").learn(keep=cold)


def is_cold() -> bool:
    """Whether nothing slow is imported, so that nobody has made classes of their own in this process.

    Of several processes only the first answers.
    """
    return "torch" not in sys.modules and all(os.environ.get(name, "0") == "0" for name in RANKS)


def main(args: list[str] | None = None) -> None:
    """Parse a command line of ``train.py``, None for that of the process, and run it.

    Help, and names that do not exist, are answered before anything slow is imported, where a start before has learned
    what there is. A mistake of the user ends in one line on standard error and exit code 2; Ctrl-C, SIGTERM and SIGHUP
    in one line and 128 + signal.
    """
    end_with_agent()
    given = sys.argv[1:] if args is None else args
    learns = False

    def answer() -> None:
        nonlocal learns
        if "--version" in given:
            print(f"ldl {version()}")
            sys.exit(0)
        if asks_help(given):
            if (page := help_page(given, known_schema(), _first_lines())) is not None:
                print(page)
                sys.exit(0)
        elif schema := recall() if is_cold() else None:
            check(given, schema)
        else:
            learns = is_cold()

    _in_one_line(answer)
    if is_cold() and os.environ.get("WANDB_MODE") != "disabled" and _mode(given) != "disabled":
        # Its models look through all modules that are imported when they are made: before torch there are few.
        _import("wandb.sdk.launch")
    _import("ldl.cli.training").main(args, learns)


def _import(module: str) -> Any:
    """Import a module without looking for garbage meanwhile, which takes a fifth of the time and finds none."""
    if module in sys.modules:
        return sys.modules[module]
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if collects:
            gc.freeze()  # what is imported stays; no later search needs to go through it
            # But for the last one: triton tells at the end of what was never freed, line after line.
            atexit.register(gc.unfreeze)
            gc.enable()


def _mode(args: list[str]) -> str:
    """What follows ``--wandb.mode``."""
    return next((value for name, value in options_of(args) if name == "--wandb.mode"), "")


def _in_one_line(do: Callable[[], None]) -> None:
    """Do something, and end the process in one line where that is refused."""
    with stays_open():
        try:
            try:
                do()
            except Exception as error:
                if isinstance(error, LDLError) or "torch" not in sys.modules:
                    raise
                if (line := import_module("ldl.running.refusals").explain(error)) is None:
                    raise
                raise LDLError(line) from error
        except LDLError as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            sys.exit(2)


def _first_lines() -> dict[str, str]:
    """The first line of the docstring of each verb's module, which is not imported."""
    found = {}
    for verb, module in VERBS.items():
        spec = find_spec(module)
        source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
        found[verb] = (ast.get_docstring(ast.parse(source)) or "").split("\n")[0].rstrip(".")
    return found


class VerbParser(argparse.ArgumentParser):
    """A parser that raises LDLError, and takes no options by their beginnings."""

    def __init__(self, verb: str, doc: str | None) -> None:
        super().__init__(prog=f"ldl {verb}", description=doc, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise LDLError(f"{message}; see {self.prog} --help")
