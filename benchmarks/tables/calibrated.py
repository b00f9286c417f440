"""What calibration in a default run on a table costs, and how often its intervals hold new values.

    python benchmarks/tables/calibrated.py [--tables SBU_3DFE] [--draws 100] [--page docs/results/uncertainty.md]

``calibration_cost``: the KL of default runs on folds 0 to 2 of public tables that learn from all training rows, and of
runs that hold out the tenth by which ``data.val_fraction`` null calibrates, also with a temperature fitted on it.

``calibration_defaults``: the coverage of calibrated intervals on 2,000 fresh rows, or 250 fresh groups of 8 rows, of
tables that are drawn anew from one law. The error of a value depends on the row, and values of a group share an effect.
Every result is stored, and the same command resumes where it was stopped.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from rich.progress import track
from scipy.special import expit

from benchmarks.common.script import launch, make_parser, show, write_block
from ldl.command.command_line import parse_anew
from ldl.data.base import LDLDataModule
from ldl.inference import Predictor
from ldl.jobs.store import JOBS_FOLDER, Key, Result, Store
from ldl.reports.files import markdown
from ldl.run.output import quiet_trainers
from ldl.run.parts import build_trainer
from ldl.run.training import fit_and_test, seed_everything, test
from ldl.search.candidates import NO_FILES
from ldl.task import Task

FOLDS = range(3)
TABLES = ("SBU_3DFE", "Natural_Scene", "SCUT_FBP", "M2B", "Yeast_alpha", "Movie")
"""Public tables of which a tenth of the training rows suffices."""
HEADS = {"BoostedTrees": "tabular_boostedtrees", "StructRF": "tabular_structrf"}

LEVELS = (50, 80, 90)
"""Levels in percent."""
FEATURES, PER_GROUP, FRESH = 6, 8, 2000
CASES = [
    ("MaxEnt", 560, 0),
    ("MaxEnt", 1120, 0),
    ("MaxEnt", 2240, 0),
    ("MaxEnt", 0, 100),
    ("MaxEnt", 0, 330),
    ("MaxEnt", 0, 1110),
]
"""Head, independent rows and groups of a simulated table; rows or groups of the first of each kind just suffice."""


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = make_parser(__doc__, threads=1, block="calibration_cost and calibration_defaults")
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=TABLES, help="(default: all)")
    parser.add_argument("--heads", nargs="*", choices=list(HEADS), default=list(HEADS), help="(default: all)")
    parser.add_argument("--draws", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/calibrated"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore", message="level .* needs")
    store = Store(options.out / JOBS_FOLDER)
    for case in CASES:
        for draw in track(range(options.draws), description=" ".join(map(str, case))):
            store.get(drawn_key(case, draw), partial(coverage, case, draw))
    jobs = [(name, head, fold) for name in options.tables for head in options.heads for fold in FOLDS]
    for name, head, fold in track(jobs, description="cost"):
        store.get({"table": name, "head": head, "fold": fold}, partial(cost, name, head, fold))
    blocks = {
        "calibration_cost": tabulate_cost(store),
        "calibration_defaults": tabulate_coverage(store, options.draws),
    }
    for block, (header, lines) in blocks.items():
        show(block, header, lines)
        if options.page and lines:
            write_block(options.page, block, markdown(header, lines))


def run(words: list[str]) -> tuple[Task, LDLDataModule, dict[str, float], float]:
    """Train and test a run that leaves no files.

    Returns:
        The task, the data, the metrics, and the KL without temperature.
    """
    with contextlib.redirect_stdout(io.StringIO()), quiet_trainers():
        config = parse_anew(words)
        data, task = config.instantiate("data"), config.instantiate("model")
        data.setup()
        seed_everything(config.seed)
        task.build(data.labels, data.input_shape, raters=data)
        trainer = build_trainer(config, [], **NO_FILES)
        metrics = fit_and_test(trainer, task, data)[0]["metrics"]
        bare = metrics["kl"]
        if task.temperature != 1:
            task.temperature = 1.0
            bare = test(trainer, task, data)["metrics"]["kl"]
    return task, data, metrics, bare


def cost(name: str, head: str, fold: int) -> Result:
    """Return the KL of a fold with all rows, with a tenth held out, and with a temperature fitted on the tenth."""
    words = ["-c", HEADS[head], f"--data.path=ldl/{name}.mat", f"--data.fold={fold}"]
    every = run([*words, "--data.val_fraction=0"])[2]["kl"]
    _, data, metrics, bare = run([*words, "--model.calibrate=true"])
    held = len(data.split.val)
    return {"every": every, "held_out": bare, "tempered": metrics["kl"], "rows": held, "train": len(data.split.train)}


def simulate(rows: int, groups: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return ``features``, ``value`` (N,) in (0, 10) and, if there are groups of 8 rows, ``group``."""
    size = rows or groups * PER_GROUP
    features = rng.normal(size=(size, FEATURES)).astype(np.float32)
    error = rng.normal(size=size)
    if groups:
        error = (error + rng.normal(size=groups).repeat(PER_GROUP)) / np.sqrt(2)
    score = features[:, 0] + np.sin(2 * features[:, 1]) + (0.4 + 0.6 * (features[:, 2] > 0)) * error
    table = {"features": features, "value": 10 * expit(score)}
    return {**table, "group": np.arange(groups).repeat(PER_GROUP)} if groups else table


