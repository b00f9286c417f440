"""A run of ``train.py``: the command line is completed and parsed, then the stage runs."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ldl.checkpoint import CHECKPOINT_KEY, read_checkpoint
from ldl.collective import process_rank
from ldl.command.arguments import Given, last_value, tokenize
from ldl.command.beside import checkpoint_path, found_beside, read_beside
from ldl.command.classes import class_paths
from ldl.command.configs import configs_folder, has_key, read_config, read_streams
from ldl.command.help import help_page
from ldl.command.messages import refusals
from ldl.command.parser import LDLCLI
from ldl.errors import LDLError, SharedError
from ldl.jobs.crossval import run_crossval
from ldl.jobs.executors import end_with_parent
from ldl.plugins import discover
from ldl.run import signals
from ldl.run.output import silence, stays_open
from ldl.run.processes import lost_others, who_ended
from ldl.run.record import with_new_data
from ldl.run.resume import restarts
from ldl.run.run import run
from ldl.run.run_dir import RUN_DIR_VARIABLE
from ldl.search.candidates import read_comparison
from ldl.search.compare import compare
from ldl.search.space import read_tuning
from ldl.search.tune import tune
from ldl.validation.yaml_text import dump

PATIENCE = 10
"""Seconds after which a process no longer expects the first process to report its mistake too."""

TRACEBACK_VARIABLE = "LDL_TRACEBACK"
"""Environment variable: if it is set, errors have a traceback; for authors of plugins."""


@stays_open()
def main(args: list[str] | None = None) -> None:
    """Parse a command line, None for that of the process, and run it; ``ldl.command.main`` imports this function."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        # An agent of torchrun that is killed alone would leave this process behind.
        end_with_parent(os.getppid())
    inherited = RUN_DIR_VARIABLE in os.environ
    is_own = args is None
    args = sys.argv[1:] if args is None else args
    try:
        with signals.graceful_shutdown():
            _prepare()
            if (page := help_page(args)) is not None:
                print(page)
                sys.exit(0)
            args = read_streams(args)
            if is_own:
                sys.argv[1:] = args  # for processes that Lightning starts with the same command line
            _run(args)
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


def _run(args: list[str]) -> None:
    given = tokenize(args)
    beside = found_beside(given)
    with class_paths(beside, _named(given) if beside else ()):
        if (comparison := read_comparison(args)) is not None:
            compare(comparison, parse_anew)
        elif (tuning := read_tuning(args)) is not None:
            tune(tuning, parse_anew)
        else:
            cli = LDLCLI(_with_config(args))
            with refusals():
                if cli.config.stage == "crossval":
                    run_crossval(cli, parse_anew)
                else:
                    run(cli)


def parse_anew(args: list[str]) -> LDLCLI:
    """Parse the command line of a run that another process has begun."""
    _prepare()
    with class_paths(None):
        return LDLCLI(args)


def _prepare() -> None:
    silence()
    discover()


def _with_config(args: list[str]) -> list[str]:
    """Put a configuration in front if the command line names none: that of the checkpoint's run, else the default.

    A resumed run thus continues in its own directory, and a checkpoint without its run keeps its decoder. A prediction
    with no option of data but a path reads everything at that path.
    """
    given = tokenize(args)
    path, stage = checkpoint_path(given), last_value(given, "--stage") or "fit"
    new = None if last_value(given, "--data") else last_value(given, "--data.path")
    if stage == "predict" and path and new:
        args = with_new_data(args, read_checkpoint(path), new)
    named = [option.value for option in given if option.is_config]
    if found := found_beside(given):
        # A file that the command line does not name does not decide where a run writes.
        place = str(found.parent) if stage == "fit" else "null"
        place_words = [] if any(has_key(each, "run_dir") for each in named) else ["--run_dir", place]
        return ["-c", dump(read_beside(found)), *_protocol_of_older_run(found, given), *place_words, *args]
    if named:
        return args
    if path and stage in ("test", "predict"):
        args = ["--model.decoder", read_checkpoint(path)[CHECKPOINT_KEY]["decoder"], *args]
    default = configs_folder() / "default.yaml"
    return ["-c", str(default), *args] if default.is_file() else args


def _named(given: list[Given]) -> Iterator[str]:
    """Yield all texts of a command line and of the configurations that it names."""
    for option in given:
        yield option.value
        if option.is_config and option.value:
            yield from _texts(read_config(option.value))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            yield from _texts(part)
    elif isinstance(content, str):
        yield content


def _protocol_of_older_run(found: Path, given: list[Given]) -> list[str]:
    """Return the protocol of a run on a table from before tables had protocols; the default is another one now."""
    data = read_config(found).get("data")
    data = data if isinstance(data, dict) else {}
    options = data.get("init_args")
    if not isinstance(options, dict) or str(data.get("class_path")).rpartition(".")[2] != "TabularLDL":
        return []
    return [] if "protocol" in options or last_value(given, "--data") else ["--data.protocol", "random_kfold"]
