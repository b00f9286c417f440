"""Heads and peers on tables of label distributions, on the same folds.

    python benchmarks/tables/tabular.py [--sets SJAFFE M2B] [--methods LDLF "extra trees"] [--out runs/tabular]
    python benchmarks/tables/tabular.py --protocol persons
    python benchmarks/tables/tabular.py --quick
    python benchmarks/tables/tabular.py --cells docs/results/cells/tabular.csv --page docs/results/tables.md
    python benchmarks/tables/tabular.py --runs runs/*/results.json

Protocols: ``persons`` leaves a tenth of the persons out, where they are known; ``shuffled`` is ``KFold(10,
shuffle=True, random_state=0)`` of the rows, as published, which leaks persons. In every fold the training part alone
chooses among the settings of the configuration, by its ``choose_by`` and ``inner_folds``; the method is then fitted on
all of it and tested once.
Every cell is written as soon as it is measured: the same command goes on where it was stopped, and retries failures.
``--jobs`` measures several cells at a time. Of ``--seeds`` those count that have all their folds: ``--seeds 3
--methods LDLF`` adds two to one method, and ``--seeds 3 --report`` shows them. ``--cells`` goes on from a file of cells
that were measured elsewhere, and adds its own to it, so that a table of many hours can be filled on many days.

``--runs`` adds cross-validations of ``train.py`` over the same folds, with the settings of their ``config.yaml``, as
methods of their own: ``LDLF, tuned``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import torch
import yaml
from rich.progress import Progress

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import FOLDS
from benchmarks.common.tables import write_block
from benchmarks.tables.cells import read_cells, write_cells
from benchmarks.tables.choice import OnSet
from benchmarks.tables.columns import PROTOCOLS, Column, columns_of, protocol_of, titled
from benchmarks.tables.methods import Method, make_head
from benchmarks.tables.quick import quickened
from benchmarks.tables.report import full_tables, ranks, summary
from ldl.cells.coordinator import Workers
from ldl.cells.store import Row, Store, words_of
from ldl.comparison.choice import Choice, measure
from ldl.comparison.ranks import draw_ranks
from ldl.errors import LDLError
from ldl.metrics import DISTRIBUTION_METRICS
from ldl.running.quiet import silence
from ldl.spec import to_spec

CONFIG = Path(__file__).with_suffix(".yaml")
QUICK_SETS, QUICK_FOLDS = ["SJAFFE"], 2
"""What ``--quick`` does: enough to see that every method runs."""


def main() -> None:
    """Measure what is missing, then write table.md, cells.csv and ranks.png."""
    options = parse()
    torch.set_num_threads(options.threads)
    silence()
    config = yaml.safe_load(options.config.read_text(encoding="utf-8"))
    choice = Choice(tuple(config.get("choose_by", ["kl"])), config.get("inner_folds", 1))
    methods = [Method(name, **entry) for name, entry in config["methods"].items()]
    if options.quick:
        methods = [quickened(method) for method in methods]
    specs = {method.name: digest(method, choice, options.quick) for method in methods}
    methods = [method for method in methods if options.methods is None or method.name in options.methods]
    sets: list[str] = options.sets or (QUICK_SETS if options.quick else list(config["sets"]))
    folds = QUICK_FOLDS if options.quick else FOLDS
    columns = columns_of(config["sets"], sets, options.protocol or (["persons"] if options.quick else list(PROTOCOLS)))
    options.out.mkdir(parents=True, exist_ok=True)
    store = Store(options.out / "cells")
    seeds = range(options.seeds)
    for key, measured in read_cells(options.cells) if options.cells else []:
        store.cell(key, partial(dict, measured))
    wanted = [
        (key_of(column, method, seed, fold, specs), partial(measure, OnSet(column, method, seed), fold, choice))
        for column in columns
        for method in methods
        if method.is_for(column.name)
        for seed in seeds
        for fold in range(folds)
    ]
    if not options.report:
        fill(store, wanted, options)
        if options.cells:
            current = [cell for cell in store.rows if specs.get(cell["method"]) == cell["spec"]]
            write_cells(options.cells, [cell for cell in current if "error" not in cell])
    mine = complete([cell for key, _ in wanted if (cell := store.find(key))], folds)
    mine += [cell for path in options.runs for cell in read_run(path, config["sets"], folds)]
    write_cells(options.out / "cells.csv", mine)
    mine = titled(mine, columns)
    sets = [column.title for column in columns]
    known = {cell["method"] for cell in mine}
    names = [name for name in specs if name in known] + sorted(known - specs.keys())
    chosen = any(len(method.settings()) > 1 for method in methods)
    settings = f"Settings chosen {choice}" if chosen else "One setting of each for all sets"
    tuned = "; `tuned`: as in the run's configuration" if options.runs else ""
    protocol = (
        f"Folds 0 to {folds - 1} of KFold(10, shuffle=True, random_state=0) of the rows or, under `persons`, of the "
        f"persons; {seeds_in_words(options.seeds)}; mean ± standard deviation over the folds. {settings}{tuned}."
    )
    table = full_tables(mine, sets, names, protocol)
    (options.out / "table.md").write_text(table, encoding="utf-8")
    whole, ranked = ranks(mine, sets, names)
    if len(whole) > 1:
        draw_ranks(whole, ranked, options.out / "ranks.png", "sets and protocols")
    print(table)
    if options.page:
        absent = {
            (method.name, column.title) for method in methods for column in columns if not method.is_for(column.name)
        }
        text = summary(mine, sets, names, "kl", protocol, absent)
        write_block(options.page, options.block or options.config.stem, text)


def key_of(column: Column, method: Method, seed: int, fold: int, specs: dict[str, int]) -> Row:
    """What names a cell."""
    key = {"set": column.name, "protocol": column.protocol, "method": method.name, "seed": seed, "fold": fold}
    return key | {"spec": specs[method.name]}


def fill(store: Store, wanted: Sequence[tuple[Row, Callable[[], Row]]], options: argparse.Namespace) -> None:
    """Measure what is missing, in ``--jobs`` processes."""
    workers = Workers(options.jobs)
    with Progress(disable=options.silent) as progress:
        bar = progress.add_task("cells", total=len(wanted))
        if workers.are_others:
            progress.advance(bar, sum(store.find(key) is not None for key, _ in wanted))
            store.fill(wanted, workers, lambda row: progress.advance(bar))
            return
        for key, measured in wanted:
            progress.update(bar, description=words_of(key))
            store.cell(key, measured)
            progress.advance(bar)


def complete(cells: list[Row], folds: int) -> list[Row]:
    """Those of methods and seeds that have all folds of a set: means over some of them do not compare."""
    names = "set", "protocol", "method", "seed"
    found = Counter(tuple(cell[name] for name in names) for cell in cells)
    return [cell for cell in cells if found[tuple(cell[name] for name in names)] == folds]


def seeds_in_words(most: int) -> str:
    """How many seeds there are behind a figure."""
    return "1 seed" if most == 1 else "1 seed, or the mean of as many as stand in brackets"


def digest(method: Method, choice: Choice, quick: bool) -> int:
    """Changes with anything that a cell of the method depends on but code: with the defaults of a head, too."""
    spec = {"class_path": method.class_path, "init_args": method.init_args}
    head = to_spec(make_head(spec)) if method.is_head else ""
    return zlib.crc32(f"{method} {json.dumps(head, sort_keys=True)} {choice} {quick}".encode())


def read_run(path: Path, sets: dict[str, str], folds: int) -> list[Row]:
    """The cells of a cross-validation by ``train.py``, from its ``results.json`` and a fold's ``config.yaml``."""
    results = json.loads(path.read_text(encoding="utf-8"))
    config = yaml.safe_load(
        (path.parent / f"fold_{results['folds'][0]['fold']}" / "config.yaml").read_text(encoding="utf-8")
    )
    data = config["data"]["init_args"]
    name = next((name for name, file in sets.items() if Path(file).name == Path(data["path"]).name), None)
    protocol = protocol_of(results)
    if name is None or protocol is None or (data["folds"], data["fold_seed"]) != (FOLDS, 0):
        raise LDLError(f"{path} is no cross-validation over ten folds (seed 0) of any of {', '.join(sets)}")
    return [
        {
            "set": name, "protocol": protocol, "method": f"{results['head']}, tuned", "seed": 0,
            "fold": fold["fold"], "setting": str(path),
            "measures": {measure: fold["metrics"][measure] for measure in DISTRIBUTION_METRICS},
        }
        for fold in results["folds"] if fold["fold"] < folds
    ]  # fmt: skip


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, threads=os.cpu_count(), block="--block")
    parser.add_argument("--block", help="of --page (default: the configuration's name)")
    parser.add_argument("--config", type=Path, default=CONFIG, help="(default: %(default)s)")
    parser.add_argument("--sets", nargs="+", help="(default: all of the configuration)")
    parser.add_argument(
        "--protocol", nargs="+", choices=PROTOCOLS, help="(default: both where persons are known; --quick: persons)"
    )
    parser.add_argument("--methods", nargs="+", help="(default: all of the configuration)")
    parser.add_argument("--seeds", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--runs", nargs="+", type=Path, default=[], help="results.json of cross-validations to add")
    parser.add_argument(
        "--report", action="store_true", help="write the tables of what is measured, and measure nothing"
    )
    parser.add_argument("--cells", type=Path, help="file of cells to go on from, to which those measured are added")
    parser.add_argument("--quick", action="store_true", help="one small set, two folds, small methods")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the threads (default: %(default)s)")
    parser.add_argument("--silent", action="store_true", help="no progress bar")
    parser.add_argument("--out", type=Path, default=Path("runs/tabular"), help="(default: %(default)s)")
    options = parser.parse_args()
    if options.cells and options.quick:
        parser.error("--cells takes no cells of --quick; leave one of them out")
    return options


if __name__ == "__main__":
    launch(main)