def drawn_key(case: tuple[str, int, int], draw: int) -> Key:
    """Return the key of a draw of a case."""
    return {"head": case[0], "drawn_rows": case[1], "groups": case[2], "draw": draw}


def coverage(case: tuple[str, int, int], draw: int) -> Result:
    """Return the shares of fresh values that intervals hold, and their mean widths, by level."""
    head, rows, groups = case
    rng = np.random.default_rng(draw)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, **simulate(rows, groups, rng))  # type: ignore[arg-type]
        words = ["-c", f"tabular_{head.lower()}", "--data=TabularValues", f"--data.path={path}"]
        labels = ["--data.val_fraction=null", "--data.low=0", "--data.high=10", "--data.step=0.5"]
        task, data, _, _ = run([*words, *labels])
        fresh = simulate(FRESH if rows else 0, FRESH // PER_GROUP if groups else 0, rng)
        predictions = Predictor(task).predict(fresh["features"])
    assert task.calibration is not None
    result: Result = {"units": task.calibration.units}
    for level in LEVELS:
        low, high = predictions.interval(level / 100).T
        held = (low <= fresh["value"]) & (fresh["value"] <= high)
        result[str(level)] = {"coverage": float(held.mean()), "width": float((high - low).mean())}
    return result


def tabulate_cost(store: Store) -> tuple[list[str], list[list[str]]]:
    """Return a row per table and head that has all folds, with means over the folds."""
    header = [
        "table",
        "head",
        "held out",
        "KL, all rows",
        "KL, held out",
        "ratio",
        "KL, temperature",
        "ratio to held out",
    ]
    lines = []
    for name in TABLES:
        for head in HEADS:
            rows = [row for row in store.rows if (row.get("table"), row["head"]) == (name, head)]
            if len(rows) == len(FOLDS):
                every, held, warm = (np.mean([row[way] for row in rows]) for way in ("every", "held_out", "tempered"))
                kept = f"{np.mean([row['rows'] for row in rows]):.0f}"
                kls = [f"{every:.4f}", f"{held:.4f}", f"{held / every:.3f}", f"{warm:.4f}", f"{warm / held:.3f}"]
                lines.append([name, head, kept, *kls])
    return header, lines


def tabulate_coverage(store: Store, draws: int) -> tuple[list[str], list[list[str]]]:
    """Return a row per case that has all draws: mean coverage in percent, its standard error, and the mean width."""
    header = ["head", "table", "calibrated by"]
    for level in LEVELS:
        header += [f"{level}%: held", "width"]
    lines = []
    for case in CASES:
        key = drawn_key(case, 0)
        del key["draw"]
        rows = [row for row in store.rows if key.items() <= row.items() and row["draw"] < draws]
        if len(rows) == draws:
            head, size, groups = case
            table = f"{groups:,} groups" if groups else f"{size:,} rows"
            line = [head, table, f"{rows[0]['units']} {'groups' if groups else 'rows'}"]
            for name in map(str, LEVELS):
                held = [100 * row[name]["coverage"] for row in rows]
                error = np.std(held, ddof=1) / np.sqrt(draws)
                line += [f"{np.mean(held):.1f} ± {error:.1f}", f"{np.mean([row[name]['width'] for row in rows]):.3g}"]
            lines.append(line)
    return header, lines


if __name__ == "__main__":
    launch(main)
