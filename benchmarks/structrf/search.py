"""Figures 5 and 6 and Table 20 of Chen et al. 2018: one search by the adaptive variable step and by every midpoint."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from benchmarks.common.items import Claim, Statement, Work
from benchmarks.common.script import seconds
from ldl.charts.drawing import new_figure, save
from ldl.methods.forest.binning import make_columns
from ldl.methods.forest.cluster_splits import ONES, TIE, WIDE, Node, impurity, log_table, two_means
from ldl.methods.forest.divergence_splits import make_mass
from ldl.methods.forest.grower import ADAPTIVE, EXACT, LAYOUTS, GrowthRules, search
from ldl.methods.forest.sampling import stream

FEATURES, LABELS = 36, 68
"""Sizes of Human_Gene, whose rows are not available."""
ALPHA, BETA = 0.25, 8.0
EVERY, STEP = "every midpoint", "adaptive"
SEARCHES = {EVERY: (EXACT, 1), STEP: (ADAPTIVE, 32)}
"""Kind and block of each search."""
SEEDS = 10
REDUCED = 447
"""Printed number of computations of the adaptive step."""


class Found(NamedTuple):
    """Result of a search: how many gains it computed, the best gain in nats, and its feature."""

    evaluations: int
    gain: float
    feature: int


class Root:
    """A root node that holds every row once, prepared for a search."""

    def __init__(self, features: np.ndarray, target: np.ndarray, way: str) -> None:
        count, (kind, block) = len(features), SEARCHES[way]
        rows, cluster, self.table = np.arange(count, dtype=np.int32), clusters(target), log_table(count)
        ones = int(cluster.sum())
        self.node = Node(count, ones, count, 1, impurity(self.table, count, ones))
        self.columns, self.rows = make_columns(features, LAYOUTS[kind]), rows
        self.ends = self.columns.start[:-1].astype(np.int32), self.columns.start[1:].astype(np.int32)
        self.packed = (1 | cluster.astype(np.int32) << ONES).astype(np.int32), 1 | cluster.astype(np.int64) << WIDE
        self.mass = make_mass(target, rows, np.ones(count, np.int32), used=False)
        self.live, self.state = np.tile(np.arange(FEATURES, dtype=np.int32), (2, 1)), stream(0, 0)
        self.rules = GrowthRules(kind, 1, 2, 1, 0.0, FEATURES, ALPHA, BETA, block)

    def search(self, first: int = FEATURES) -> Found:
        """Find the best split by the ``first`` features."""
        columns, (packed, counts) = self.columns, self.packed
        best = search(
            columns, columns.rows, columns.listed, *self.ends, self.live, first, packed, self.rows, counts, self.table,
            self.node, self.rows, self.mass, self.rules, self.state,
        )[0]  # fmt: skip
        return Found(best.evaluations, (self.node.impurity - best.impurity) / self.node.n, best.feature)


def synthetic(work: Work, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw features and distributions over 68 labels that depend on them, with noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(300 if work.quick else 10_000, FEATURES))
    scores = features @ rng.normal(size=(FEATURES, LABELS)) * 0.3 + rng.normal(size=(len(features), LABELS))
    target = np.exp(scores - scores.max(1, keepdims=True))
    return features.astype(np.float32), (target / target.sum(1, keepdims=True)).astype(np.float32)


def clusters(target: np.ndarray) -> np.ndarray:
    """Return the cluster (0 or 1) of each row of a root that holds every row once."""
    count = len(target)
    rows, cluster = np.arange(count, dtype=np.int32), np.empty(count, np.uint8)
    two_means(target, rows, np.ones(count, np.int32), rows, 0, count, np.empty(target.shape, np.float32), cluster)
    return cluster


def gains(features: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Return the gain of every candidate, (F, N - 1), in nats. The values of a feature must differ."""

    def entropy(ones: np.ndarray, count: np.ndarray) -> np.ndarray:
        shares = np.stack([ones, count - ones]) / count
        return -(shares * np.log(np.where(shares > 0, shares, 1))).sum(0)

    count, below = len(cluster), np.arange(1, len(cluster), dtype=np.float64)
    left = cluster[np.argsort(features, axis=0)].cumsum(0)[:-1].T.astype(np.float64)
    total = np.full_like(left, cluster.sum())
    sides = below * entropy(left, below) + (count - below) * entropy(total - left, count - below)
    return entropy(total, np.full_like(total, count)) - sides / count


