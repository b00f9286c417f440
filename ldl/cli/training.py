"""A run of ``train.py``, with everything imported."""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path

import jsonargparse
import yaml
from jsonargparse._common import ImportDenied

import ldl.backbones  # noqa: F401
import ldl.data
import ldl.heads
import ldl.inference.table_file
import ldl.inference.whole_pictures  # noqa: F401  (their names become known to the parser)
from ldl.checkpoint import CHECKPOINT_KEY, read_checkpoint
from ldl.collective import process_rank
from ldl.data.files import read_text
from ldl.errors import LDLError, SharedError
from ldl.plugins import discover, left_out
from ldl.running import stopping
from ldl.running.arguments import last_value, options_of
from ldl.running.class_paths import class_paths
from ldl.running.compare import compare
from ldl.running.comparison_file import read_comparison
from ldl.running.crossval_stage import crossval
from ldl.running.describe import describe
from ldl.running.failures import lost_others, who_ended
from ldl.running.messages import one_line
from ldl.running.naming import RUN_DIR_VARIABLE
from ldl.running.new_data import with_new_data
from ldl.running.output import stays_open
from ldl.running.parser import LDLCLI
from ldl.running.quiet import silence
from ldl.running.refusals import refusals
from ldl.running.restart import LAST, last_of, restarts
from ldl.running.run import run
from ldl.running.tune import tune
from ldl.running.tune_file import read_tuning
from ldl.running.yaml_files import check_config
from ldl.start.configs import configs_folder
from ldl.start.memory import store
from ldl.start.schema import Schema

PATIENCE = 10
"""Seconds after which a process no longer believes that the first one found its mistake too."""

TRACEBACK_VARIABLE = "LDL_TRACEBACK"
"""Set to anything, it shows where a refusal comes from; for authors of plugins."""


@stays_open()
def main(args: list[str] | None = None, learns: bool = False) -> None:
    """Parse a command line, None for that of the process, and run it; :func:`ldl.cli.main` is the door to it.

    Args:
        args: The command line.
        learns: Whether to keep what can be said, for the next start.
    """
    inherited = RUN_DIR_VARIABLE in os.environ
    try:
        with stopping.ends_when_told():
            learn(keep=True) if learns else _prepare()
            args = sys.argv[1:] if args is None else args
            with class_paths(_found_beside(args)):
                if (comparison := read_comparison(args)) is not None:
                    return compare(comparison, parse_anew)
                if (tuning := read_tuning(args)) is not None:
                    return tune(tuning, parse_anew)
                cli = _parse(_with_config(args))
                with refusals():
                    if cli.config.stage == "crossval":
                        crossval(cli, parse_anew)
                    else:
                        run(cli)
    except LDLError as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exception(error)
        # Every process finds the same mistake; the first says so. Launchers end it as soon as another one fails.
        if process_rank() and isinstance(error, SharedError):
            sys.exit(2 if restarts() else 0)
        if process_rank():
            time.sleep(PATIENCE)
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except RuntimeError as error:
        if not lost_others(error):
            raise
        line = who_ended(stopping.watch.ranks)
        if process_rank():
            # The first process tells it, unless it was lost itself.
            time.sleep(PATIENCE)
        if line:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(1)
    finally:
        if sys.exc_info()[0]:
            stopping.watch.end_ranks()
        if not inherited:
            os.environ.pop(RUN_DIR_VARIABLE, None)


def learn(keep: bool) -> Schema:
    """What can be said on a command line, kept for the next start where the plugins are whole."""
    before = set(sys.modules)
    _prepare()
    files = {getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}
    schema = describe()
    if keep and not left_out:
        store(schema, sorted(filter(None, files)))
    return schema


def parse_anew(args: list[str]) -> LDLCLI:
    """Parse the command line of a run that another process has begun."""
    _prepare()
    with class_paths(None):
        return _parse(args)


def _prepare() -> None:
    silence()
    discover()


def _parse(args: list[str]) -> LDLCLI:
    options: list[str] = []
    # LightningCLI warns where both its argument and the process's command line are given.
    argv, sys.argv = sys.argv, sys.argv[:1]
    try:
        return LDLCLI(args, options)
    except (jsonargparse.ArgumentError, ImportDenied) as error:
        raise LDLError(one_line(str(error), options)) from None
    finally:
        sys.argv = argv


def _with_config(args: list[str]) -> list[str]:
    """Put a configuration in front where none is named: that of the checkpoint's run, else the default.

    A run that is resumed so goes on in its own directory; a checkpoint without its run keeps its decoder. A prediction
    for which nothing but a path of data is given reads all that lies there.
    """
    given, path = options_of(args), _checkpoint_of(args)
    stage = last_value(given, "--stage") or "fit"
    new = None if last_value(given, "--data") else last_value(given, "--data.path")
    if stage == "predict" and path and new:
        args = with_new_data(args, read_checkpoint(path), new)
    if _names_config(args):
        return args
    if found := _found_beside(args):
        # Where a run writes is not for a file to say that nobody named.
        place = str(found.parent) if stage == "fit" else "null"
        return ["-c", str(found), *_of_older_run(found, args), "--run_dir", place, *args]
    if path and stage in ("test", "predict"):
        args = ["--model.decoder", read_checkpoint(path)[CHECKPOINT_KEY]["decoder"], *args]
    default = configs_folder() / "default.yaml"
    return ["-c", str(default), *args] if default.is_file() else args


def _names_config(args: list[str]) -> bool:
    return any(option.is_config for option in options_of(args))


def _found_beside(args: list[str]) -> Path | None:
    """The configuration of the checkpoint's run, where none is named."""
    path = None if _names_config(args) else _checkpoint_of(args)
    config = Path(path).parent.parent / "config.yaml" if path else None
    return config if config and os.path.isfile(config) else None


def _checkpoint_of(args: list[str]) -> str | None:
    given = options_of(args)
    path, place = last_value(given, "--ckpt_path"), last_value(given, "--run_dir")
    if path == LAST:
        return str(last_of(place)) if place else None
    return path


def _of_older_run(found: Path, args: list[str]) -> list[str]:
    """The protocol of a run on a table from before tables had one: its folds, not those that keep persons apart."""
    check_config(found)
    data = yaml.safe_load(read_text(found)).get("data")
    options = data.get("init_args") if isinstance(data, dict) else None
    if not isinstance(options, dict) or str(data["class_path"]).rpartition(".")[2] != "TabularLDL":
        return []
    return (
        [] if "protocol" in options or last_value(options_of(args), "--data") else ["--data.protocol", "random_kfold"]
    )
