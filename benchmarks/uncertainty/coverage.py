"""How often intervals hold the true value, as predicted and calibrated, over random splits.

    python benchmarks/uncertainty/coverage.py [--sets UTKFace] [--page docs/results/uncertainty.md]

A split is 60% of the rows for training, 20% for calibration and 20% for the test, of whole groups where there are
groups (persons of FG-NET, SJAFFE and SBU_3DFE, digits that are turned); heads as ``HEADS`` says, on features of a
frozen ImageNet network for pictures. Where there are groups and values, several ways to calibrate are compared,
cross-conformal ones on the 80% in five folds. Every cell is written as soon as it is measured: the same command goes on
where it was stopped.
"""

from __future__ import annotations

import json
import sys
import warnings
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from rich.progress import track

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.uncertainty.measures import LEVELS, Figures, given, measure, one_row_a_group, plain
from benchmarks.uncertainty.sets import NOMINAL, VALUED, Valued
from ldl.cells.store import Row, Store
from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.heads import MaxEnt, Scaled, StructRF
from ldl.methods.conformal import Conformal, CrossConformal
from ldl.protocols import kfold
from ldl.reports.files import markdown
from ldl.spec import to_spec

HEADS: dict[str, Callable[[], FittedHead]] = {
    "StructRF": partial(StructRF, trees=50, features=0.1, search="random", min_leaf=2, out_of_bag=False),
    "MaxEnt": partial(MaxEnt, l2=0.01, iterations=60),
}
FOLDS = 5
WAYS = {
    "split": "rows of the calibration part",
    "split, groups": "hierarchical: groups of it",
    "split, a row a group": "one row of each of its groups, at random",
    "cross, one model": "rows, out of fold, with the model of all",
    "cross, one model, groups": "hierarchical, out of fold, with the model of all",
    "cross, groups": "CV+, hierarchical: the models of all folds",
}
"""Ways to calibrate, the first of rows alone; the others are for groups."""


