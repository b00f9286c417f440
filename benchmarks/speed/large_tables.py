"""Tables larger than memory: seconds, rows a second and resident memory of whole runs, and how they grow with the rows.

    python benchmarks/speed/large_tables.py [--sizes 2.5 5 10 20] [--heads boostedtrees ldlf]

Made tables of 30 features and 5 labels, float32, as a folder of .npy files, or of Parquet with ``--layout parquet``;
all of them stay on disk. Every cell is ``train.py`` in a process of its own, which cuts one fold of ten, scales, trains
and tests: LDLF one epoch of batches of 16,384 rows, BoostedTrees a few rounds. ``resident`` is the kernel's high-water
mark; ``anonymous`` is what the process holds, ``of files`` what it maps, which the kernel may take back at any time.
``N log N`` is the time of the fit against the first size's, divided by how much N log N has grown: 1 or less is growth
of at most N log N. ``--page docs/results/speed.md`` writes the block of that page.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import CONFIGS, run_config
from benchmarks.common.tables import write_block
from ldl.cells.store import Store
from ldl.data.row_file import RowWriter
from ldl.errors import LDLError
from ldl.reports.files import markdown

FEATURES, LABELS = 30, 5
BLOCK = 250_000
"""Rows that are made at a time."""
SMALL = 200_000
"""Rows of a run before the others, in which code is compiled that they then find in the cache."""
EVERY = 0.05
"""Seconds between two looks at the memory."""
COMMON = ["--data.batch_size", "16384", "--data.in_memory", "32", "--trainer.max_epochs", "1"]
HEADS = {
    "boostedtrees": ["--model.head.rounds", "10", "--model.head.patience", "null"],
    "ldlf": ["--model.head.hidden", "[64]", "--model.head.trees", "5", "--data.scaling", "standard"],
    "softmax": ["--model.head.hidden", "[64]", "--data.scaling", "standard"],
}
"""Options of a head's run, by its name in ``configs/runs/tabular``."""
HEADER = ["rows", "table, MB", "fit, s", "rows/s", "whole run, s", "of the processor", "N log N"]
HEADER += ["resident, MB", "anonymous", "of files", "KL"]


@dataclass(frozen=True)
class Measured:
    """One run: training rows, seconds of the fit, of all, and of the processor, peaks of memory in MB, and test KL."""

    rows: int
    fit: float
    whole: float
    processor: float
    resident: float
    anonymous: float
    of_files: float
    kl: float


