"""Splits by divergence against all midpoints."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import grown_trees
from fakes.grown_trees import RULES, plant, problem

from ldl.methods.forest import grower
from ldl.methods.forest.grower import (
    EXACT,
    HISTOGRAM,
    LOG_LOSS,
    RANDOM,
    Tree,
)
from ldl.methods.forest.sampling import bootstrap, stream
from ldl.methods.numba_kernels import next_share

NEAR = 1e-6
"""Float32 distributions sum to 1 but for so much, which decides between splits that are as good."""


LOSS = RULES._replace(criterion=LOG_LOSS)


def divergence(d: np.ndarray) -> float:
    """Sum over rows of KL(row || mean of the rows), straight from its definition."""
    mean = np.broadcast_to(d.mean(0), d.shape)
    held = d > 0
    return float((d[held] * np.log(d[held] / mean[held])).sum())


def drop(x: np.ndarray, d: np.ndarray, threshold: float) -> float:
    left = x <= threshold
    return divergence(d) - divergence(d[left]) - divergence(d[~left])


def nodes(tree: Tree, x: np.ndarray, drawn: np.ndarray) -> list[tuple[int, np.ndarray, int]]:
    """Each node, its drawn rows and its depth, from the root down."""
    found, waiting = [], [(0, drawn, 0)]
    while waiting:
        node, rows, depth = waiting.pop(0)
        found.append((node, rows, depth))
        if tree.feature[node] >= 0:
            left = x[rows, tree.feature[node]] <= tree.threshold[node]
            waiting += [(tree.child[node], rows[left], depth + 1), (tree.child[node] + 1, rows[~left], depth + 1)]
    return found


@pytest.mark.parametrize("search", [EXACT, HISTOGRAM])
def test_every_split_is_the_best_and_first_of_all_midpoints(search: int) -> None:
    splits = leaves = 0
    for seed in range(20):
        x, d32 = problem(seed)
        d = d32 / d32.sum(1, keepdims=True, dtype=np.float64)
        rng = np.random.default_rng([seed, 7])
        depth, min_samples, min_leaf = (int(n) for n in rng.integers((1, 1, 1), (9, 6, 4)))
        rules = LOSS._replace(search=search, depth=depth, min_samples=min_samples, min_leaf=min_leaf)
        tree = plant(x, d32, rules, seed=seed)
        drawn = np.repeat(*bootstrap(len(x), 0.8, True, seed, 0))
        gains = np.zeros(x.shape[1])
        for node, rows, level in nodes(tree, x, drawn):
            tried = candidates(x[rows], d[rows], min_leaf)
            best = max((gain for _, _, gain in tried), default=0.0)
            near = NEAR * len(rows)
            if tree.feature[node] < 0:
                leaves += 1
                assert level == depth or len(rows) < max(min_samples, 2 * min_leaf) or best <= near, (seed, node)
                continue
            splits += 1
            feature, threshold = tree.feature[node], float(tree.threshold[node])
            mine = drop(x[rows, feature], d[rows], threshold)
            gains[feature] += mine
            assert mine >= best - near, (seed, node)
            # Of equal gains the first stays; those that are nearly equal may stand in any order.
            first = next(pair[:2] for pair in tried if pair[2] >= best - near)
            assert (feature, threshold) >= (first[0], first[1] - 1e-6), (seed, node)
            assert any(f == feature and abs(t - threshold) < 1e-6 for f, t, _ in tried), (seed, node)
        assert tree.gain == pytest.approx(gains, abs=1e-4)
    assert splits > 60 and leaves > 60


def candidates(x: np.ndarray, d: np.ndarray, min_leaf: int) -> list[tuple[int, float, float]]:
    """Feature, midpoint and gain of every split that leaves enough rows on both sides."""
    found = []
    for f in range(x.shape[1]):
        values = np.unique(x[:, f]).astype(np.float64)
        for t in (values[:-1] + values[1:]) / 2:
            count = int((x[:, f] <= t).sum())
            if min(count, len(x) - count) >= min_leaf:
                found.append((f, float(np.float32(t)), drop(x[:, f], d, t)))
    return found


def test_blocks_pass_over_splits_and_lose_none() -> None:
    """Enough rows for long blocks; the best of all midpoints is computed at once for all of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 5)).astype(np.float32)
    scores = 1.5 * np.sin(2 * x[:, :1]) * rng.normal(size=4) + x[:, 1:2] * rng.normal(size=4)
    d = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    tree = plant(x, d.astype(np.float32), LOSS._replace(depth=1))
    drawn = np.repeat(*bootstrap(3000, 0.8, True, 0, 0))
    best = []
    for f in range(5):
        order = drawn[np.argsort(x[drawn, f], kind="stable")]
        left, count = np.cumsum(d[order], 0), np.arange(1, len(order) + 1)
        right = left[-1] - left
        halves = [n * np.log(np.maximum(n, 1)) - (s * np.log(np.maximum(s, 1e-300))).sum(1)
                  for n, s in ((count, left), (count[::-1] - 1, np.maximum(right, 0)))]  # fmt: skip
        changes = x[order[:-1], f] < x[order[1:], f]
        best.append(np.where(changes, sum(halves)[:-1], np.inf).min())
    whole = divergence(d[drawn]) - (d[drawn] * np.log(d[drawn])).sum()
    assert tree.feature[0] == np.argmin(best)
    assert tree.gain.sum() == pytest.approx(whole - min(best), rel=1e-6)
    assert tree.evaluations < 0.4 * 5 * len(np.unique(drawn))


def test_a_random_split_is_the_best_of_one_threshold_a_feature() -> None:
    """The same random numbers again, for the root of each tree."""
    split = 0
    for seed in range(30):
        x, d32 = problem(seed)
        tree = plant(x, d32, LOSS._replace(search=RANDOM, depth=1, min_leaf=2), seed=seed)
        rows, weights = bootstrap(len(x), 0.8, True, seed, 0)
        drawn, state, tried = np.repeat(rows, weights), stream(seed, 0), []
        d = d32.astype(np.float64)
        for f in range(x.shape[1]):
            low, high = x[drawn, f].min(), x[drawn, f].max()
            share = next_share(state)
            threshold = min(np.float32(low + share * (np.float64(high) - np.float64(low))), high)
            left = int((x[drawn, f] <= threshold).sum())
            if min(left, len(drawn) - left) >= 2:
                tried.append((drop(x[drawn, f], d[drawn], threshold), f, threshold))
        best = max(tried, default=(0.0, -1, 0.0))
        if tree.feature[0] < 0:
            assert best[0] <= NEAR * len(drawn) or len(drawn) < 4, seed
            continue
        split += 1
        mine = drop(x[drawn, tree.feature[0]], d[drawn], tree.threshold[0])
        assert mine == pytest.approx(best[0], abs=NEAR * len(drawn)), seed
        assert tree.gain.sum() == pytest.approx(mine, abs=1e-4)
    assert split > 15


def test_no_place_is_read_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Python, which refuses what machine code does not."""
    for module in (grown_trees, grower):
        for name, function in vars(module).copy().items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    tree = plant(np.zeros((20, 1), np.float32), np.eye(2, dtype=np.float32)[[0, 1] * 10], LOSS)
    assert tree.feature.tolist() == [-1]
