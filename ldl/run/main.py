"""A run of ``train.py``: the command line is completed and parsed, then the stage runs."""

from __future__ import annotations

import os
import pkgutil
import sys
import time
import traceback

from ldl.collective import process_rank
from ldl.command.arguments import tokenize
from ldl.command.classes import class_paths
from ldl.command.command_line import Command
from ldl.command.configs import read_streams
from ldl.command.help import help_page
from ldl.errors import LDLError, SharedError
from ldl.jobs.executors import end_with_parent
from ldl.plugins import discover
from ldl.run import signals
from ldl.run.completion import complete, config_beside, texts_of
from ldl.run.output import silence, stays_open
from ldl.run.processes import lost_others, who_ended
from ldl.run.resume import restarts
from ldl.run.run_dir import RUN_DIR_VARIABLE

PATIENCE = 10
"""Seconds after which a process no longer expects the first process to report its mistake too."""

TRACEBACK_VARIABLE = "LDL_TRACEBACK"
"""Environment variable: if it is set, errors have a traceback; for authors of plugins."""


@stays_open()
def main(words: list[str] | None = None) -> None:
    """Parse a command line, None for that of the process, and run it; ``ldl.command.main`` imports this function."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        # An agent of torchrun that is killed alone would leave this process behind.
        end_with_parent(os.getppid())
    inherited = RUN_DIR_VARIABLE in os.environ
    try:
        with signals.graceful_shutdown():
            silence()
            discover()
            arguments = tokenize(sys.argv[1:] if words is None else words)
            if (page := help_page(arguments)) is not None:
                print(page)
                sys.exit(0)
            command = Command(read_streams(arguments))
            if words is None:
                sys.argv[1:] = command.words  # for processes that Lightning starts with the same command line
            run_command(command)
    except LDLError as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exception(error)
        # All processes find the same mistake and the first one reports it. If one fails, launchers end all at once.
        if process_rank() and isinstance(error, SharedError):
            sys.exit(2 if restarts() else 0)
        if process_rank():
            time.sleep(PATIENCE)
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except RuntimeError as error:
        if not lost_others(error):
            raise
        line = who_ended(signals.shutdown.ranks)
        if process_rank():
            # The first process reports the loss, unless it was lost itself.
            time.sleep(PATIENCE)
        if line:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(1)
    finally:
        if sys.exc_info()[0]:
            signals.shutdown.end_ranks()
        if not inherited:
            os.environ.pop(RUN_DIR_VARIABLE, None)


def run_command(command: Command) -> None:
    """Complete a command line and run its stage."""
    beside = config_beside(command)
    with class_paths(beside, texts_of(command) if beside else ()):
        if not command.stage_entry.key:
            command = complete(command, beside)
        run_stage = pkgutil.resolve_name(command.stage_entry.function)
        run_stage(command)
