"""``--stage compare``: candidates on the same folds of one's own rows, and the configuration to train."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ldl.cells.coordinator import Workers
from ldl.cells.store import Row, Store
from ldl.checkpoint import replacing
from ldl.comparison.choice import Choice, measure
from ldl.comparison.outcome import Outcome
from ldl.comparison.report import HEADER, audit, table, words, write_report
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.running import stopping
from ldl.running.candidates import Parse, RunCandidate, make_candidates, mean_split_ratio, specs_of, worst_leak
from ldl.running.comparison_file import ComparisonFile
from ldl.running.console import bars
from ldl.running.crossval_stage import OTHER_WORKER
from ldl.running.folder import check_no_run
from ldl.running.lock import alone_in
from ldl.running.naming import choose_folder
from ldl.running.quiet import quiet_trainers
from ldl.running.refusals import refusals
from ldl.start.wording import program

ALL = "all"
"""In place of a fold's number: the choice of the setting on all rows."""


def compare(file: ComparisonFile, parse: Parse) -> None:
    """Measure what is missing of every candidate on every fold, report it, and write ``recommended.yaml``.

    Every cell is written as soon as it is measured: the same command with the same run directory goes on where it was
    stopped, and tries again what failed. The test part of a fold is touched once a candidate.

    Args:
        file: The comparison.
        parse: Parses a command line of ``train.py``.

    Raises:
        LDLError: a candidate cannot be made, they are not tested on the same rows, the run directory is of another
            comparison or a run, or all of them failed.
    """
    with quiet_trainers(), refusals():
        candidates = make_candidates(file, parse)
        data = candidates[0].open(candidates[0].settings[0], 0)
        _check_choice(file.choice, candidates, data)
        config = parse([*file.command(next(iter(file.candidates.values())), {}), *_run_dir(file)]).config
        folder = choose_folder(config, data, "compare")
        with alone_in(folder):
            check_no_run(folder, "a comparison")
            store = Store(folder / "cells")
            stopping.watch.again = f"the same command with --run_dir {folder} goes on"
            workers = Workers(config.jobs, config.scheduler)
            shows = config.trainer.enable_progress_bar is not False
            _measure_all(file, parse, candidates, data, store, folder, workers, shows)


def _measure_all(
    file: ComparisonFile,
    parse: Parse,
    candidates: list[RunCandidate],
    data: LDLDataModule,
    store: Store,
    folder: Path,
    workers: Workers,
    shows: bool,
) -> None:
    choice = file.choice
    of = f"{type(data).__name__} {getattr(data, 'path', data.root)}"
    if any(row["of"] != of for row in store.rows):
        raise LDLError(f"--run_dir {folder} has the comparison of {store.rows[0]['of']}, not {of}; give another folder")
    specs = specs_of(candidates, choice)
    folds = range(data.num_folds)

    def key(candidate: RunCandidate, fold: int | str) -> Row:
        return {"of": of, "candidate": candidate.name, "fold": fold, "spec": specs[candidate.name]}

    if workers.are_others:
        asked = _Asked(str(folder.absolute()), tuple(specs.items()), file, parse)
        wanted = [
            (key(candidate, fold), partial(_measure_there, asked, candidate.name, fold))
            for fold in folds
            for candidate in candidates
        ]
        with bars(shows) as progress:
            done = sum(store.find(cell) is not None for cell, _ in wanted)
            bar = progress.add_task("cells", total=len(wanted), completed=done)
            store.fill(wanted, workers, lambda row: progress.advance(bar))
    cells: dict[str, list[Row]] = {candidate.name: [] for candidate in candidates}
    fits = {candidate.name: choice.fits(candidate) + 1 for candidate in candidates}
    facts = {
        "data": of, "protocol": data.protocol, "leaky": data.leaky, "leak": worst_leak(data), "folds": data.num_folds,
        "choice": str(choice), "version": version("ldl"),
    }  # fmt: skip
    with bars(shows) as progress:
        bar = progress.add_task("fits", total=sum(fits.values()) * len(folds))
        done = 0
        for fold in folds:
            for candidate in candidates:
                progress.update(bar, description=f"fold {fold}, {candidate.name}", completed=done)
                fitted = partial(progress.advance, bar)
                measured = partial(measure, candidate, fold, choice, fitted)
                cells[candidate.name].append(store.cell(key(candidate, fold), measured))
                done += fits[candidate.name]
        progress.update(bar, completed=done)
        outcome = Outcome(cells, mean_split_ratio(data))
        if not outcome.kl:
            name, reason = next(iter(outcome.failed.items()))
            raise LDLError(f"every candidate failed; {name} in {reason}")
        taken = next(candidate for candidate in candidates if candidate.name == outcome.recommended)
        bar = progress.add_task(f"setting of {taken.name}", total=choice.fits(taken))
        chosen = store.cell(
            key(taken, ALL), lambda: {"setting": choice.best(taken, None, lambda: progress.advance(bar)).setting}
        )
    write_report(folder, outcome, {**facts, "setting": chosen["setting"]})
    with replacing(folder / "recommended.yaml") as stream:
        stream.write(taken.text(chosen["setting"]).encode())
    _show(folder, outcome, chosen["setting"], facts)


@dataclass(frozen=True)
class _Asked:
    """How another process comes to a comparison; run directory and what the cells depend on say which one it is."""

    folder: str
    specs: tuple[tuple[str, str], ...]
    file: ComparisonFile = field(compare=False)
    parse: Parse = field(compare=False)


def _measure_there(asked: _Asked, name: str, fold: int) -> Row:
    """A cell, in another process."""
    return measure(_open(asked)[name], fold, asked.file.choice)


@lru_cache(maxsize=1)
def _open(asked: _Asked) -> dict[str, RunCandidate]:
    with refusals():
        candidates = make_candidates(asked.file, asked.parse)
        if specs_of(candidates, asked.file.choice) != dict(asked.specs):
            raise LDLError(OTHER_WORKER)
        return {candidate.name: candidate for candidate in candidates}


def _show(folder: Path, outcome: Outcome, setting: dict[str, Any], facts: dict[str, Any]) -> None:
    shown = Table(title=f"{facts['data']}, {facts['protocol']}, {facts['folds']} folds", caption=audit(facts["leak"]))
    for number, name in enumerate(HEADER):
        shown.add_column(name, justify="right" if number else "left")
    for row in table(outcome):
        shown.add_row(*row)
    Console().print(shown)
    for name, reason in outcome.failed.items():
        print(f"{name} failed in {reason}")
    print(f"recommended: {outcome.recommended}{f' with {words(setting)}' if setting else ''}")
    print(f"because {outcome.reason}")
    print(f"train it: {program()} -c {folder / 'recommended.yaml'}")
    print(f"more: {', '.join(str(folder / name) for name in ('table.md', 'ranks.png', 'comparison.json'))}")


def _check_choice(choice: Choice, candidates: list[RunCandidate], data: LDLDataModule) -> None:
    """Raise LDLError where there is something to choose, and a training part cannot be cut for it."""
    if any(len(candidate.settings) > 1 for candidate in candidates):
        for fold in range(data.num_folds):
            data.select_fold(fold)
            try:
                choice.cuts(data)
            except LDLError as error:
                raise LDLError(
                    f"choose: {error}, in the training part of fold {fold}; change inner_folds or val_fraction there"
                ) from error
        data.select_fold(0)


def _run_dir(file: ComparisonFile) -> list[str]:
    return [] if file.run_dir is None else ["--run_dir", file.run_dir]
