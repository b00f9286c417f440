"""The adaptive variable step of Chen et al. 2018 (section 3.4) against all midpoints and against histograms.

    python benchmarks/structrf/adaptive_step.py [--seeds 20 --rows 10000] [--sets SJAFFE ... --paired 5 --folds 10]

First one search over 10,000 rows and 36 features, as in the paper's Table 20: candidates evaluated, gain as a share
of the best, milliseconds; on random numbers from a seed and on 6 x 6 pixels of MNIST digits (LDL_DATA/mnist.npz).
Then its Table 21: the difference of six measures between ``exact`` and ``adaptive`` over paired seeds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Literal

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from torch import Tensor

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import FOLDS, data_file, read_set, score_folds
from benchmarks.common.timing import seconds, take_turns
from benchmarks.structrf.tables import MEASURES
from ldl.comparison.figures import mean_and_deviation
from ldl.heads import StructRF
from ldl.methods.forest.columns import make_columns
from ldl.methods.forest.divergence import make_mass
from ldl.methods.forest.draws import stream
from ldl.methods.forest.impurity import Node, impurity, log_table
from ldl.methods.forest.ordered import ONES
from ldl.methods.forest.relabel import two_means
from ldl.methods.forest.search import ADAPTIVE, EXACT, HISTOGRAM, LAYOUTS, Rules, search
from ldl.methods.forest.unordered import WIDE

FEATURES = 36
WAYS = {
    "exact, every midpoint": (EXACT, 1),
    "exact, blocks": (EXACT, 32),
    "adaptive": (ADAPTIVE, 32),
    "histogram, 256 bins": (HISTOGRAM, 32),
}


def synthetic(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Distributions over 68 labels that depend on a few features, with noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, FEATURES))
    scores = features @ rng.normal(size=(FEATURES, 68)) * 0.3 + rng.normal(size=(rows, 68))
    target = np.exp(scores - scores.max(1, keepdims=True))
    return features.astype(np.float32), (target / target.sum(1, keepdims=True)).astype(np.float32)


def digits(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random digits, 6 x 6 means of 4 x 4 pixels, and their classes as distributions."""
    with np.load(data_file("mnist.npz")) as file:
        images, classes = file["x_train"], file["y_train"]
    chosen = np.random.default_rng(seed).choice(len(images), rows, replace=False)
    pixels = images[chosen].reshape(rows, 28, 28)[:, 2:26, 2:26].astype(np.float32)
    features = pixels.reshape(rows, 6, 4, 6, 4).mean((2, 4)).reshape(rows, FEATURES)
    return np.ascontiguousarray(features), np.eye(10, dtype=np.float32)[classes[chosen]]


def one_search(features: np.ndarray, target: np.ndarray) -> Iterator[tuple[str, int, float, float]]:
    """Each way's name, evaluations, gain in nats and milliseconds, at a root that holds every row once."""
    count, width = features.shape
    rows, ones_each = np.arange(count, dtype=np.int32), np.ones(count, np.int32)
    cluster = np.empty(count, np.uint8)
    scratch = np.empty(target.shape, np.float32)
    ones = two_means(target, rows, ones_each, rows, 0, count, scratch, cluster)
    packed = (1 | cluster.astype(np.int32) << ONES).astype(np.int32)
    counts = 1 | cluster.astype(np.int64) << WIDE
    table = log_table(count)
    whole = impurity(table, count, ones)
    mass = make_mass(target, rows, ones_each, used=False)
    for name, (kind, block) in WAYS.items():
        columns = make_columns(features, LAYOUTS[kind])
        rules = Rules(kind, 1, 2, 1, 0.0, width, 0.25, 8.0, block)
        lo, hi = columns.start[:-1].astype(np.int32), columns.start[1:].astype(np.int32)
        live = np.tile(np.arange(width, dtype=np.int32), (2, 1))
        state = stream(0, 0)
        once = partial(
            search, columns, columns.rows, columns.listed, lo, hi, live, width,
            packed, rows, counts, table, Node(count, ones, count, 1, whole), rows, mass, rules, state,
        )  # fmt: skip
        # The first call loads the machine code.
        found = once()[0]
        milliseconds = 1e3 * median(seconds(once).clock for _ in range(7))
        yield name, found.evaluations, (whole - found.impurity) / count, milliseconds


