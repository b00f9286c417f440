"""Runs a command line that may be wrong in this process, and tells how it ended."""

from __future__ import annotations

import contextlib
import io
import json
import math
import shlex
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ldl.command import main

PATIENCE = 30
"""Seconds of processor time after which a run counts as one that hangs, or four times as many by the clock."""

SMALL = (
    "--wandb.mode disabled --trainer.enable_progress_bar false --trainer.enable_model_summary false "
    "--trainer.accelerator cpu --trainer.max_epochs 1 --run_dir {here}/run"
)
TABLE = "--data TabularLDL --data.path {here}/table.csv --model.backbone null --model.head Softmax"


@dataclass(frozen=True)
class Case:
    """A command line, the files that it needs, and how it must end.

    Attributes:
        args: Follows a small run on a sound table; ``{here}`` is a folder of its own, which has ``table.csv``.
        says: Parts of the one line, with ``|`` between them; nothing where the run is to be accepted.
        make: Writes files into that folder.
        base: What stands before ``args``.
    """

    args: str
    says: str = ""
    make: Callable[[Path], object] | None = None
    base: str = f"{TABLE} {SMALL}"


@dataclass(frozen=True)
class Outcome:
    """How a command line ended.

    Attributes:
        kind: ``refused`` in one line, ``accepted``, ``traceback``, ``hang``, ``left behind`` where it was refused but
            has written into the run directory, ``untold`` where it was refused in no line or several, or ``nonsense``
            where it was accepted with results that are not finite.
        line: What it said, or the end of its traceback.
    """

    kind: str
    line: str


class Hang(BaseException):
    """The run has taken longer than ``PATIENCE``."""


def outcome(case: Case, folder: Path) -> Outcome:
    """Run a case in a folder."""
    write_table(folder / "table.csv")
    if case.make:
        case.make(folder)
    args = [arg.replace("{here}", str(folder)) for arg in shlex.split(f"{case.base} {case.args}")]
    return run(args, folder)


def run(args: list[str], folder: Path) -> Outcome:
    """Run a command line, whose run directory, if it names none, is ``run``."""
    errors = io.StringIO()
    place = folder / "run"
    there = place.exists()
    try:
        with contextlib.chdir(folder), contextlib.redirect_stderr(errors), patience():
            main(args)
    except SystemExit as exit_:
        lines = [line for line in errors.getvalue().splitlines() if line.startswith("error: ")]
        if exit_.code != 2 or len(lines) != 1:
            return Outcome("untold", f"exit code {exit_.code}: {errors.getvalue()[-300:]}")
        return Outcome("left behind" if place.exists() and not there else "refused", lines[0])
    except Hang:
        return Outcome("hang", f"more than {PATIENCE} s")
    except BaseException:
        return Outcome("traceback", traceback.format_exc()[-1500:])
    results = place / "results.json"
    if results.is_file() and not _finite(json.loads(results.read_text())["mean"]):
        return Outcome("nonsense", results.read_text()[:300])
    return Outcome("accepted", errors.getvalue()[-300:])


@contextlib.contextmanager
def patience() -> Iterator[None]:
    """Raise Hang in the main thread where the block takes too long."""

    def stop(*_: Any) -> None:
        raise Hang

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, PATIENCE), (signal.SIGALRM, signal.ITIMER_REAL, 4 * PATIENCE))
    before = [signal.signal(number, stop) for number, _, _ in timers]
    for _, timer, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def write_table(path: Path, rows: int = 30, features: int = 4, labels: int = 3) -> Path:
    """A sound table of features and distributions."""
    rng = np.random.default_rng(0)
    header = [f"f{n}" for n in range(features)] + [f"label:{'abcdefghij'[n]}" for n in range(labels)]
    content = np.hstack([rng.normal(size=(rows, features)), rng.dirichlet(np.ones(labels), rows)])
    np.savetxt(path, content, delimiter=",", header=",".join(header), comments="", fmt="%.9f")
    return path


def _finite(means: dict[str, Any]) -> bool:
    # A measure of groups that the data do not have is null.
    return all(value is None or math.isfinite(value) for value in means.values())
