"""``--stage tune``: settings tried by many trials that processes share, and what a test says of the best."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

import yaml
from filelock import FileLock

from ldl.cells.coordinator import Cell, Workers
from ldl.charts.drawing import captioned
from ldl.checkpoint import replacing
from ldl.comparison.report import words
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.progress import stop
from ldl.reports.files import write_json
from ldl.running import stopping
from ldl.running.cell_key import content_digest, depends_on, file_digests, source_digests
from ldl.running.console import bars
from ldl.running.crossval import conclude
from ldl.running.crossval_stage import Parse
from ldl.running.folder import check_no_run
from ldl.running.folds import FoldOutcome, fold_folder, restore
from ldl.running.naming import choose_folder
from ldl.running.parser import LDLCLI
from ldl.running.quiet import quiet_trainers
from ldl.running.refusals import refusals
from ldl.running.results import print_table
from ldl.running.search_checks import check_parts, check_run, check_space, direction
from ldl.running.trial import ALL, Part, Tuning, fit_best, try_setting
from ldl.running.tune_file import TuneFile
from ldl.start.wording import program
from ldl.tuning.report import draw_search, write_trials
from ldl.tuning.study import JOURNALS, SharedStudy, load_optuna

WAIT = 1.0
"""Seconds between two looks at trials that processes of other machines do."""

Studies = Mapping[Part, SharedStudy]
Do = Callable[[list[Cell], Callable[[], None]], list[Any]]


def tune(file: TuneFile, parse: Parse) -> None:
    """Try settings until there are as many trials as wanted, train and test the best, and write ``best.yaml``.

    The same command with the same run directory goes on where it was stopped; given at the same time on several
    machines that share the directory, all of them work at the same trials.

    Args:
        file: What the command line says.
        parse: Parses a command line, in any process.

    Raises:
        LDLError: the run, the space or the metric cannot be, the directory has a run, or no trial was completed.
    """
    with quiet_trainers(), refusals():
        load_optuna()
        cli = parse(file.command({}))
        data, task = check_run(cli, file.plan)
        maximize = direction(task, data, file.plan.metric)
        file = check_space(file, parse, data)
        parts: list[Part] = [*range(data.num_folds), ALL] if file.plan.nested else [data.fold]
        check_parts(data, file.plan.inner_folds, parts)
        folder = choose_folder(cli.config, data, "tune")
        if not (folder / JOURNALS).exists():
            check_no_run(folder, "a search")
        tuning = Tuning(file, parse, folder.absolute(), _spec(cli, file, parse, data), maximize)
        stopping.watch.again = f"the same command with --run_dir {folder} goes on"
        studies = {part: tuning.study(part) for part in parts}
        do = partial(_do, Workers(cli.config.jobs, cli.config.scheduler))
        _search(tuning, studies, do, cli.config.trainer.enable_progress_bar is not False)
        # Of several machines one trains the best settings, and the others read what became of them.
        with FileLock(folder / JOURNALS / "final.lock"):
            _finish(tuning, studies, do, data)


def _search(tuning: Tuning, studies: Studies, do: Do, shows: bool) -> None:
    """Start trials until none is missing, also those of processes that were lost."""
    with bars(shows) as progress:
        bar = progress.add_task("trials", total=sum(study.wanted for study in studies.values()))

        def tell() -> None:
            progress.update(bar, completed=sum(study.wanted - study.missing for study in studies.values()))

        tell()
        while missing := {part: count for part, study in studies.items() if (count := study.missing)}:
            cells = [
                Cell(f"trial {number} of fold {part}", partial(try_setting, tuning, part))
                for part, count in missing.items()
                for number in range(count)
            ]
            if not any(do(cells, tell)):
                stop.leave()
                time.sleep(WAIT)
                tell()


def _do(workers: Workers, cells: list[Cell], each: Callable[[], None] = lambda: None) -> list[Any]:
    """The outcomes of cells, in this process where it is the only one."""
    outcomes: list[Any] = []

    def done(name: str, outcome: Any) -> None:
        outcomes.append(outcome)
        each()

    if workers.are_others:
        for name, reason in workers.do(cells, done).items():
            raise LDLError(f"{name}: {reason}")
    else:
        for cell in cells:
            stop.leave()
            done(cell.name, cell.work())
    return outcomes


def _finish(tuning: Tuning, studies: Studies, do: Do, data: LDLDataModule) -> None:
    folder, plan, metric = tuning.folder, tuning.file.plan, f"val_{tuning.file.plan.metric}"
    write_trials(folder / "trials.csv", studies, metric)
    with captioned(f"search on {data.title}, {data.protocol}  ·  {folder.name}"):
        draw_search(folder / "history.png", studies, metric)
    last = list(studies)[-1]
    best = tuning.best(last)
    with replacing(folder / "best.yaml") as stream:
        cli = tuning.run(best)
        stream.write(cli.dump(cli.config).encode())
    folds = [part for part in studies if isinstance(part, int)]
    found = do([Cell(f"fold {fold}", partial(fit_best, tuning, fold)) for fold in folds], lambda: None)
    content = _conclude(tuning, folds, sorted(found, key=lambda outcome: int(outcome.result["folds"][0]["fold"])))
    content["tuning"] = {
        "setting": best,
        **plan.depends_on(),
        "metric": metric,
        "nested": plan.nested,
        "trials": {str(part): study.counts for part, study in studies.items()},
    }
    write_json(folder / "results.json", content)
    print_table(content, data.labels)
    print(f"best: {words(best)}, {metric} {studies[last].best.value:.4f}")
    print(f"train it: {program()} -c {folder / 'best.yaml'}")
    print(f"more: {', '.join(str(folder / name) for name in ('results.json', 'trials.csv', 'history.png'))}")


def _conclude(tuning: Tuning, folds: list[int], outcomes: list[FoldOutcome]) -> dict[str, Any]:
    """The ``results.json`` of all folds, each with its setting and what that came to on the rows held out."""
    for fold, outcome in zip(folds, outcomes, strict=True):
        value = tuning.study(fold).best.value
        outcome.result["folds"][0] |= {"setting": tuning.best(fold), f"val_{tuning.file.plan.metric}": value}
    runs = tuning.runs(folds[-1])
    task = runs.make_task()
    restore(task, fold_folder(tuning.folder, folds[-1]))
    return conclude(outcomes, task, runs.data, runs.seed, tuning.folder)


def _spec(cli: LDLCLI, file: TuneFile, parse: Parse, data: LDLDataModule) -> str:
    known = [depends_on(cli.dump(cli.config)), file.plan.depends_on(), [str(each) for each in file.space]]
    tried = [parse(file.command({each.name: value})) for each in file.space for value in each.values]
    models = [yaml.safe_load(run.dump(run.config))["model"] for run in tried]
    if files := file_digests([models, [each.values for each in file.space]]) | source_digests(models):
        known.append(files)
    text = json.dumps([*known, content_digest(data), version("ldl")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