def main() -> None:
    """Measure what is missing, print the tables."""
    parser = make_parser(__doc__, threads=1, block="coverage")
    known = [*VALUED, *NOMINAL]
    parser.add_argument("--sets", nargs="+", choices=known, default=known, help="(default: all)")
    parser.add_argument("--heads", nargs="+", choices=list(HEADS), default=list(HEADS), help="(default: all)")
    parser.add_argument("--splits", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--report", action="store_true", help="write the tables of what is measured, measure nothing")
    parser.add_argument("--out", type=Path, default=Path("runs/coverage"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore", message="level .* needs")
    store = Store(options.out / "cells")
    for name in [] if options.report else options.sets:
        table = (VALUED | NOMINAL)[name]()
        jobs = [(head, split) for head in options.heads for split in range(options.splits)]
        for head, split in track(jobs, description=name):
            key = {"set": name, "head": head, "split": split, "spec": digest(head)}
            store.cell(key, partial(evaluate, table, head, split))
    blocks = {}
    for block, sets in (("coverage", list(VALUED)), ("label_sets", list(NOMINAL))):
        blocks[block] = tabulate(store.rows, [name for name in sets if name in options.sets], options.splits)
    blocks["coverage_groups"] = compare_ways(store.rows, options.splits)
    for block, (header, lines) in blocks.items():
        show(block, header, lines)
        if options.page and lines:
            spread = f"Mean ± standard deviation over {options.splits} splits."
            write_block(options.page, block, f"{spread}\n\n{markdown(header, lines)}")


def digest(head: str) -> int:
    """Changes with the settings that a cell depends on."""
    return zlib.crc32(f"{json.dumps(to_spec(HEADS[head]()), sort_keys=True)} {FOLDS} {LEVELS}".encode())


def evaluate(table: Valued, head: str, split: int) -> Row:
    """Coverage and width of every way at every level."""
    rng = np.random.default_rng(split)
    unit = np.arange(len(table.target)) if table.groups is None else np.unique(table.groups, return_inverse=True)[1]
    order = rng.permutation(unit.max() + 1)
    cuts = np.split(order, [round(0.6 * len(order)), round(0.8 * len(order))])
    train, held, test = (np.flatnonzero(np.isin(unit, part)) for part in cuts)
    groups = None if table.groups is None else unit
    model = predictor(table, head, train)
    prediction = model(test)
    found: dict[str, Figures] = {}

    def note(way: str, level: int, sets: np.ndarray) -> None:
        found[f"{way} {level}"] = measure(sets, table.truth[test], None if groups is None else groups[test])

    for level in LEVELS:
        note("plain", level, plain(table.labels, prediction, level / 100))
    ways: dict[str, tuple[Any, np.ndarray]] = {
        "split": (Conformal.fit(table.labels, model(held), table.truth[held]), prediction)
    }
    if groups is not None and table.truth.ndim == 1:
        ways |= grouped_ways(table, head, groups, (train, held, test), model, rng)
    for way, (calibration, predicted) in ways.items():
        for level in LEVELS:
            note(way, level, given(calibration, predicted, level / 100))
    return {"found": found}


def grouped_ways(
    table: Valued, head: str, groups: np.ndarray, parts: tuple[np.ndarray, ...], model: Any, rng: np.random.Generator
) -> dict[str, tuple[Any, np.ndarray]]:
    """What to calibrate by, and the predictions of the test rows that it takes, by the ways of ``WAYS``."""
    train, held, test = parts
    labels, prediction, held_prediction = table.labels, model(test), model(held)
    one = one_row_a_group(groups[held], rng)
    known = np.sort(np.concatenate([train, held]))
    fold, out = np.zeros(len(known), dtype=int), np.zeros((len(known), len(labels)))
    by_fold = []
    for number in range(FOLDS):
        cut = kfold(len(known), FOLDS, number, 0, groups=groups[known])
        part = predictor(table, head, known[cut.train])
        fold[cut.test], out[cut.test] = number, part(known[cut.test])
        by_fold.append(part(test))
    again, truth, persons = predictor(table, head, known)(test), table.truth[known], groups[known]
    return {
        "split, groups": (Conformal.fit(labels, held_prediction, table.truth[held], groups[held]), prediction),
        "split, a row a group": (Conformal.fit(labels, held_prediction[one], table.truth[held][one]), prediction),
        "cross, one model": (Conformal.fit(labels, out, truth), again),
        "cross, one model, groups": (Conformal.fit(labels, out, truth, persons), again),
        "cross, groups": (CrossConformal.fit(labels, out, truth, fold, persons), np.stack(by_fold)),
    }


def predictor(table: Valued, name: str, rows: np.ndarray) -> Any:
    """A head fitted on some rows, as a function of rows."""
    head = Scaled(HEADS[name](), table.scaling)
    head.build(table.features.shape[1], table.labels)
    torch.manual_seed(0)
    index = torch.from_numpy(rows)
    head.fit(table.features[index], table.target[index], Collective())

    def predict(chosen: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return head.eval()(table.features[torch.from_numpy(chosen)]).double().numpy()

    return predict


def means(cells: list[Row], key: Row, splits: int) -> tuple[dict[str, Figures], dict[str, Figures]]:
    """Mean of every figure over the splits, and its deviation; both empty where splits are missing."""
    rows = [cell["found"] for cell in cells if key.items() <= cell.items() and cell["split"] < splits]
    if len(rows) < splits:
        return {}, {}
    columns = {way: {name: [row[way][name] for row in rows] for name in rows[0][way]} for way in rows[0]}
    return tuple(  # type: ignore[return-value]
        {way: {name: float(reduce(column)) for name, column in part.items()} for way, part in columns.items()}
        for reduce in (np.mean, partial(np.std, ddof=min(1, splits - 1)))
    )


def tabulate(cells: list[Row], sets: list[str], splits: int) -> tuple[list[str], list[list[str]]]:
    """A row a set and head: coverage in percent and mean width at every level, as predicted and calibrated."""
    header = ["set", "head"]
    for level in LEVELS:
        header += [f"{level}%: predicted", "width", "calibrated", "width"]
    lines = []
    for name in sets:
        for head in HEADS:
            mean, spread = means(cells, {"set": name, "head": head, "spec": digest(head)}, splits)
            line = [name, head]
            for level in LEVELS if mean else ():
                for way in ("plain", "split"):
                    figures, over = mean[f"{way} {level}"], spread[f"{way} {level}"]
                    line += [
                        f"{100 * figures['coverage']:.1f} ± {100 * over['coverage']:.1f}",
                        f"{figures['width']:.3g}",
                    ]
            lines += [line] if mean else []
    return header, lines


def compare_ways(cells: list[Row], splits: int) -> tuple[list[str], list[list[str]]]:
    """At 90%, of sets with groups: coverage of rows, of groups of equal weight, and mean width, of every way."""
    header = ["set", "head", "calibrated by", "rows held", "groups held", "width"]
    lines = []
    for name in VALUED:
        for head in HEADS:
            mean, spread = means(cells, {"set": name, "head": head, "spec": digest(head)}, splits)
            for way in ("plain", *WAYS):
                if "by_group" in (figures := mean.get(f"{way} 90", {})):
                    over = spread[f"{way} 90"]
                    shares = [f"{100 * figures[of]:.1f} ± {100 * over[of]:.1f}" for of in ("coverage", "by_group")]
                    lines.append([name, head, WAYS.get(way, "nothing"), *shares, f"{figures['width']:.3g}"])
    return header, lines


if __name__ == "__main__":
    launch(main)
