"""Row-order check: whether similar rows stand near each other in a file, as in a file that is sorted by subject."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

WIDTHS = (1, 5, 25)
"""Distances in rows that count as near.

A width is tested only if chance puts at most a quarter of the pairs within it, and if all pairs together could be
significant.
"""
SIGNIFICANCE_LEVEL = 1e-4
"""Significance level over all widths together: users ignore a check that often raises false alarms."""
GROUPED_RATIO = 1.5
"""A file is grouped if pairs by features are near this many times as often as pairs by labels; else it is sorted."""
MANY_ROWS_SHARE = 0.2
"""Share of pairs above chance from which on "rows" look grouped instead of "a few rows"."""
MAX_MULTIPLICATIONS = 3 * 10**9
"""Largest number of multiplications; of larger tables a random sample of rows is compared with all rows."""
MIN_QUERIES = 200
"""Smallest sample of rows."""
DISTANCES_IN_MEMORY = 2**25
"""Number of distances in memory at a time."""


@dataclass(frozen=True)
class Nearness:
    """Share of pairs of nearest rows within one width, by features, by labels and by chance.

    ``p`` is the probability of at least as many pairs by chance, by features.
    """

    width: int
    features: float
    labels: float
    chance: float
    p: float


@dataclass(frozen=True)
class OrderAudit:
    """Result of :func:`audit_order`: the table's ``rows``, the number ``asked``, and the nearness at every width."""

    rows: int
    asked: int
    found: tuple[Nearness, ...]

    @property
    def best(self) -> Nearness | None:
        """The most significant width; None if the table is too short or its rows are all equal."""
        return min(self.found, key=lambda near: (near.p, -near.features / near.chance), default=None)

    @property
    def ordered(self) -> bool:
        """Whether similar rows stand nearer than by chance."""
        return self.best is not None and self.best.p * len(self.found) < SIGNIFICANCE_LEVEL

    @property
    def grouped(self) -> bool:
        """Whether rows look grouped: ordered, and by features clearly more than by labels."""
        return any(
            near.p * len(self.found) < SIGNIFICANCE_LEVEL and near.features > GROUPED_RATIO * near.labels
            for near in self.found
        )

    @property
    def evidence(self) -> str:
        """One line with the numbers of the most significant width."""
        if (near := self.best) is None:
            return f"{self.rows} rows are too few, or too alike, to judge their order"
        return (
            f"the nearest row in features lies within {near.width} row{'s' * (near.width > 1)} in the file for "
            f"{near.features:.1%} of the pairs, {near.chance:.1%} by chance"
        )

    @property
    def verdict(self) -> str:
        """One line that states whether rows look grouped, with the evidence."""
        if self.best is None:
            return self.evidence
        if self.grouped:
            share = max(near.features - near.chance for near in self.found)
            return f"{'rows' if share >= MANY_ROWS_SHARE else 'a few rows'} look grouped: {self.evidence}"
        return f"rows look {'sorted by label' if self.ordered else 'to be in random order'}: {self.evidence}"

    @property
    def warning(self) -> str | None:
        """Warning for a table without known groups; None if rows do not look grouped."""
        hint = "give --data.group_key, the name of what they share, such as persons"
        return f"{self.verdict}; {hint}" if self.grouped else None

    def as_dict(self) -> dict[str, Any]:
        """Return the result for ``results.json``."""
        nearness = [asdict(near) for near in self.found]
        return {"rows": self.rows, "asked": self.asked, "grouped": self.grouped, "nearness": nearness}