def walk(gains: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the candidates that Eq. 5 visits: feature, place, and the step that follows."""
    visited, most, count = [], 0.0, gains.shape[1] + 1
    for feature, row in enumerate(gains):
        place = 0
        while place < len(row):
            most = max(most, row[place])
            ratio = row[place] / most if most > TIE else 1.0
            step = max(1, int(ALPHA * count / (1 + np.exp(BETA * (ratio - 0.5)))))
            visited.append((feature, place, step))
            place += step
    return visited


def figure_5(work: Work) -> Iterator[Claim]:
    """Judge and draw where the adaptive step computes gains."""
    features, target = synthetic(work, 0)
    every = gains(features, clusters(target))
    feature, place, step = np.array(walk(every)).T
    figure, axis = new_figure(12, 3.5)
    axis.plot(every.ravel(), linewidth=0.5, label=EVERY)
    axis.plot(feature * every.shape[1] + place, every[feature, place], "o", markersize=3, label=STEP)
    axis.set(xlabel="candidate", ylabel="information gain, nats")
    axis.legend()
    save(figure, work.folder / "figure5.png")

    everything = Root(features, target, EVERY).search().evaluations
    yield Statement(
        "the existing method computes a gain at every candidate", everything > 0.999 * every.size,
        f"{everything:,} computations; neighbours of equal value have none", "360,000",
    )  # fmt: skip
    met, best = every[feature, place], np.maximum.accumulate(every[feature, place])
    near, far = step[met > 0.8 * best].mean(), step[met < 0.2 * best].mean()
    yield Statement(
        "steps are dense close to a peak and sparse where the gain is low", bool(10 * near < far),
        f"a step of {near:.0f} candidates above 80% of the best gain so far, of {far:.0f} below 20%",
    )  # fmt: skip
    peaks = every.max(1)
    lower = (met > 0.8 * peaks[feature]) & (peaks[feature] < 0.5 * peaks.max()) & (feature > peaks.argmax())
    long = step[lower].mean() if lower.any() else np.nan
    yield Statement(
        "after the global maximum the step stays long nearby lower peaks", bool(long > 5 * near),
        f"a step of {long:.0f} candidates above 80% of peaks that are less than half as high",
    )  # fmt: skip


def figure_6(work: Work) -> Iterator[Claim]:
    """Judge how many gains the adaptive step computes, and draw the number per feature of the first seed."""
    computed, candidates = [], []
    for seed in range(_seeds(work)):
        data = synthetic(work, seed)
        root = Root(*data, STEP)
        computed.append(root.search().evaluations)
        candidates.append(Root(*data, EVERY).search().evaluations)
        if seed == 0:
            until = [root.search(first).evaluations for first in range(1, FEATURES + 1)]
            figure, axis = new_figure(8, 3.5)
            axis.bar(range(FEATURES), np.diff(until, prepend=0))
            axis.set(xlabel="feature", ylabel="computations")
            save(figure, work.folder / "figure6.png")
    yield Statement(
        "random numbers: computations are reduced to some hundreds", fmean(computed) < 2 * REDUCED,
        f"{fmean(computed):.0f} of {fmean(candidates):,.0f} on average, {max(computed)} at most",
        f"{REDUCED} of 360,000",
    )  # fmt: skip


def table_20(work: Work) -> Iterator[Claim]:
    """Judge the gains that both searches find, and their times."""
    pairs = [[Root(*synthetic(work, seed), way).search() for way in SEARCHES] for seed in range(_seeds(work))]
    shares = [step.gain / every.gain for every, step in pairs]
    agree = sum(every.feature == step.feature for every, step in pairs)
    yield Statement(
        "random numbers: the best gains that they find are very close", fmean(shares) >= 0.0082 / 0.0085,
        f"{100 * fmean(shares):.1f}% of the best on average, {100 * min(shares):.1f}% at least; the same feature "
        f"{agree} times of {len(pairs)}", "0.0082 and 0.0085 nats, 96.5%",
    )  # fmt: skip
    times = {way: _milliseconds(Root(*synthetic(work, 0), way)) for way in SEARCHES}
    words = ", ".join(f"{way} {milliseconds:.2f}" for way, milliseconds in times.items())
    yield Statement(
        "random numbers: the adaptive step is about ten times as fast as computing every candidate",
        times[EVERY] > 5 * times[STEP], f"milliseconds: {words}", "25.36 and 2.34 ms", exact=False,
    )  # fmt: skip


def _milliseconds(root: Root) -> float:
    root.search()  # compiles
    return 1e3 * median(seconds(root.search).processor for _ in range(15))


def _seeds(work: Work) -> int:
    return 1 if work.quick else SEEDS
