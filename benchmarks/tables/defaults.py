"""Which settings of a head serve on a table nobody has tuned for: chosen on all tables but one, tried on that one.

    python benchmarks/tables/defaults.py [--heads BoostedTrees] [--sets M2B] [--page docs/results/tables.md]

Tables: those of ``collection.py``, at most 3,000 rows each; the ten Yeast sets count as one. Folds:
``KFold(10, shuffle=True, random_state=0)`` of whole groups where persons are known, of rows elsewhere; the first three.
A setting's figure on a table is its mean KL divided by that of extra trees (``StructRF`` with random cuts: 500 trees, a
third of the features, two rows in a leaf); the setting with the smallest mean logarithm of it on all other tables is
taken for the one left out.
Every cell is written as soon as it is measured: the same command goes on where it was stopped.
"""

from __future__ import annotations

import copy
import sys
import zlib
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
import yaml
from rich.progress import track

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.tables.collection import FAMILIES, TABLES, Rows, read_rows
from benchmarks.tables.methods import make_head
from ldl.cells.store import Row, Store
from ldl.collective import Collective
from ldl.head import FittedHead, wanted_of
from ldl.metrics.functional import kl
from ldl.protocols import kfold
from ldl.reports.files import markdown
from ldl.spec import to_spec

CONFIG = Path(__file__).with_suffix(".yaml")
FOIL = "extra trees"
FOIL_IN_WORDS = "extra trees (`StructRF` with random cuts, 500 trees, a third of the features, two rows in a leaf)"
Figures = dict[tuple[str, str, str], float]
"""Mean KL of (head, setting, table) over the folds."""


def main() -> None:
    """Measure what is missing, choose, print the table."""
    parser = make_parser(__doc__, threads=1, block="defaults")
    parser.add_argument("--config", type=Path, default=CONFIG, help="(default: %(default)s)")
    parser.add_argument("--heads", nargs="+", help="(default: all of the configuration)")
    parser.add_argument("--sets", nargs="+", choices=list(TABLES), help="(default: all)")
    parser.add_argument("--folds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--report", action="store_true", help="write the table of what is measured, measure nothing")
    parser.add_argument("--out", type=Path, default=Path("runs/defaults"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    config = yaml.safe_load(options.config.read_text(encoding="utf-8"))
    heads = {name: config["heads"][name] for name in options.heads or config["heads"]}
    settings = {FOIL: {"500": config["foil"]}} | {name: settings_of(entry) for name, entry in heads.items()}
    store = Store(options.out / "cells")
    jobs = [(table, head) for table in options.sets or TABLES for head in settings]
    for table, head in [] if options.report else track(jobs, description="defaults"):
        rows = read_rows(table)
        for name, spec in settings[head].items():
            for fold in range(options.folds):
                key = {"table": table, "head": head, "setting": name, "spec": digest(spec), "fold": fold}
                store.cell(key, partial(measure, spec, rows, fold))
    figures = figures_of(store.rows, settings, options.folds)
    tables = [name for name in options.sets or TABLES if (FOIL, "500", name) in figures]
    header, lines = tabulate(figures, {name: list(settings[name]) for name in heads}, tables)
    show(f"KL, divided by that of {FOIL_IN_WORDS}", header, lines)
    if options.page:
        said = f"Folds 0 to {options.folds - 1} of ten, one seed. KL, divided by that of {FOIL_IN_WORDS}."
        write_block(options.page, "defaults", f"{said}\n\n{markdown(header, lines)}")


def settings_of(entry: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The specifications of a head by the names of its settings."""
    made = {}
    for name, changes in entry["grid"].items():
        spec = copy.deepcopy({part: entry[part] for part in ("class_path", "init_args")})
        for path, value in changes.items():
            *parts, last = path.split(".")
            inner = spec
            for part in parts:
                inner = inner["init_args"][part]
            inner["init_args"][last] = value
        made[name] = spec
    return made


def digest(spec: dict[str, Any]) -> int:
    """Changes with the specification, and with the defaults of its head."""
    return zlib.crc32(yaml.safe_dump(to_spec(make_head(spec))).encode())


def measure(spec: dict[str, Any], rows: Rows, fold: int) -> Row:
    """The mean KL of a fold's test rows."""
    split = kfold(len(rows.target), 10, fold, 0, groups=rows.groups)
    head: FittedHead = make_head(spec)
    head.build(rows.features.shape[1], rows.labels)
    train, test = torch.from_numpy(split.train), torch.from_numpy(split.test)
    columns = {"value": rows.labels.decode(rows.target[train]) if rows.labels.has_values else None}
    columns["group"] = None if rows.groups is None else torch.from_numpy(rows.groups)[train]
    torch.manual_seed(0)
    head.fit(rows.features[train], rows.target[train], Collective(), **wanted_of(head, columns))
    with torch.no_grad():
        return {"kl": float(kl(head.eval()(rows.features[test]).double(), rows.target[test].double()).mean())}


def figures_of(cells: list[Row], settings: dict[str, dict[str, Any]], folds: int) -> Figures:
    """The means of those that have all their folds, as they are configured now."""
    figures = {}
    for head, specs in settings.items():
        for name, spec in specs.items():
            for table in TABLES:
                key = {"table": table, "head": head, "setting": name, "spec": digest(spec)}
                found = [cell["kl"] for cell in cells if key.items() <= cell.items() and cell["fold"] < folds]
                if len(found) == folds:
                    figures[head, name, table] = float(np.mean(found))
    return figures


def ratios(figures: Figures, head: str, names: list[str], tables: list[str]) -> tuple[list[str], np.ndarray]:
    """Families of tables, and the ratio of each setting to the foil on each, (settings, families)."""
    families = list(dict.fromkeys(FAMILIES[table] for table in tables))
    values = np.array([
        [
            np.mean([figures[head, name, t] / figures[FOIL, "500", t] for t in tables if FAMILIES[t] == family])
            for family in families
        ]
        for name in names
    ])  # fmt: skip
    return families, values


def leave_one_out(values: np.ndarray) -> np.ndarray:
    """Which setting is taken for each table, (tables,): the best on the others by the mean logarithm."""
    logs = np.log(values)
    return (logs.sum(1, keepdims=True) - logs).argmin(0)


def tabulate(figures: Figures, grids: dict[str, list[str]], tables: list[str]) -> tuple[list[str], list[list[str]]]:
    """A column a table: the setting left-one-out, and each setting of the grid on all."""
    lines = []
    for head, names in grids.items():
        there = [name for name in names if all((head, name, table) in figures for table in tables)]
        if not there:
            continue
        families, values = ratios(figures, head, there, tables)
        taken = leave_one_out(values)
        line = values[taken, np.arange(len(families))]
        if len(there) > 1:
            lines.append(row(f"{head}, left one out", line))
        best = int(np.log(values).mean(1).argmin())
        lines += [
            row(f"{head}, {name}" + (" (default)" if at == best else ""), values[at]) for at, name in enumerate(there)
        ]
    return ["head and setting", *families, "mean", "worst"], lines


def row(name: str, values: np.ndarray) -> list[str]:
    """A line of the table."""
    return [name, *(f"{value:.3f}" for value in values), f"{values.mean():.3f}", f"{values.max():.3f}"]


if __name__ == "__main__":
    launch(main)
