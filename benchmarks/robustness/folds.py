"""Cross-validations that lose processes, beside one that loses none; and how much faster two processes are.

    python benchmarks/robustness/folds.py [--kills 10 --turns 3 --seed 0 --page docs/results/kills.md]

*Killed*: FG-NET, one person left out a fold, SIGKILL to all its processes at random moments, and started again in the
same directory each time. *Jobs*: a table in ten folds, fits of one thread, by ``--jobs 1`` and ``--jobs 2`` in turns;
the ratio is of the medians, of the whole command. *Cluster*: the same table by a Dask cluster of two workers, of which
one is killed in the middle. All must end with the figures of a cross-validation that nothing happened to.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import data_file
from benchmarks.common.runs import run_config
from benchmarks.common.tables import show, write_block
from benchmarks.common.timing import take_turns
from ldl.cells.store import Row, Store
from ldl.errors import LDLError
from ldl.reports.files import markdown

TRAIN = Path(__file__).resolve().parents[2] / "train.py"
QUIET = ["--stage", "crossval", "--wandb.mode", "disabled", "--trainer.accelerator", "cpu"]
QUIET += ["--trainer.enable_progress_bar", "false"]
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}
HEADER = ["", "folds", "lost processes", "seconds", "figures"]


def main() -> None:
    """Run all, print the table."""
    options = parse()
    faces = ["-c", str(run_config("fgnet", "softmax")), *options.faces]
    table = ["-c", str(run_config("tabular", "structrf")), "--data.path", str(data_file(options.table))]
    table += options.fits
    with tempfile.TemporaryDirectory() as place:
        scratch, known = Path(place), {"table": options.table, "options": options.fits}
        cases: dict[str, tuple[Row, Callable[[], list[list[str]]]]] = {
            "killed": (
                {"kills": options.kills, "seed": options.seed, "options": options.faces},
                lambda: [killed(faces, scratch, options)],
            ),
            "jobs": ({**known, "turns": options.turns}, lambda: jobs(table, scratch, options.turns)),
            "cluster": (known, lambda: [cluster(table, scratch)]),
        }
        store, lines = Store(options.out), []
        for name, (key, measure) in cases.items():
            if name in options.only:
                lines += store.cell({"case": name, **key}, lambda: {"lines": measure()})["lines"]  # noqa: B023
    show(f"Cross-validations that lose processes, seed {options.seed}", HEADER, lines)
    if options.page:
        write_block(options.page, "folds", markdown(HEADER, lines))


def start(run: list[str], folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """Begin a run in a group of its own."""
    command = [sys.executable, str(TRAIN), *run, *QUIET, "--run_dir", str(folder), *more]
    with folder.with_suffix(".log").open("ab") as log:
        environment = {**os.environ, **ONE_THREAD}
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment)


def finish(run: list[str], folder: Path, *more: str) -> float:
    """Seconds of a run to its end. Raises LDLError where it fails."""
    begun = time.monotonic()
    if start(run, folder, *more).wait():
        raise LDLError(f"a run failed: {folder.with_suffix('.log').read_text(encoding='utf-8')[-2000:]}")
    return time.monotonic() - begun


def killed(run: list[str], scratch: Path, options: argparse.Namespace) -> list[str]:
    """Kill a run so often, and let it end."""
    whole, place = scratch / "whole", scratch / "killed"
    seconds = finish(run, whole)
    draws = np.random.default_rng(options.seed)
    begun = time.monotonic()
    kept = []
    for number in range(options.kills):
        process = start(run, place)
        # On the whole they take about as long as the run.
        time.sleep(float(draws.uniform(0, 2 * seconds / (options.kills + 1))))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kept.append(len(list(place.glob("fold_*/results.json"))))
        print(f"kill {number}: {kept[-1]} folds are done", flush=True)
    finish(run, place)
    took = f"{time.monotonic() - begun:.0f}, never killed {seconds:.0f}"
    return ["killed", count(whole), str(options.kills), took, compared(place, whole)]


def jobs(run: list[str], scratch: Path, turns: int) -> list[list[str]]:
    """By one process and by two, in turns."""
    taken = take_turns(("1", "2"), turns, lambda n, turn: finish(run, scratch / f"jobs_{n}_{turn}", "--jobs", n))
    medians = {name: statistics.median(column) for name, column in taken.items()}
    one = scratch / "jobs_1_0"
    ratio = f"{medians['2']:.1f}, {medians['1'] / medians['2']:.2f} times as fast"
    equal = [compared(scratch / f"jobs_2_{turn}", one) for turn in range(turns)]
    return [
        ["--jobs 1", count(one), "0", f"{medians['1']:.1f}", ""],
        ["--jobs 2", count(one), "0", ratio, min(equal, key=lambda word: word == "equal")],
    ]


def cluster(run: list[str], scratch: Path) -> list[str]:
    """By two workers of Dask, of which one is killed when a fold is done."""
    from distributed import LocalCluster

    one, place = scratch / "cluster_1", scratch / "cluster"
    finish(run, one)
    os.environ.update(ONE_THREAD)
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as workers:
        begun = time.monotonic()
        process = start(run, place, "--scheduler", workers.scheduler_address)
        while not list(place.glob("fold_*/results.json")):
            time.sleep(0.1)
            if process.poll() is not None:
                raise LDLError(f"the run ended early: {place.with_suffix('.log').read_text(encoding='utf-8')[-2000:]}")
        os.kill(next(iter(workers.workers.values())).pid, signal.SIGKILL)
        if process.wait():
            raise LDLError(f"the run failed: {place.with_suffix('.log').read_text(encoding='utf-8')[-2000:]}")
        seconds = time.monotonic() - begun
    return ["cluster of two workers", count(one), "1", f"{seconds:.1f}", compared(place, one)]


def count(folder: Path) -> str:
    """How many folds there are."""
    return str(len(json.loads((folder / "results.json").read_text(encoding="utf-8"))["folds"]))


def compared(folder: Path, other: Path) -> str:
    """Whether two cross-validations came to the same, but for the seconds."""
    one, two = (json.loads((place / "results.json").read_text(encoding="utf-8")) for place in (folder, other))
    wrong = [name for name in one | two if name != "fit_seconds" and one.get(name) != two.get(name)]
    return "equal" if not wrong else f"others: {', '.join(wrong)}"


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, block="folds")
    parser.add_argument("--kills", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="of the timing (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: %(default)s)")
    parser.add_argument("--table", default="ldl/SBU_3DFE.mat", help="below LDL_DATA (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=["killed", "jobs", "cluster"], help="(default: all)")
    parser.add_argument("--out", type=Path, default=Path("folds_cells"), help="kept, and gone on with")
    parser.add_argument("--fits", nargs="*", default=[], help="more options of the runs on the table")
    parser.add_argument("--faces", nargs="*", default=[], help="more options of the run on faces")
    return parser.parse_args()


if __name__ == "__main__":
    launch(main)
