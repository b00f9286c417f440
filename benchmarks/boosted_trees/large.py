"""BoostedTrees, or StructRF's histograms, from a map of a file: seconds and resident memory as the rows grow.

    python benchmarks/boosted_trees/large.py [--sizes 1 2 4 20] [--head BoostedTrees] [--rounds 5]

Made rows of 30 features and 5 labels, float32, in .npy files. Every size is a process of its own, which maps them,
compiles on a few rows, and fits. ``before`` is its resident memory then; ``peak`` the kernel's high-water mark, of
which ``anonymous`` is what the process holds and ``of files`` what it maps, each at its own highest; ``bytes a row``
what the fit added by the row. ``N log N`` is the processor's time of a round against the first size's, divided by the
growth of N log N.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import numbered
from benchmarks.common.timing import Seconds, seconds
from benchmarks.structrf.speed import start_of_peak, status_mb
from ldl.collective import Collective
from ldl.heads import BoostedTrees, StructRF
from ldl.reports.files import markdown

FEATURES, LABELS, BLOCK = 30, 5, 1 << 18
HEADER = ("rows", "first round, s", "a round, s", "of the processor", "N log N", "before, MB", "peak, MB", "anonymous",
          "of files", "bytes a row")  # fmt: skip


class Measured(NamedTuple):
    """The time of a fit of one round, and of every further one; MB before it, and at the highest."""

    first: Seconds
    each: Seconds
    before: float
    peak: float
    anonymous: float
    of_files: float


def make(folder: Path, rows: int) -> None:
    """Write features.npy and target.npy, block by block: scores bend with the features, and have noise."""
    random = np.random.default_rng(0)
    weights = random.normal(size=(FEATURES, LABELS)).astype(np.float32) / 4
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (rows, FEATURES))
    target = np.lib.format.open_memmap(folder / "target.npy", "w+", np.float32, (rows, LABELS))
    for first in range(0, rows, BLOCK):
        part = slice(first, min(first + BLOCK, rows))
        inputs = random.standard_normal((part.stop - first, FEATURES), np.float32)
        scores = (np.tanh(2 * inputs) + inputs * np.roll(inputs, 1, 1)) @ weights
        mass = np.exp(scores + np.float32(0.3) * random.standard_normal(scores.shape, np.float32))
        features[part], target[part] = inputs, mass / mass.sum(1, keepdims=True)


def measure(folder: Path, options: argparse.Namespace) -> Measured:
    """Fit one round, then all of them, in this process."""
    features, target = (
        torch.from_numpy(np.load(folder / name, mmap_mode="c")) for name in ("features.npy", "target.npy")
    )

    def fit(rounds: int, rows: int | None = None) -> None:
        shared: dict[str, Any] = {"depth": options.depth, "seed": 0, "threads": options.threads}
        shared |= {"search": "histogram", "sampling": options.sampling}
        if options.head == "BoostedTrees":
            head: Any = BoostedTrees(rounds=rounds, patience=None, features=1.0, min_leaf=10, **shared)
        else:
            head = StructRF(trees=rounds, min_leaf=20, **shared)
        head.build(FEATURES, numbered(LABELS))
        head.fit(features[:rows], target[:rows], Collective())

    fit(2, 300)
    before, done = start_of_peak(), Event()
    held = {name: status_mb(name) for name in ("RssAnon", "RssFile")}

    def watch() -> None:
        while not done.wait(0.05):
            for name in held:
                held[name] = max(held[name], status_mb(name))

    watcher = Thread(target=watch)
    watcher.start()
    first, whole = seconds(lambda: fit(1)), seconds(lambda: fit(options.rounds))
    done.set()
    watcher.join()
    each = Seconds(*((more - one) / max(options.rounds - 1, 1) for more, one in zip(whole, first)))
    return Measured(first, each, before, status_mb("VmHWM"), held["RssAnon"], held["RssFile"])


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, threads=2)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1, 2, 4], help="million rows (default: %(default)s)")
    parser.add_argument("--head", choices=["BoostedTrees", "StructRF"], default="BoostedTrees")
    parser.add_argument("--rounds", type=int, default=5, help="or trees (default: %(default)s)")
    parser.add_argument("--depth", type=int, default=6, help="(default: %(default)s)")
    parser.add_argument("--sampling", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--scratch", help="folder for the tables (default: that of the system)")
    return parser.parse_args()


def main() -> None:
    """Measure every size, and print the table."""
    options, rows, found = parse(), [], []
    for size in (int(millions * 1e6) for millions in options.sizes):
        with tempfile.TemporaryDirectory(dir=options.scratch, prefix="large-") as folder:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                pool.submit(make, Path(folder), size).result()
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                found.append((size, pool.submit(measure, Path(folder), options).result()))
        one, (least, base) = found[-1][1], found[0]
        growth = one.each.processor / base.each.processor * (least * math.log(least)) / (size * math.log(size))
        memory = (f"{megabytes:,.0f}" for megabytes in one[2:])
        added = f"{(one.peak - one.before) * 2**20 / size:.0f}"
        times = f"{one.first.clock:.1f}", f"{one.each.clock:.2f}", f"{one.each.processor:.2f}"
        rows.append((f"{size:,}", *times, f"{growth:.2f}", *memory, added))
        print(*rows[-1], flush=True)
    print(markdown(HEADER, rows))


if __name__ == "__main__":
    launch(main)
