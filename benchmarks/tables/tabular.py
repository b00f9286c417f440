"""Heads and competing packages on tables of label distributions, on the same folds.

    python benchmarks/tables/tabular.py [--sets SJAFFE M2B] [--methods LDLF "extra trees"] [--out runs/tabular]
    python benchmarks/tables/tabular.py --protocol persons
    python benchmarks/tables/tabular.py --quick
    python benchmarks/tables/tabular.py --results benchmarks/tables/jobs/tabular.csv --page docs/results/tables.md

Protocols: ``persons`` leaves a tenth of the subjects out, if they are known; ``shuffled`` is ``KFold(10, shuffle=True,
random_state=0)`` of the rows, as published, in which subjects leak. In every fold the training set alone chooses among
the hyperparameters of the configuration, by its ``choose_by`` and ``inner_folds``; the method is then fitted on all of
it and tested once.

Every result is stored: the same command resumes where it was stopped, and retries failures. ``--jobs`` measures several
results at a time. Of ``--seeds`` those count that have all their folds: ``--seeds 3 --methods LDLF`` adds two to one
method, and ``--seeds 3 --report`` shows them. ``--results`` names a file of results that were measured before, to which
new ones are added.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import zlib
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import torch
import yaml
from rich.progress import Progress

from benchmarks.common.data import FOLDS
from benchmarks.common.script import launch, make_parser, write_block
from benchmarks.tables.columns import PROTOCOLS, columns_of, read_results, titled, write_results
from benchmarks.tables.methods import Method, OnSet, make_head, quickened
from benchmarks.tables.report import full_tables, ranks, summary
from ldl.jobs.store import JOBS_FOLDER, Job, Result, Store
from ldl.jobs.workers import Workers
from ldl.run.output import silence
from ldl.search.selection import Selection, choose_and_test
from ldl.search.statistics import draw_ranks
from ldl.spec import to_spec

CONFIG = Path(__file__).with_suffix(".yaml")
QUICK_SETS, QUICK_FOLDS = ["SJAFFE"], 2
"""Sets and folds of ``--quick``, which shows that every method runs."""


def main() -> None:
    """Measure what is missing, then write table.md, results.csv and ranks.png."""
    options = parse()
    torch.set_num_threads(options.threads)
    silence()
    config = yaml.safe_load(options.config.read_text(encoding="utf-8"))
    choice = Selection(tuple(config.get("choose_by", ["kl"])), config.get("inner_folds", 1))
    methods = [Method(name, **entry) for name, entry in config["methods"].items()]
    if options.quick:
        methods = [quickened(method) for method in methods]
    specs = {method.name: digest(method, choice, options.quick) for method in methods}
    methods = [method for method in methods if options.methods is None or method.name in options.methods]
    sets: list[str] = options.sets or (QUICK_SETS if options.quick else list(config["sets"]))
    folds = QUICK_FOLDS if options.quick else FOLDS
    columns = columns_of(config["sets"], sets, options.protocol or (["persons"] if options.quick else PROTOCOLS))
    options.out.mkdir(parents=True, exist_ok=True)
    store = Store(options.out / JOBS_FOLDER)
    for key, result in read_results(options.results) if options.results else []:
        store.get(key, partial(dict, result))
    jobs = [
        Job(
            {"set": column.name, "protocol": column.protocol, "method": method.name, "seed": seed, "fold": fold,
             "spec": specs[method.name]},
            partial(choose_and_test, OnSet(column, method, seed), fold, choice),
        )
        for column in columns
        for method in methods
        if method.is_for(column.name)
        for seed in range(options.seeds)
        for fold in range(folds)
    ]  # fmt: skip
    if not options.report:
        fill(store, jobs, options)
        if options.results:
            current = [row for row in store.rows if specs.get(row["method"]) == row["spec"]]
            write_results(options.results, [row for row in current if "error" not in row])
    results = [(job.key or {}, store.find(job)) for job in jobs]
    rows = complete([{**key, **result} for key, result in results if result is not None], folds)
    write_results(options.out / "results.csv", rows)
    rows = titled(rows, columns)
    titles = [column.title for column in columns]
    measured = {row["method"] for row in rows}
    names = [name for name in specs if name in measured]
    chosen = any(len(method.settings()) > 1 for method in methods)
    seeds = "One seed." if options.seeds == 1 else "One seed, or the mean over the number of seeds in brackets."
    protocol = (
        f"Folds 0 to {folds - 1} of `KFold(10, shuffle=True, random_state=0)` over the rows or, under `persons`, over "
        f"the subjects. {seeds} Means ± standard deviations over the folds. "
        f"{f'Hyperparameters are chosen {choice}' if chosen else 'Hyperparameters are the same on all sets'}."
    )
    table = full_tables(rows, titles, names, protocol)
    (options.out / "table.md").write_text(table, encoding="utf-8")
    whole, ranked = ranks(rows, titles, names)
    if len(whole) > 1:
        draw_ranks(whole, ranked, options.out / "ranks.png", "sets and protocols")
    print(table)
    if options.page:
        absent = {(method.name, c.title) for method in methods for c in columns if not method.is_for(c.name)}
        text = summary(rows, titles, names, "kl", protocol, absent)
        write_block(options.page, options.block or options.config.stem, text)


def fill(store: Store, jobs: list[Job], options: argparse.Namespace) -> None:
    """Measure what is missing, in ``--jobs`` processes."""
    workers = Workers(options.jobs)
    with Progress(disable=options.silent) as progress:
        bar = progress.add_task("results", total=len(jobs))
        if workers.are_remote:
            progress.advance(bar, sum(store.find(job) is not None for job in jobs))
            store.fill(jobs, workers, lambda result: progress.advance(bar))
            return
        for job in jobs:
            progress.update(bar, description=str(job))
            store.fill([job], workers)
            progress.advance(bar)


def complete(results: list[Result], folds: int) -> list[Result]:
    """Return the results of methods and seeds that have all folds of a set; means over some folds do not compare."""
    names = "set", "protocol", "method", "seed"
    counts = Counter(tuple(row[name] for name in names) for row in results)
    return [row for row in results if counts[tuple(row[name] for name in names)] == folds]


def digest(method: Method, choice: Selection, quick: bool) -> int:
    """Return a number that changes with all hyperparameters on which a result depends, defaults of heads included.

    Classes count by their names without modules, so that a class that moves keeps its results.
    """
    spec = {"class_path": method.class_path, "init_args": method.init_args}
    head = json.dumps(to_spec(make_head(spec)) if method.is_head else "", sort_keys=True)
    head = re.sub(r'("class_path": ")[\w.]+\.', r"\1", head)
    return zlib.crc32(f"{method} {head} {choice!r} {quick}".encode())


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = make_parser(__doc__, threads=os.cpu_count(), block="--block")
    parser.add_argument("--block", help="block of --page (default: the configuration's name)")
    parser.add_argument("--config", type=Path, default=CONFIG, help="(default: %(default)s)")
    parser.add_argument("--sets", nargs="+", help="(default: all of the configuration)")
    parser.add_argument(
        "--protocol", nargs="+", choices=PROTOCOLS, help="(default: both if subjects are known; --quick: persons)"
    )
    parser.add_argument("--methods", nargs="+", help="(default: all of the configuration)")
    parser.add_argument("--seeds", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--report", action="store_true", help="measure nothing; write tables from stored results")
    parser.add_argument("--results", type=Path, help="file of earlier results, to which new ones are added")
    parser.add_argument("--quick", action="store_true", help="one small set, two folds, small methods")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the threads (default: %(default)s)")
    parser.add_argument("--silent", action="store_true", help="no progress bar")
    parser.add_argument("--out", type=Path, default=Path("runs/tabular"), help="(default: %(default)s)")
    options = parser.parse_args()
    if options.results and options.quick:
        parser.error("--quick stores no results in --results; omit one of them")
    return options


if __name__ == "__main__":
    launch(main)