def compare_searches(options: argparse.Namespace) -> None:
    """Print the first table for both sets."""
    for name, source in (("random numbers", synthetic), ("MNIST pixels", digits)):
        figures: dict[str, list[tuple[int, float, float]]] = {way: [] for way in WAYS}
        for seed in range(options.seeds):
            for way, evaluations, gain, milliseconds in one_search(*source(options.rows, seed)):
                figures[way].append((evaluations, gain, milliseconds))
        print(f"\n{name}, {options.rows} x {FEATURES}, {options.seeds} seeds")
        print(f"{'':24}{'evaluations':>12}{'(most)':>9}{'mean gain':>11}{'(least)':>9}{'median ms':>11}")
        best = np.array([gain for _, gain, _ in figures["exact, every midpoint"]])
        for way, rows in figures.items():
            counts, gains, times = np.array(rows).T
            share = gains / best
            cells = f"{counts.mean():12.0f}{counts.max():9.0f}{share.mean():11.4f}{share.min():9.4f}"
            print(f"{way:24}{cells}{np.median(times):11.3f}", flush=True)


def fit_all(
    folds: int, features: Tensor, target: Tensor, way: Literal["exact", "adaptive"], seed: int
) -> tuple[np.ndarray, float]:
    """Means of the measures, and seconds of fitting and testing all folds."""
    head, start = StructRF(search=way, seed=seed, out_of_bag=False), time.perf_counter()
    return score_folds(head, features, target, MEASURES, folds).mean(0), time.perf_counter() - start


def compare_forests(options: argparse.Namespace) -> None:
    """Print the second table: adaptive minus exact."""
    print(
        f"\nadaptive - exact, {options.paired} paired seeds, {options.folds} folds, 50 trees, depth 20; * beyond 2 s.e."
    )
    print(f"{'':15}" + "".join(f"{measure:>22}" for measure in MEASURES) + f"{'fit s, exact':>14}{'adaptive':>10}")
    for way in ("exact", "adaptive"):
        # Loads the machine code.
        score_folds(StructRF(trees=1, search=way, out_of_bag=False), *read_set(options.sets[0]), MEASURES, 1)
    for name in options.sets:
        measured = take_turns(("adaptive", "exact"), options.paired, partial(fit_all, options.folds, *read_set(name)))
        differences = np.array([a - b for (a, _), (b, _) in zip(measured["adaptive"], measured["exact"])])
        spent = {way: sum(clock for _, clock in rounds) for way, rounds in measured.items()}
        mean, deviation = np.transpose([mean_and_deviation(column) for column in differences.T])
        error = deviation / np.sqrt(len(differences))
        cells = "".join(f"{m:+12.5f} ±{e:.5f}{'*' if abs(m) > 2 * e else ' '}".rjust(22) for m, e in zip(mean, error))
        print(f"{name:15}{cells}{spent['exact']:14.1f}{spent['adaptive']:10.1f}", flush=True)


def main() -> None:
    """Measure and print both tables."""
    parser = make_parser(__doc__)
    sets = ["SJAFFE", "SBU_3DFE", "Natural_Scene", "Movie", "Yeast_alpha"]
    parser.add_argument("--rows", type=int, default=10_000, help="rows of one search (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=20, help="sets of each kind (default: %(default)s)")
    parser.add_argument("--sets", nargs="*", default=sets, help="of the second table (default: %(default)s)")
    parser.add_argument("--paired", type=int, default=5, help="paired seeds, at least 2 (default: %(default)s)")
    parser.add_argument("--folds", type=int, default=FOLDS, help="how many of the ten (default: %(default)s)")
    options = parser.parse_args()
    compare_searches(options)
    if options.sets:
        compare_forests(options)


if __name__ == "__main__":
    launch(main)
