"""Splits: the best cut and the best hyperplane of patches against plain references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from ldl.edges.structured.patches import FEATURE_BINS, PatchBins
from ldl.edges.structured.splits import best_hyperplane, best_split, best_split_of_many, gain_of_cut, squared_hinge
from ldl.methods.forest.sampling import stream


def unit_bins() -> PatchBins:
    """Return one table whose bins are the integers."""
    edges, none = np.arange(FEATURE_BINS - 1, dtype=np.float32)[None], np.zeros(1, np.float32)
    return PatchBins(edges, np.arange(FEATURE_BINS, dtype=np.float32)[None], none, none, np.zeros((1, 1), np.uint8))


@pytest.mark.parametrize("balance", [None, 0.0, 1.0])
def test_the_best_split_has_the_lowest_gini_impurity(balance: float | None) -> None:
    """Two classes without costs, or several classes with costs."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 30, (6, 200), dtype=np.uint8)
    rows = np.sort(random.choice(200, 80, replace=False)).astype(np.int32)
    score = codes[2, rows] + random.integers(0, 12, 80)
    labels = (score // (28 if balance is None else 14)).astype(np.uint8)
    costs = np.maximum(np.bincount(labels, minlength=4), 1.0) ** -(balance or 0.0)

    def gini(side: np.ndarray) -> float:
        mass = np.bincount(labels[side], minlength=4) * costs
        return mass.sum() - (mass**2).sum() / mass.sum()

    impurity = {}
    for f, cut in np.ndindex(6, 30):
        left = codes[f, rows] <= cut
        if min(left.sum(), (~left).sum()) >= 5:
            impurity[f, cut] = gini(left) + gini(~left)
    more = 6, 5, np.arange(6), stream(0, 0)
    if balance is None:
        f, cut = best_split(codes, rows, labels, int(labels.sum()), *more)
    else:
        f, cut = best_split_of_many(codes, rows, labels, costs, *more)
    assert impurity[f, cut] == pytest.approx(min(impurity.values()), rel=1e-12)


def test_no_split_where_nothing_is_gained() -> None:
    labels = np.tile(np.array([0, 1], np.uint8), 20)
    rows = np.arange(40, dtype=np.int32)
    useless = np.repeat(np.arange(20, dtype=np.uint8), 2)[None]
    assert best_split(useless, rows, labels, 20, 1, 2, np.arange(1), stream(0, 0))[0] == -1
    useful = labels[None] * np.uint8(9)
    assert best_split(useful, rows, labels, 20, 1, 20, np.arange(1), stream(0, 0)) == (0, 0)
    assert best_split(useful, rows, labels, 20, 1, 21, np.arange(1), stream(0, 0))[0] == -1
    assert best_split(useful, rows, labels * 0, 0, 1, 1, np.arange(1), stream(0, 0))[0] == -1


def test_squared_hinge_is_at_its_minimum() -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.normal(size=(200, 6)), np.ones((200, 1))], axis=1)
    y = np.where(x[:, 0] + 0.5 * x[:, 1] + random.normal(size=200) > 0.8, 1.0, -1.0)
    cost = np.where(y > 0, 3.0, 0.4)

    def objective(w: np.ndarray) -> float:
        loss = np.maximum(0, 1 - y * (x @ w)) ** 2
        return 0.1 * (w[:-1] @ w[:-1]) / 2 + (cost @ loss) / cost.sum() / 2

    fitted = minimize(objective, np.zeros(7), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(squared_hinge(x, y, cost, 0.1), fitted.x, atol=1e-4)


def test_a_class_weighs_the_odds_against_it() -> None:
    rare, random = 1, np.random.default_rng(1)
    codes = random.integers(0, 256, (5, 400), dtype=np.uint8)
    score = codes[:3].astype(float).sum(0) + random.normal(0, 60, 400)
    labels = (score > np.quantile(score, 0.9)).astype(np.uint8) ^ (rare == 0)
    ones, feature, weight = int(labels.sum()), np.empty(5, np.int32), np.empty(5, np.float32)
    weights, _ = best_hyperplane(
        codes, np.zeros(5, np.int32), unit_bins().top, np.arange(400, dtype=np.int32), labels, ones, 1, 8, 0.1, 0.0,
        np.arange(5), stream(0, 0), feature, weight,
    )  # fmt: skip
    values = unit_bins().top[0][codes[feature]].T.astype(float)
    spread = values.std(0)
    x = np.hstack([(values - values.mean(0)) / spread, np.ones((400, 1))])
    share = ones / 400
    cost = np.where(labels == 1, (1 - share) / share, share / (1 - share))
    assert weights
    np.testing.assert_allclose(
        weight, squared_hinge(x, np.where(labels == 1, 1.0, -1.0), cost, 0.1)[:-1] / spread, rtol=1e-4
    )


def test_a_hyperplane_must_gain_more_than_the_cut() -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 200, (8, 500), dtype=np.uint8)
    labels = (codes[0].astype(int) + codes[3] > 250).astype(np.uint8)
    rows, ones, cut = np.arange(500, dtype=np.int32), int(labels.sum()), 120
    gain = gain_of_cut(codes[0], cut, rows, labels, ones)
    mass = np.where(labels == 1, 0.5 / ones, 0.5 / (500 - ones))

    def entropy(side: np.ndarray) -> float:
        share = np.array([mass[side & (labels == k)].sum() for k in (0, 1)])
        part = share[share > 0] / share.sum()
        return float(-(share.sum() * part * np.log(part)).sum())

    left = codes[0] <= cut
    assert gain == pytest.approx(np.log(2) - entropy(left) - entropy(~left), rel=1e-9)

    def tried(least: float) -> tuple[bool, float, np.ndarray]:
        feature, weight = np.zeros(4, np.int32), np.zeros(4, np.float32)
        hyperplane, threshold = best_hyperplane(
            codes, np.zeros(8, np.int32), unit_bins().top, rows, labels, ones, 5, 8, 0.1, least, np.arange(8),
            stream(0, 0), feature, weight,
        )  # fmt: skip
        return hyperplane, threshold, weight @ codes[feature]

    weights, threshold, sums = tried(gain)
    assert weights
    better = sums <= threshold
    assert np.log(2) - entropy(better) - entropy(~better) > gain
    assert not tried(np.log(2))[0]
