"""A run of ``train.py``: the command line is completed with a configuration and parsed, then the stage runs.

The configuration is that of the checkpoint's run, or else the default one.
"""

from __future__ import annotations

import os
import pkgutil
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ldl.checkpoint import CHECKPOINT_KEY, LAST, last_of, read_checkpoint
from ldl.collective import process_rank
from ldl.command.arguments import Argument, argument, tokenize, words_of
from ldl.command.beside import read_beside
from ldl.command.classes import class_paths
from ldl.command.command_line import Command
from ldl.command.configs import class_name, configs_folder, find_config, has_key, read_config, read_streams
from ldl.command.help import help_page
from ldl.errors import LDLError, SharedError
from ldl.jobs.executors import end_with_parent
from ldl.plugins import discover
from ldl.run import signals
from ldl.run.output import ignore_broken_pipes, silence
from ldl.run.processes import lost_others, who_ended
from ldl.run.record import with_new_data
from ldl.run.resume import restarts
from ldl.run.run_dir import RUN_DIR_VARIABLE

REPORT_SECONDS = 10
"""Seconds after which a process no longer expects the first process to report its mistake too."""

TRACEBACK_VARIABLE = "LDL_TRACEBACK"
"""Environment variable: if it is set, errors have a traceback; for authors of plugins."""


@ignore_broken_pipes()
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
            arguments = read_streams(arguments)
            if words is None:
                # For processes that Lightning starts with the same command line.
                sys.argv[1:] = words_of(arguments)
            run_command(Command(arguments))
    except LDLError as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exception(error)
        # All processes find the same mistake and the first one reports it. If one fails, launchers end all at once.
        if process_rank() and isinstance(error, SharedError):
            sys.exit(2 if restarts() else 0)
        if process_rank():
            time.sleep(REPORT_SECONDS)
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except RuntimeError as error:
        if not lost_others(error):
            raise
        line = who_ended(signals.shutdown.ranks)
        if process_rank():
            # The first process reports the loss, unless it was lost itself.
            time.sleep(REPORT_SECONDS)
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


DEFAULT_CONFIG = "default.yaml"
OLD_PROTOCOL = argument("data.protocol", "random_kfold")
"""The protocol of runs on tables from before tables had protocols; the default is another one now."""


def checkpoint_path(command: Command) -> str | None:
    """Return the path of the checkpoint that a command line names; None for none."""
    path, run_dir = (os.path.expanduser(command.value(name) or "") or None for name in ("ckpt_path", "run_dir"))
    if path == LAST:
        return str(last_of(run_dir)) if run_dir else None
    return path


def config_beside(command: Command) -> Path | None:
    """Return the configuration of the checkpoint's run; None if the command line names it, or a whole run, itself."""
    path = checkpoint_path(command)
    config = Path(path).parent.parent / "config.yaml" if path else None
    if config is None or not config.is_file():
        return None
    files = filter(os.path.exists, map(find_config, command.configs))
    if any(os.path.samefile(file, config) for file in files):
        return None
    model = command.content.get("model")
    is_whole = "data" in command.content and isinstance(model, dict) and "head" in model
    return None if is_whole else config


def complete(command: Command, beside: Path | None) -> Command:
    """Put a configuration below those of a command line, or the default one if it names none.

    A resumed run thus continues in its own directory, and a checkpoint without its run keeps its decoder. A prediction
    with no option of data but a path reads everything at that path.

    Args:
        command: The command line.
        beside: The configuration of the checkpoint's run, from :func:`config_beside`.
    """
    path, stage, arguments = checkpoint_path(command), command.value("stage") or "fit", list(command.arguments)
    data_path = None if command.value("data") else command.value("data.path")
    if stage == "predict" and path and data_path:
        arguments = with_new_data(arguments, read_checkpoint(path), data_path)
    if beside is not None:
        base = read_beside(beside)
        arguments = [*_of_older_run(base, command), *_run_dir(beside, stage, command), *arguments]
        return replace(command, arguments=arguments, base=base)
    if command.configs:
        return replace(command, arguments=arguments)
    if path and stage in ("test", "predict"):
        arguments = [argument("model.decoder", read_checkpoint(path)[CHECKPOINT_KEY]["decoder"]), *arguments]
    default = configs_folder() / DEFAULT_CONFIG
    return replace(command, arguments=arguments, base=read_config(default) if default.is_file() else None)


def _run_dir(beside: Path, stage: str, command: Command) -> list[Argument]:
    """Return the run directory of a resumed run; a file that the command line does not name decides no other."""
    if any(has_key(name, "run_dir") for name in command.configs):
        return []
    return [argument("run_dir", str(beside.parent) if stage == "fit" else "null")]


def _of_older_run(base: dict[str, Any], command: Command) -> Sequence[Argument]:
    data = base.get("data")
    options = data.get("init_args") if isinstance(data, dict) else None
    if not isinstance(options, dict) or class_name(data) != "TabularLDL":
        return []
    return [] if "protocol" in options or command.value("data") else [OLD_PROTOCOL]


def texts_of(command: Command) -> Iterator[str]:
    """Yield all texts of a command line and of the configurations that it names."""
    for each in command.arguments:
        yield each.value
    for name in command.configs:
        yield from _texts(read_config(name))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, dict | list):
        for value in content.values() if isinstance(content, dict) else content:
            yield from _texts(value)
    elif isinstance(content, str):
        yield content
