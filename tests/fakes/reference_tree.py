"""A slow tree in float64, written straight from Chen et al. 2018 (Algorithm 1, Eq. 1 to 3), for comparison.

Where the paper leaves a choice open it follows the rules of ``methods.forest``: how 2-means starts, what is a tie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TIE = 1e-9
NEAR = 1e-5


@dataclass
class Node:
    """A split, or a leaf with the rows that ended there."""

    rows: np.ndarray
    feature: int = -1
    threshold: float = 0.0
    left: Node | None = None
    right: Node | None = None


def grow(x: np.ndarray, d: np.ndarray, rows: np.ndarray, depth: int, min_samples: int, min_leaf: int) -> Node:
    """The tree of features (N, F) and distributions (N, C); ``rows`` are drawn rows, rising, each as often as drawn."""
    node = Node(rows)
    if len(rows) < min_samples or depth == 0 or (d[rows] == d[rows[0]]).all():
        return node
    c = two_means(d, rows)
    feature, threshold = best_split(x[rows], c, min_leaf)
    if feature < 0:
        return node
    left = x[rows, feature] < threshold
    node.feature, node.threshold = feature, threshold
    node.left = grow(x, d, rows[left], depth - 1, min_samples, min_leaf)
    node.right = grow(x, d, rows[~left], depth - 1, min_samples, min_leaf)
    return node


def two_means(d: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """0 or 1 for each drawn row, by Lloyd's iterations from the farthest row and its mirror image."""
    mean = d[rows].mean(0)
    distance = ((d[rows] - mean) ** 2).sum(1)
    far = d[rows][np.flatnonzero(distance >= distance.max() * (1 - NEAR))[0]]
    if len(np.unique(rows)) == 2:
        return (rows != rows[0]).astype(int)
    centres = [2 * mean - far, far]
    c = np.zeros(len(rows), dtype=int)
    for _ in range(20):
        to_zero, to_one = (((d[rows] - centre) ** 2).sum(1) for centre in centres)
        apart = ((centres[1] - centres[0]) ** 2).sum()
        new = (to_zero - to_one > 2 * NEAR * apart).astype(int)
        if (new == c).all():
            break
        c = new
        centres = [d[rows][c == cluster].mean(0) for cluster in (0, 1)]
    return c


def entropy(c: np.ndarray) -> float:
    shares = np.array([(c == 0).mean(), (c == 1).mean()])
    return float(-sum(p * np.log(p) for p in shares if p > 0))


def best_split(x: np.ndarray, c: np.ndarray, min_leaf: int) -> tuple[int, float]:
    """Feature and midpoint of the highest information gain; the first of equal ones; feature -1 where none gains."""
    best, feature, threshold = 0.0, -1, 0.0
    for f in range(x.shape[1]):
        values = np.unique(x[:, f])
        for t in (values[:-1] + values[1:]) / 2:
            left = x[:, f] < t
            if min(left.sum(), (~left).sum()) < min_leaf:
                continue
            gain = entropy(c) - left.mean() * entropy(c[left]) - (~left).mean() * entropy(c[~left])
            if gain > best + TIE:
                best, feature, threshold = gain, f, float(t)
    return feature, threshold
