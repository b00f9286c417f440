"""``--stage tune``: a setting searched by many trials that processes share, and what its test says."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock

from ldl.cells.coordinator import Cell, Workers
from ldl.checkpoint import replacing
from ldl.comparison.report import words
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.progress import stop
from ldl.reports.files import write_json
from ldl.running import stopping
from ldl.running.candidates import Parse
from ldl.running.cell_key import content_digest, depends_on
from ldl.running.compare import _progress as bars
from ldl.running.folder import RESULTS
from ldl.running.naming import choose_folder
from ldl.running.parser import LDLCLI
from ldl.running.quiet import quiet_trainers
from ldl.running.refusals import refusals
from ldl.running.results import print_table, summarize
from ldl.running.search_checks import check_run, check_space, direction
from ldl.running.trial import ALL, Part, Tuning, final_fit, held_out, try_setting
from ldl.running.tune_file import TuneFile
from ldl.start.wording import program
from ldl.task import Task
from ldl.tuning.report import draw_search, write_trials
from ldl.tuning.study import JOURNAL, Setting, SharedStudy, load_optuna

WAIT = 1.0
"""Seconds between two looks at trials that processes of other machines do."""


def tune(file: TuneFile, parse: Parse) -> None:
    """Try settings until there are as many trials as wanted, train and test the best, and write ``best.yaml``.

    The same command with the same run directory goes on where it was stopped; given at the same time on several
    machines that share the directory, all of them work at the same trials.

    Args:
        file: What the command line says.
        parse: Parses a command line of ``train.py``; processes call it too.

    Raises:
        LDLError: the run, the space or the metric cannot be, the directory has a run, or no trial was completed.
    """
    with quiet_trainers(), refusals():
        load_optuna()
        cli = parse(file.command({}))
        cli.config.run_dir = file.run_dir
        data, task = check_run(cli, file.plan)
        maximize = direction(task, data, file.plan.metric)
        file = check_space(file, parse, cli.config)
        parts: list[Part] = [*range(data.num_folds), ALL] if file.plan.nested else [data.fold]
        for part in parts:
            _held_out(data, file.plan.inner_folds, part)
        folder = choose_folder(cli.config, data, "tune")
        _check_folder(folder)
        tuning = Tuning(file, parse, folder.absolute(), _spec(cli, file, data), maximize)
        stopping.watch.again = f"the same command with --run_dir {folder} goes on"
        studies = {part: tuning.study(part) for part in parts}
        _search(tuning, studies, cli.config.trainer.enable_progress_bar is not False)
        # Of several machines one trains the best settings, and the others read what became of them.
        with FileLock(folder / f".{JOURNAL}.final"):
            _finish(tuning, studies, cli, data, task)


def _search(tuning: Tuning, studies: Mapping[Part, SharedStudy], shows: bool) -> None:
    """Start trials until none is missing, also those of processes that were lost."""
    with bars(shows) as progress:
        bar = progress.add_task("trials", total=sum(study.wanted for study in studies.values()))

        def tell(name: str = "", outcome: Any = None) -> None:
            progress.update(bar, completed=sum(study.wanted - study.missing for study in studies.values()))

        tell()
        while missing := {part: count for part, study in studies.items() if (count := study.missing)}:
            cells = [
                Cell(f"trial {number} of fold {part}", partial(try_setting, tuning, part))
                for part, count in missing.items()
                for number in range(count)
            ]
            if not any(_do(tuning.file, cells, tell)):
                stop.leave()
                time.sleep(WAIT)
                tell()


def _do(file: TuneFile, cells: list[Cell], each: Callable[[str, Any], None]) -> list[Any]:
    """The outcomes of cells, in this process where it is the only one."""
    outcomes: list[Any] = []

    def done(name: str, outcome: Any) -> None:
        outcomes.append(outcome)
        each(name, outcome)

    workers = Workers(file.jobs, file.scheduler)
    if workers.are_others:
        for name, error in workers.do(cells, done).items():
            raise LDLError(f"{name}: {error}")
    else:
        for cell in cells:
            stop.leave()
            done(cell.name, cell.work())
    return outcomes


def _finish(
    tuning: Tuning, studies: Mapping[Part, SharedStudy], cli: LDLCLI, data: LDLDataModule, task: Task
) -> None:
    folder, plan, metric = tuning.folder, tuning.file.plan, f"val_{tuning.file.plan.metric}"
    write_trials(folder / "trials.csv", studies, metric)
    draw_search(folder / "history.png", studies, metric)
    best: Setting = (last := list(studies.values())[-1]).setting(last.best)
    with replacing(folder / "best.yaml") as stream:
        winner = tuning.run(best)
        stream.write(winner.dump(winner.config).encode())
    cells = [Cell(f"fold {part}", partial(final_fit, tuning, part)) for part in studies if isinstance(part, int)]
    found = _do(tuning.file, cells, lambda name, outcome: None)
    entries = sorted((outcome.result["folds"][0] for outcome in found), key=lambda entry: int(entry["fold"]))
    seconds = sum(outcome.result["fit_seconds"] for outcome in found)
    content = summarize(task, data, entries, found[0].result["seed"], seconds)
    trials = {
        str(part): {state: study.count(state) for state in ("complete", "pruned", "failed", "lost")}
        for part, study in studies.items()
    }
    about = {"setting": best, **plan.depends_on(), "metric": metric, "nested": plan.nested, "trials": trials}
    write_json(folder / "results.json", {**content, "tuning": about})
    print_table(content, data.labels)
    print(f"best: {words(best)}, {metric} {last.best.value:.4f}")
    print(f"train it: {program()} -c {folder / 'best.yaml'}")
    print(f"more: {', '.join(str(folder / name) for name in ('results.json', 'trials.csv', 'history.png'))}")


def _held_out(data: LDLDataModule, inner_folds: int, part: Part) -> None:
    """Raise LDLError where rows of a part of the data cannot be held out."""
    if isinstance(part, int) and data.num_folds:
        data.select_fold(part)
    try:
        held_out(data, inner_folds, part)
    except LDLError as error:
        where = "all rows" if part == ALL else f"fold {part}"
        raise LDLError(f"tune: {error}, in {where}") from error


def _spec(cli: LDLCLI, file: TuneFile, data: LDLDataModule) -> str:
    known = [depends_on(cli.dump(cli.config)), file.plan.depends_on(), [str(each) for each in file.space]]
    text = json.dumps([*known, content_digest(data), version("ldl")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check_folder(folder: Path) -> None:
    """Raise LDLError where a run has left its own."""
    there = next((name for name in [*RESULTS, "checkpoints", "fold_0"] if (folder / name).exists()), None)
    if there and not (folder / JOURNAL).exists():
        raise LDLError(f"--run_dir {folder} has {there} of a run; give a search another folder")
