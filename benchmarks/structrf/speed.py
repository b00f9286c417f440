"""Fitting and prediction of StructRF against scikit-learn's forests: time and memory.

    python benchmarks/structrf/speed.py [--sets human_gene Movie ...] [--trees 50 --depth 20 --leaf 1 5 --threads 2]

All features at every node, the same minimal leaf, medians over rounds in which the competitors take turns. Sets are
names of the .mat files under LDL_DATA/ldl, or ``human_gene``: 30,542 x 36 x 68 random numbers from a seed, the size of
the set of that name. Each competitor runs in a process of its own for the peak of memory, which is what it adds to
the process with the data loaded.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from benchmarks.common.command import launch, make_parser
from benchmarks.common.timing import seconds, take_turns

SHAPES = {"human_gene": (30542, 36, 68), "yeast": (2465, 24, 18)}
MODELS = ("StructRF", "StructRF histogram", "random forest", "extra trees")
BATCH = 10_000


def load(name: str, rows: int | None) -> tuple[np.ndarray, ...]:
    """Features (N, F) and distributions (N, C), float32."""
    if name in SHAPES:
        count, width, labels = SHAPES[name]
        rng = np.random.default_rng(0)
        features = rng.normal(size=(count, width))
        scores = features @ rng.normal(size=(width, labels)) * 0.3 + rng.normal(size=(count, labels))
        distributions = np.exp(scores - scores.max(1, keepdims=True))
    else:
        from benchmarks.common.folds import read_set

        features, distributions = (column.numpy() for column in read_set(name))
    distributions /= distributions.sum(1, keepdims=True)
    # Row by row in memory, as features come from a backbone.
    return tuple(np.ascontiguousarray(array[:rows], np.float32) for array in (features, distributions))


class Competitor:
    """One model: ``fit`` and ``predict`` on arrays."""

    def __init__(self, kind: str, options: argparse.Namespace, leaf: int, shape: tuple[int, int]) -> None:
        self.kind = kind
        if kind.startswith("StructRF"):
            from benchmarks.common.folds import numbered
            from ldl.heads import StructRF

            search: Any = "histogram" if kind.endswith("histogram") else "exact"
            self.model: Any = StructRF(
                trees=options.trees, depth=options.depth, min_leaf=leaf, search=search, out_of_bag=False,
                threads=options.threads, seed=0,
            )  # fmt: skip
            self.model.build(shape[0], numbered(shape[1]))
            return
        from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

        arguments: dict[str, Any] = {"n_estimators": options.trees, "max_depth": options.depth, "random_state": 0}
        arguments |= {"min_samples_leaf": leaf, "max_features": 1.0, "n_jobs": options.threads}
        forest = RandomForestRegressor if kind == "random forest" else ExtraTreesRegressor
        self.model = forest(**arguments, **({"max_samples": 0.8} if kind == "random forest" else {}))

    def fit(self, features: np.ndarray, target: np.ndarray) -> None:
        """Grow all trees."""
        if self.kind.startswith("StructRF"):
            import torch

            from ldl.collective import Collective

            self.model.fit(torch.from_numpy(features), torch.from_numpy(target), Collective())
        else:
            self.model.fit(features, target)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """(B, F) to (B, C)."""
        if self.kind.startswith("StructRF"):
            import torch

            return self.model(torch.from_numpy(features)).numpy()
        return self.model.predict(features)


def status_mb(entry: str) -> float:
    """An entry of /proc/self/status in MB: VmRSS is the memory in use, VmHWM its peak."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(entry)) / 1024


def start_of_peak() -> float:
    """Forget the peak so far; the memory in use, MB."""
    gc.collect()
    # Freed memory that the process still holds would hide what comes.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return status_mb("VmRSS")


def measure(kind: str, options: argparse.Namespace, name: str, leaf: int) -> dict[str, float]:
    """Seconds of one fit, one-row and batch prediction, and the memory that fitting added; in a process of its own."""
    features, target = load(name, options.rows)
    competitor = Competitor(kind, options, leaf, (features.shape[1], target.shape[1]))
    # Compilation and the first imports are paid here.
    few = np.arange(min(40, len(features)))
    competitor.fit(features[few], target[few])
    competitor.predict(features[:1])
    before = start_of_peak()
    competitor = Competitor(kind, options, leaf, (features.shape[1], target.shape[1]))
    fit = seconds(lambda: competitor.fit(features, target)).clock
    memory = status_mb("VmHWM") - before
    competitor.predict(features[:1])
    rows = (features[row : row + 1] for row in range(options.singles))
    singles = [seconds(partial(competitor.predict, row)).clock for row in rows]
    batch = np.ascontiguousarray(features[:BATCH])
    batches = [seconds(lambda: competitor.predict(batch)).clock for _ in range(3)]
    return {"fit": fit, "one row": median(singles), "batch": median(batches), "memory": memory}


def measure_apart(options: argparse.Namespace, name: str, leaf: int, kind: str, turn: int) -> dict[str, float]:
    """:func:`measure` in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, kind, options, name, leaf).result()


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["human_gene", "Movie"], help="(default: %(default)s)")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="(default: all)")
    parser.add_argument("--trees", type=int, default=50, help="(default: %(default)s)")
    parser.add_argument("--depth", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--leaf", type=int, nargs="+", default=[1, 5], help="minimal leaves (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="fits of each, in turn (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=None, help="only the first rows of each set (default: all)")
    parser.add_argument("--singles", type=int, default=50, help="one-row predictions timed (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Measure and print one table a set and leaf size."""
    options = parse()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    print(
        f"{options.trees} trees, depth {options.depth}, {options.threads} threads, medians of {options.rounds} rounds"
    )
    for name in options.sets:
        for leaf in options.leaf:
            rounds = take_turns(options.models, options.rounds, partial(measure_apart, options, name, leaf))
            features, target = load(name, options.rows)
            print(f"\n{name}, {' x '.join(map(str, (*features.shape, target.shape[1])))}, minimal leaf {leaf}")
            report({kind: {what: median(r[what] for r in runs) for what in runs[0]} for kind, runs in rounds.items()})


def report(medians: dict[str, dict[str, float]]) -> None:
    """Print the medians, and how the first model compares with each of the others."""
    print(f"{'':22}{'fit, s':>12}{'one row, ms':>14}{'batch, s':>12}{'memory, MB':>13}")
    for kind, row in medians.items():
        print(
            f"{kind:22}{row['fit']:12.2f}{1e3 * row['one row']:14.3f}{row['batch']:12.3f}{row['memory']:13.0f}",
            flush=True,
        )
    ours = medians.get("StructRF")
    bars = {"random forest": 4.0, "extra trees": 1.0}
    for kind, bar in bars.items():
        if ours is None or kind not in medians:
            continue
        ratio = {what: medians[kind][what] / max(ours[what], 1e-9) for what in ours}
        wanted = {"fit": bar, "one row": 20.0, "batch": 1.0, "memory": 1.0}
        words = [f"{what} {ratio[what]:.1f}x ({'met' if ratio[what] >= wanted[what] else 'MISSED'})" for what in wanted]
        print(f"{kind} / StructRF: {', '.join(words)}")


if __name__ == "__main__":
    launch(main)
