"""Searches by two processes that share a journal, of which one is killed: all trials are done, and a test is nested.

    python benchmarks/robustness/tune.py [--trials 40 --folds 3 --page docs/results/kills.md]

AA-kNN on SJAFFE, whose folds keep persons apart: as the run is configured, then searched in every fold by two
processes of one command, and by two commands that were given the same run directory. SIGKILL comes in the middle of a
trial, once a third of the first study is done.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import data_file
from benchmarks.common.runs import run_config
from benchmarks.common.tables import show, write_block
from ldl.comparison.figures import spread
from ldl.errors import LDLError
from ldl.reports.files import markdown
from ldl.tuning.study import JOURNALS, MARKS

ROOT = Path(__file__).resolve().parents[2]
QUIET = "--wandb.mode disabled --trainer.accelerator cpu --trainer.enable_progress_bar false"
SPACE = {
    "model.head.neighbours": {"min": 2, "max": 100, "log": True},
    "data.scaling": {"values": ["none", "standard", "quantile_normal"]},
}
TICK = 0.02
HEADER = [
    "search",
    "trials a study",
    "done",
    "lost with a process",
    "seconds",
    "neighbours, by fold",
    "KL of the tests, ± over folds",
]


class Search(NamedTuple):
    """How two processes come to a search: ``commands`` of so many ``jobs``."""

    name: str
    commands: int
    jobs: int


SEARCHES = [Search("--jobs 2, a worker killed", 1, 2), Search("two commands, one killed", 2, 1)]


def begin(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start ``train.py``."""
    with log.open("ab") as stream:
        return subprocess.Popen([sys.executable, "train.py", *arguments], cwd=ROOT, stdout=stream, stderr=stream)


def run(search: Search, arguments: list[str], folder: Path, trials: int) -> list[str]:
    """Search with a kill, check what is left, and return the row of the table. Raises LDLError for what is wrong."""
    log, start = folder.with_suffix(".log"), time.monotonic()
    arguments = [*arguments, "--jobs", str(search.jobs), "--run_dir", str(folder)]
    commands = [begin(arguments, log) for _ in range(search.commands)]
    own = {command.pid for command in commands}
    victim = strike(folder, trials // 3, {commands[-1].pid} if search.jobs == 1 else None)
    codes = [command.wait() for command in commands]
    wrong = [code for command, code in zip(commands, codes) if code and command.pid != victim]
    if wrong or (victim in own) != (search.jobs == 1):
        raise LDLError(f"{search.name}: exit codes {codes}; {log.read_text(encoding='utf-8')[-2000:]}")
    return row_of(search.name, folder, trials, time.monotonic() - start)


def strike(folder: Path, done: int, allowed: set[int] | None) -> int:
    """Kill a process in the middle of a trial, of those that are allowed; returns its number."""
    while True:
        time.sleep(TICK)
        journal = folder / JOURNALS / "0.journal"
        told = journal.read_text(encoding="utf-8").count('"op_code":6') if journal.is_file() else 0
        for mark in sorted((folder / MARKS).glob("*-*-*")) if told > done else []:
            process = int(mark.name.split("-")[-2])
            if allowed is None or process in allowed:
                os.kill(process, signal.SIGKILL)
                return process


def row_of(name: str, folder: Path, trials: int, seconds: float) -> list[str]:
    """What a search has left, in words. Raises LDLError where it is not complete, or its test not nested."""
    results: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    with (folder / "trials.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    done = Counter(row["fold"] for row in rows if row["state"] in ("complete", "pruned", "failed"))
    lost = sum(row["state"] == "lost" for row in rows)
    folds = results["folds"]
    for fold in folds:
        own = [row for row in rows if row["fold"] == str(fold["fold"]) and row["state"] == "complete"]
        best = min(own, key=lambda row: float(row["val_kl"]))
        if {key: str(value) for key, value in fold["setting"].items()} != {key: best[key] for key in fold["setting"]}:
            raise LDLError(f"{name}: fold {fold['fold']} has not tested the best of its own trials")
    if set(done.values()) != {trials} or len(done) != len(folds) + 1 or not lost:
        raise LDLError(f"{name}: {dict(done)} trials are done, {lost} lost, and {trials} a study are wanted")
    chosen = ", ".join(str(fold["setting"]["model.head.neighbours"]) for fold in folds)
    figure = spread([fold["metrics"]["kl"] for fold in folds], 4)
    return [name, str(trials), str(sum(done.values())), str(lost), f"{seconds:.0f}", chosen, figure]


def configured(arguments: list[str], folder: Path) -> list[str]:
    """The row of the run as it is configured, which nothing was searched for."""
    if begin([*arguments, "--stage", "crossval", "--run_dir", str(folder)], folder.with_suffix(".log")).wait():
        raise LDLError(folder.with_suffix(".log").read_text(encoding="utf-8")[-2000:])
    folds = json.loads((folder / "results.json").read_text(encoding="utf-8"))["folds"]
    return ["as configured", "", "", "", "", "", spread([fold["metrics"]["kl"] for fold in folds], 4)]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, block="kills_tune")
    parser.add_argument("--trials", type=int, default=40, help="of every study (default: %(default)s)")
    parser.add_argument("--folds", type=int, default=3, help="(default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    given = parse()
    table = ["--data.path", str(data_file("ldl/SJAFFE.mat").absolute()), "--data.folds", str(given.folds)]
    base = ["-c", str(run_config("tabular", "aaknn")), *QUIET.split(), *table]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        file = folder / "tune.yaml"
        tune = {"trials": given.trials, "inner_folds": 3, "nested": True, "space": SPACE}
        file.write_text(yaml.safe_dump({"tune": tune}), encoding="utf-8")
        rows = [configured(base, folder / "configured")]
        for number, search in enumerate(SEARCHES):
            arguments = [*base, "-c", str(file), "--stage", "tune"]
            rows.append(run(search, arguments, folder / str(number), given.trials))
    show("one of two processes killed", HEADER, rows)
    if given.page:
        write_block(given.page, "kills_tune", markdown(HEADER, rows))


if __name__ == "__main__":
    launch(main)
