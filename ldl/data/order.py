"""The order audit: whether rows that are alike stand near each other in a file, as they do where it runs by person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

WIDTHS = (1, 5, 25)
"""How many rows apart is near.

Only those that are near by chance for a quarter at most are asked for, and where all pairs together could tell.
"""
LEVEL = 1e-4
"""Of the test, over all widths together: an audit that speaks up in vain is soon not heard."""
EXCESS = 1.5
"""Features must bring rows so many times nearer than labels do, or the file is only sorted by label."""
MANY = 0.2
"""Of the pairs above chance: less is a few rows."""
WORK = 3 * 10**9
"""Multiplications; of greater tables a random share of the rows is asked, 200 at least, against all others."""
LEAST_ASKED = 200
HELD = 2**25
"""Distances that are held at a time."""


@dataclass(frozen=True)
class Nearness:
    """Of one width: the share of pairs of nearest rows that lie within it, by features and by labels, and by chance.

    ``p`` is the probability of as many pairs by chance, in features.
    """

    width: int
    features: float
    labels: float
    chance: float
    p: float


@dataclass(frozen=True)
class OrderAudit:
    """What :func:`audit_order` found: the table's ``rows``, how many were ``asked``, and every width's nearness."""

    rows: int
    asked: int
    found: tuple[Nearness, ...]

    @property
    def best(self) -> Nearness | None:
        """The width that tells most; None of a table too short for any, or whose rows are all alike."""
        return min(self.found, key=lambda near: (near.p, -near.features / near.chance), default=None)

    @property
    def ordered(self) -> bool:
        """Whether rows that are alike stand nearer than chance puts them."""
        return self.best is not None and self.best.p * len(self.found) < LEVEL

    @property
    def grouped(self) -> bool:
        """Whether rows look grouped: ordered, by features clearly more than by labels."""
        return any(near.p * len(self.found) < LEVEL and near.features > EXCESS * near.labels for near in self.found)

    @property
    def evidence(self) -> str:
        """One line with the figures of the width that tells most."""
        if (near := self.best) is None:
            return f"{self.rows} rows are too few, or too alike, to tell anything from their order"
        return (
            f"the nearest row in features lies within {near.width} row{'s' * (near.width > 1)} in the file for "
            f"{near.features:.1%} of the pairs, {near.chance:.1%} by chance"
        )

    @property
    def verdict(self) -> str:
        """One line for anyone: whether rows look grouped, with the evidence, or that there are too few."""
        if self.best is None:
            return self.evidence
        if self.grouped:
            share = max(near.features - near.chance for near in self.found)
            return f"{'rows' if share >= MANY else 'a few rows'} look grouped: {self.evidence}"
        return f"rows look {'sorted by label' if self.ordered else 'to be in random order'}: {self.evidence}"

    @property
    def warning(self) -> str | None:
        """What a run says of a table whose groups nobody knows; None where there is nothing to say."""
        hint = "give --data.group_key, the name of what they share, such as persons"
        return f"{self.verdict}; {hint}" if self.grouped else None

    def as_dict(self) -> dict[str, Any]:
        """For ``results.json``."""
        found = [{**near.__dict__} for near in self.found]
        return {"rows": self.rows, "asked": self.asked, "grouped": self.grouped, "nearness": found}


def audit_order(features: np.ndarray, labels: np.ndarray, seed: int = 0) -> OrderAudit:
    """Measure whether nearest rows stand near each other in the file, against a random order of the rows.

    Rows ``i`` and ``j`` make a pair where ``j`` is the nearest row to ``i`` in standardised features, rows equal to
    ``i`` left out. In a random order each pair lies within ``w`` rows with probability ``(2 w N - w (w + 1)) / (N (N -
    1))``; pairs hardly depend on each other, so that their number is held against the binomial distribution. The same
    share by labels tells a file that is sorted by label from one that is grouped.

    Args:
        features: (N, F), finite, or NaN, which counts as the mean of its column.
        labels: (N, C) distributions, or (N, 1) values.
        seed: Of the rows that are asked in a great table, and of the choice among equally near rows.
    """
    size, features = len(features), _filled(features)
    rng = np.random.default_rng(seed)
    asked = min(size, max(LEAST_ASKED, WORK // max(1, features.size)))
    queries = np.sort(rng.choice(size, asked, replace=False))
    order = rng.permutation(size)
    by_features = _gaps(queries, nearest(features, queries, order))
    by_labels = _gaps(queries, nearest(labels, queries, order, equal=True))
    found = []
    for width in WIDTHS:
        chance = (2 * width * size - width * (width + 1)) / (size * max(1, size - 1))
        if 0 < chance <= 0.25 and chance ** len(by_features) * len(WIDTHS) < LEVEL:
            count = int((by_features <= width).sum())
            p = float(binom.sf(count - 1, len(by_features), chance))
            near = float((by_labels <= width).mean()) if len(by_labels) else 0.0
            found.append(Nearness(width, count / len(by_features), near, chance, p))
    return OrderAudit(size, asked, tuple(found))


def nearest(features: np.ndarray, queries: np.ndarray, order: np.ndarray, equal: bool = False) -> np.ndarray:
    """The nearest other row to each of some rows in standardised features, (n,) int64; -1 where there is none.

    Args:
        features: (N, F), finite; constant columns are left out.
        queries: (n,) rows.
        order: (N,) all rows; of several that are equally near the first here is taken.
        equal: Whether rows equal to the query count; they have distance 0 and tell nothing but that they are there.
    """
    rows = standardised(features).astype(np.float32)
    same = row_ids(features) if not equal else np.arange(len(features))
    there, squares = rows[order], (rows[order] ** 2).sum(1)
    found = np.full(len(queries), -1)
    step = max(1, min(256, HELD // len(rows)))
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        distance = squares - 2 * rows[part] @ there.T
        distance[same[part][:, None] == same[order]] = np.inf
        first = distance.argmin(1)
        found[start : start + step] = np.where(np.isinf(distance.min(1)), -1, order[first])
    return found


def standardised(features: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and deviation 1, float64; constant columns are left out."""
    columns = features[:, (features != features[:1]).any(0)]
    centred = columns - columns.mean(0)
    # First to a range of 1: squares of numbers like 1e-200 vanish.
    centred /= np.maximum(np.abs(centred).max(0, initial=0), np.finfo(float).tiny)
    return np.asarray(centred / np.maximum(centred.std(0), np.finfo(float).tiny))


def _filled(features: np.ndarray) -> np.ndarray:
    """The features with the mean of what is known of a column, or 0, in place of NaN."""
    known = ~np.isnan(features)
    if known.all():
        return features
    mean = np.where(known, features, 0).sum(0) / np.maximum(known.sum(0), 1)
    return np.where(known, features, mean)


def row_ids(features: np.ndarray) -> np.ndarray:
    """A number for every row, (N,) int64, the same for rows that are equal."""
    # -0.0 + 0.0 is 0.0.
    rows = np.ascontiguousarray(features) + 0.0
    whole = rows.view(np.dtype((np.void, rows[0].nbytes)))
    return np.unique(whole, return_inverse=True)[1].reshape(-1)


def _gaps(queries: np.ndarray, found: np.ndarray) -> np.ndarray:
    """How far apart in the file the pairs are; two rows that name each other are one pair."""
    there = found >= 0
    pairs = np.sort(np.stack([queries[there], found[there]], 1), 1)
    pairs = np.unique(pairs, axis=0)
    return np.asarray(pairs[:, 1] - pairs[:, 0])