def audit_order(features: np.ndarray, labels: np.ndarray, seed: int = 0) -> OrderAudit:
    """Test whether nearest rows stand nearer in the file than in a random order.

    Rows ``i`` and ``j`` form a pair if ``j`` is the nearest row to ``i`` in standardised features, without rows equal
    to ``i``. In a random order a pair lies within ``w`` rows with probability ``(2 w N - w (w + 1)) / (N (N - 1))``.
    Pairs are almost independent, so their number is tested against the binomial distribution. The same share by labels
    distinguishes a file that is sorted by label from one that is grouped.

    Args:
        features: (N, F), finite, or NaN, which counts as the mean of its column.
        labels: (N, C) distributions, or (N, 1) values.
        seed: Seed of the sample of rows, and of the choice among equally near rows.
    """
    size, features = len(features), _filled(features)
    rng = np.random.default_rng(seed)
    asked = min(size, max(MIN_QUERIES, MAX_MULTIPLICATIONS // max(1, features.size)))
    queries = np.sort(rng.choice(size, asked, replace=False))
    order = rng.permutation(size)
    by_features = _gaps(queries, nearest(features, queries, order))
    by_labels = _gaps(queries, nearest(labels, queries, order, equal=True))
    nearness = []
    for width in WIDTHS:
        chance = (2 * width * size - width * (width + 1)) / (size * max(1, size - 1))
        if 0 < chance <= 0.25 and chance ** len(by_features) * len(WIDTHS) < SIGNIFICANCE_LEVEL:
            count = int((by_features <= width).sum())
            p = float(binom.sf(count - 1, len(by_features), chance))
            near = float((by_labels <= width).mean()) if len(by_labels) else 0.0
            nearness.append(Nearness(width, count / len(by_features), near, chance, p))
    return OrderAudit(size, asked, tuple(nearness))


def nearest(features: np.ndarray, queries: np.ndarray, order: np.ndarray, equal: bool = False) -> np.ndarray:
    """Return the nearest other row to each query in standardised features, (n,) int64; -1 if there is none.

    Args:
        features: (N, F), finite; constant columns are left out.
        queries: (n,) rows.
        order: (N,) all rows; among equally near rows the first in this order is taken.
        equal: Accept rows that equal the query, at distance 0.
    """
    rows = standardised(features).astype(np.float32)
    same = row_ids(features) if not equal else np.arange(len(features))
    shuffled, squares = rows[order], (rows[order] ** 2).sum(1)
    neighbours = np.full(len(queries), -1)
    step = max(1, min(256, DISTANCES_IN_MEMORY // len(rows)))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        distance = squares - 2 * rows[block] @ shuffled.T
        distance[same[block][:, None] == same[order]] = np.inf
        first = distance.argmin(1)
        neighbours[start : start + step] = np.where(np.isinf(distance.min(1)), -1, order[first])
    return neighbours


def standardised(features: np.ndarray) -> np.ndarray:
    """Return the columns with mean 0 and standard deviation 1, float64, without constant columns."""
    columns = features[:, (features != features[:1]).any(0)]
    centred = columns - columns.mean(0)
    # First to a range of 1: the squares of numbers such as 1e-200 underflow.
    centred /= np.maximum(np.abs(centred).max(0, initial=0), np.finfo(float).tiny)
    return np.asarray(centred / np.maximum(centred.std(0), np.finfo(float).tiny))


def row_ids(features: np.ndarray) -> np.ndarray:
    """Return a number for every row, (N,) int64, the same for equal rows."""
    rows = np.ascontiguousarray(features) + 0.0  # -0.0 becomes 0.0
    whole = rows.view(np.dtype((np.void, rows[0].nbytes)))
    return np.unique(whole, return_inverse=True)[1].reshape(-1)


def _filled(features: np.ndarray) -> np.ndarray:
    """Replace NaN by the mean of the column's known numbers, or by 0."""
    finite = ~np.isnan(features)
    if finite.all():
        return features
    mean = np.where(finite, features, 0).sum(0) / np.maximum(finite.sum(0), 1)
    return np.where(finite, features, mean)


def _gaps(queries: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Return the distances of the pairs in the file; two rows that are nearest to each other are one pair."""
    has_neighbour = neighbours >= 0
    pairs = np.sort(np.stack([queries[has_neighbour], neighbours[has_neighbour]], 1), 1)
    pairs = np.unique(pairs, axis=0)
    return np.asarray(pairs[:, 1] - pairs[:, 0])