def make_table(folder: Path, rows: int, layout: str) -> None:
    """Write a table of random features and distributions that depend on them, block by block."""
    folder.mkdir()
    weights = np.random.default_rng(0).normal(size=(FEATURES, LABELS)).astype(np.float32)
    if layout == "npy":
        with (
            RowWriter(folder / "features.npy", np.float32, (rows, FEATURES)) as features,
            RowWriter(folder / "labels.npy", np.float32, (rows, LABELS)) as labels,
        ):
            for block in range(-(-rows // BLOCK)):
                x, d = make_block(block, min(BLOCK, rows - block * BLOCK), weights)
                features.append(x)
                labels.append(d)
        return
    import pyarrow
    from pyarrow import parquet

    for block in range(-(-rows // BLOCK)):
        x, d = make_block(block, min(BLOCK, rows - block * BLOCK), weights)
        columns = {f"x{number}": column for number, column in enumerate(x.T)}
        columns |= {f"label:{number}": column for number, column in enumerate(d.T)}
        parquet.write_table(pyarrow.table(columns), folder / f"part-{block:05}.parquet", row_group_size=2**16)


def make_block(number: int, rows: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features (rows, 30) and distributions (rows, 5), float32."""
    random = np.random.default_rng([1, number])
    features = random.standard_normal((rows, FEATURES), dtype=np.float32)
    scores = np.tanh(features) @ weights + random.standard_normal((rows, LABELS), dtype=np.float32)
    mass = np.exp(scores - scores.max(1, keepdims=True))
    return features, mass / mass.sum(1, keepdims=True)


def measure(head: str, table: Path, folder: Path, threads: int) -> Measured:
    """Run ``train.py`` on a table, and watch its memory. Raises LDLError where it fails."""
    arguments = ["-c", str(run_config("tabular", head)), "--data.path", str(table), "--run_dir", str(folder)]
    arguments += [*COMMON, *HEADS[head], "--data.cache_dir", str(table.parent / "cache")]
    environment = {**os.environ, "WANDB_MODE": "disabled", "OMP_NUM_THREADS": str(threads)}
    environment["NUMBA_NUM_THREADS"] = str(threads)
    before, start, peaks = children(), time.perf_counter(), dict.fromkeys(("VmHWM", "RssAnon", "RssFile"), 0)
    log = folder.with_suffix(".log")
    with log.open("wb") as output:
        script = [sys.executable, str(CONFIGS.parent / "train.py"), *arguments]
        run = subprocess.Popen(script, env=environment, stdout=output, stderr=subprocess.STDOUT)
        while run.poll() is None:
            for name, kilobytes in memory_of(run.pid).items():
                peaks[name] = max(peaks[name], kilobytes)
            time.sleep(EVERY)
    if run.returncode:
        raise LDLError(f"train.py of {head} on {table} failed: {log.read_text(encoding='utf-8')[-2000:]}")
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    whole, tested = time.perf_counter() - start, results["folds"][0]
    resident, anonymous, of_files = (peaks[name] / 1024 for name in ("VmHWM", "RssAnon", "RssFile"))
    return Measured(
        rows=tested["n_train"],
        fit=results["fit_seconds"],
        whole=whole,
        processor=children() - before,
        resident=resident,
        anonymous=anonymous,
        of_files=of_files,
        kl=tested["metrics"]["kl"],
    )


def children() -> float:
    """Seconds of the processor that processes have taken that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory_of(process: int) -> dict[str, int]:
    """Kilobytes of memory of a process: the most so far, what is its own now, and what it maps; nothing of one gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    fields = dict(line.split(":", 1) for line in lines)
    return {name: int(fields[name].split()[0]) for name in ("VmHWM", "RssAnon", "RssFile") if name in fields}


def tabulate(found: dict[int, Measured]) -> list[list[str]]:
    """A row a size."""
    first = next(iter(found.values()))
    lines = []
    for size, run in found.items():
        growth = run.fit / first.fit * (first.rows * math.log(first.rows)) / (run.rows * math.log(run.rows))
        lines.append(
            [f"{size:,}", f"{size * FEATURES * 4 / 1e6:,.0f}", f"{run.fit:.1f}", f"{run.rows / run.fit:,.0f}"]
            + [f"{run.whole:.1f}", f"{run.processor:.1f}", f"{growth:.2f}"]
            + [f"{megabytes:,.0f}" for megabytes in (run.resident, run.anonymous, run.of_files)]
            + [f"{run.kl:.4f}"]
        )
    return lines


def main() -> None:
    """Measure, print, and write the block of the page."""
    parser = make_parser(__doc__, threads=1, block="large tables")
    parser.add_argument("--sizes", type=float, nargs="+", default=[2.5, 5, 10, 20], help="million rows")
    parser.add_argument("--heads", nargs="+", choices=list(HEADS), default=["boostedtrees", "ldlf"])
    parser.add_argument("--layout", choices=["npy", "parquet"], default="npy", help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("large_cells"), help="kept, and gone on with")
    parser.add_argument("--scratch", help="folder for tables and caches, of some 10 GB (default: that of the system)")
    options = parser.parse_args()
    text = [f"{FEATURES} features, {LABELS} labels, as {options.layout}; {options.threads} thread(s), on "
            f"{os.cpu_count()} processors."]  # fmt: skip
    store = Store(options.out)
    found: dict[str, dict[int, Measured]] = {head: {} for head in options.heads}
    for size in [SMALL, *(int(millions * 1e6) for millions in options.sizes)]:
        with tempfile.TemporaryDirectory(dir=options.scratch, prefix="large-") as place:
            for head in options.heads:
                key = {"head": head, "rows": size, "layout": options.layout, "threads": options.threads}
                if (known := store.find(key)) is None or size == SMALL:
                    if not (Path(place) / "table").exists():
                        make_table(Path(place) / "table", size, options.layout)
                    run = measure(head, Path(place) / "table", Path(place) / head, options.threads)
                    known = store.put(key, {"measured": asdict(run)})
                if size != SMALL:
                    found[head][size] = Measured(**known["measured"])
                    print(head, *tabulate({size: found[head][size]})[0], flush=True)
    for head, runs in found.items():
        rows = tabulate(runs)
        text += ["", f"`{head}`: `{' '.join(HEADS[head])}`", "", markdown(HEADER, rows)]
    print("\n".join(text))
    if options.page:
        write_block(options.page, "large tables", "\n".join(text))


if __name__ == "__main__":
    launch(main)
