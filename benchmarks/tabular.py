"""Heads and peers on tables of label distributions, on the same folds.

    python benchmarks/tabular.py [--sets SJAFFE M2B] [--methods LDLF "extra trees"] [--seeds 1] [--out runs/tabular]
    python benchmarks/tabular.py --quick

Protocol: ``KFold(10, shuffle=True, random_state=0)``. In every fold a tenth of the training part chooses among the
settings of ``tabular.yaml`` by KL; the method is then fitted on the whole training part and tested once. Every
cell is written as soon as it is measured: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from pathlib import Path
from typing import Any

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
import yaml
from rich.progress import Progress
from tabular_methods import Method, predict
from tabular_report import draw_ranks, markdown, ranks, write_csv

from ldl.data import TabularLDL
from ldl.metrics import DISTRIBUTION_METRICS, functional
from ldl.quiet import silence

CONFIG = Path(__file__).with_suffix(".yaml")
QUICK_SETS, QUICK_FOLDS = ["SJAFFE"], 2
"""What ``--quick`` does: enough to see that every method runs."""


def main() -> None:
    """Measure what is missing, then write table.md, cells.csv and ranks.png."""
    options = parse()
    torch.set_num_threads(options.threads)
    silence()
    config = yaml.safe_load(options.config.read_text())
    methods = [Method(name, **entry) for name, entry in config["methods"].items()]
    methods = [method for method in methods if options.methods is None or method.name in options.methods]
    sets: list[str] = options.sets or (QUICK_SETS if options.quick else list(config["sets"]))
    folds = QUICK_FOLDS if options.quick else 10
    options.out.mkdir(parents=True, exist_ok=True)
    cells = Cells(options.out / "cells.jsonl")
    jobs = [(s, m, seed, f) for s in sets for m in methods for seed in range(options.seeds) for f in range(folds)]
    with Progress(disable=options.silent) as progress:
        bar = progress.add_task("cells", total=len(jobs))
        for name, method, seed, fold in jobs:
            progress.update(bar, description=f"{name}, {method.name}, seed {seed}, fold {fold}")
            key = {
                "set": name,
                "method": method.name,
                "seed": seed,
                "fold": fold,
                "spec": digest(method, options.quick),
            }
            if key not in cells:
                cells.add(key | measure(config["sets"][name], method, seed, fold, options.quick))
            progress.advance(bar)
    names = [method.name for method in methods]
    mine = cells.of(sets, {method.name: digest(method, options.quick) for method in methods}, options.seeds, folds)
    protocol = (
        f"Folds 0 to {folds - 1} of KFold(10, shuffle=True, random_state=0), {options.seeds} seed(s); mean ± std."
    )
    table = markdown(mine, sets, names, protocol)
    (options.out / "table.md").write_text(table)
    write_csv(mine, options.out / "cells.csv")
    whole, ranked = ranks(mine, sets, names)
    if len(whole) > 1:
        draw_ranks(whole, ranked, options.out / "ranks.png")
    print(table)


class Cells:
    """What was measured, one JSON line each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        if path.is_file():
            # A line that was cut off while it was written is measured again.
            lines = [line for line in path.read_text().split("\n")[:-1] if line]
            self.rows = [json.loads(line) for line in lines]
            path.write_text("".join(f"{line}\n" for line in lines))

    def __contains__(self, key: dict[str, Any]) -> bool:
        return any(key.items() <= row.items() for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a cell, here and on disk."""
        self.rows.append(row)
        with self.path.open("a") as stream:
            stream.write(json.dumps(row) + "\n")

    def of(self, sets: list[str], specs: dict[str, int], seeds: int, folds: int) -> list[dict[str, Any]]:
        """Those of some sets and methods, as these are configured now."""
        return [
            row for row in self.rows
            if row["set"] in sets and specs.get(row["method"]) == row["spec"]
            and row["seed"] < seeds and row["fold"] < folds
        ]  # fmt: skip


def digest(method: Method, quick: bool) -> int:
    """Changes with anything that a cell of the method depends on."""
    return zlib.crc32(f"{method} {quick}".encode())


def measure(path: str, method: Method, seed: int, fold: int, quick: bool) -> dict[str, Any]:
    """Choose a setting, fit, test; or the error, in one line."""
    start = time.perf_counter()
    try:
        settings = method.settings()[:1] if quick else method.settings()
        if quick and method.training:
            method = Method(**{**vars(method), "training": {**method.training, "epochs": 2}})
        chosen, scores = settings[0], []
        for setting in settings if len(settings) > 1 else []:
            data, arguments = open_fold(path, method, setting, fold, 0.1)
            scores.append(score(method, arguments, data, data.split.val, seed)["kl"])
        if scores:
            chosen = settings[int(np.argmin(scores))]
        data, arguments = open_fold(path, method, chosen, fold, 0.0)
        measures = score(method, arguments, data, data.split.test, seed)
    except Exception as error:  # peers fail in ways of their own, which belong into the table
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    return {"setting": chosen, "seconds": round(time.perf_counter() - start, 3), "measures": measures}


def open_fold(
    path: str, method: Method, setting: dict[str, Any], fold: int, val_fraction: float
) -> tuple[TabularLDL, dict[str, Any]]:
    """The set, cut and scaled, and the setting without its scaling."""
    arguments = {name: value for name, value in setting.items() if name != "scaling"}
    scaling = setting.get("scaling", method.scaling)
    data = TabularLDL(path, scaling=scaling, fold=fold, val_fraction=val_fraction)
    data.setup()
    return data, arguments


def score(method: Method, arguments: dict[str, Any], data: TabularLDL, rows: np.ndarray, seed: int) -> dict[str, float]:
    """The ten measures, means over ``rows``."""
    predicted, true = predict(method, arguments, data, rows, seed).double(), data.targets[rows].double()
    return {name: float(getattr(functional, name)(predicted, true).mean()) for name in DISTRIBUTION_METRICS}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=CONFIG, help="(default: %(default)s)")
    parser.add_argument("--sets", nargs="+", help="(default: all of the configuration)")
    parser.add_argument("--methods", nargs="+", help="(default: all of the configuration)")
    parser.add_argument("--seeds", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one small set, two folds, the first setting of each grid")
    parser.add_argument("--silent", action="store_true", help="no progress bar")
    parser.add_argument("--out", type=Path, default=Path("runs/tabular"), help="(default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
