"""Boosted trees: losses by finite differences, splits and steps against brute force, and XGBoost as reference."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.collective import Collective
from ldl.data.tables.reading import read_table
from ldl.heads import BoostedTrees
from ldl.labels import LabelSpace
from ldl.methods.forest.binning import make_bins
from ldl.methods.forest.boosted_tree import Grower, Shape
from ldl.methods.forest.boosting import CDF, KL, LEAST_HESSIAN, derive, mean_loss
from ldl.methods.forest.flat import FlatTree
from ldl.methods.forest.histograms import LEAST, Newton
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl

ROWS, LABELS, STEP = 7, 5, 1e-5


def scored() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    target = random.dirichlet(np.full(LABELS, 0.5), ROWS)
    target[0] = np.eye(LABELS)[2]
    return (random.normal(size=(ROWS, LABELS)) * 2).astype(np.float32), target.astype(np.float32)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def losses(scores: np.ndarray, target: np.ndarray, number: int) -> np.ndarray:
    """The loss of each row, in float64."""
    p, target = softmax(scores.astype(np.float64)), target.astype(np.float64)
    if number == KL:
        return (target * np.log(np.where(target > 0, target, 1) / p)).sum(-1)
    return np.square(p.cumsum(-1) - target.cumsum(-1)).sum(-1)


@pytest.mark.parametrize("number", [KL, CDF], ids=["kl", "cdf"])
def test_derivatives_are_finite_differences(number: int) -> None:
    """Second derivatives of ``cdf`` are the diagonal of the Gauss-Newton matrix over the probability."""
    scores, target = scored()
    out = np.empty((ROWS, 2 * LABELS), np.float32)
    derive(scores, target, number, out)
    p = softmax(scores.astype(np.float64))
    for c in range(LABELS):
        up, down = (scores + by * np.eye(LABELS)[c] for by in (STEP, -STEP))
        slope = (losses(up, target, number) - losses(down, target, number)) / (2 * STEP)
        np.testing.assert_allclose(out[:, c], slope, atol=1e-5)
        steps = (softmax(up) - softmax(down)) / (2 * STEP)
        expected = steps[:, c] if number == KL else 2 * np.square(steps.cumsum(-1)).sum(-1) / p[:, c]
        np.testing.assert_allclose(out[:, LABELS + c], expected, rtol=1e-4, atol=1e-6)
    assert mean_loss(scores, target, number, np.empty(0, np.float32)) == pytest.approx(
        losses(scores, target, number).mean(), rel=1e-5
    )


@pytest.mark.parametrize("number", [KL, CDF])
def test_sure_scores_have_finite_derivatives(number: int) -> None:
    scores = np.array([[500.0, -500, 0], [-500, 500, 0]], np.float32)
    target = np.array([[0, 1, 0], [0, 1, 0]], np.float32)
    out = np.empty((2, 6), np.float32)
    derive(scores, target, number, out)
    assert np.isfinite(out).all() and (out[:, 3:] >= np.float32(LEAST_HESSIAN)).all()
    assert np.isfinite(mean_loss(scores, target, number, np.empty(0, np.float32)))


CPU = torch.device("cpu")


def score(derivatives: np.ndarray, l2: float) -> float:
    gradient, hessian = np.split(derivatives.sum(0), 2)
    return float((gradient**2 / (hessian + l2)).sum())


def gain(derivatives: np.ndarray, left: np.ndarray, rules: Newton) -> float:
    """Of rows that are all a node's; -1 where a side is too small."""
    sides = derivatives[left], derivatives[~left]
    width = derivatives.shape[1] // 2
    if any(len(side) < rules.min_leaf or side[:, width:].sum() < rules.min_hessian for side in sides):
        return -1.0
    return sum(score(side, rules.l2) for side in sides) - score(derivatives, rules.l2)


def all_gains(rows: np.ndarray, derivatives: np.ndarray, features: np.ndarray, rules: Newton) -> list[float]:
    """Of every split that there is."""
    gains = [-1.0]
    for f in features:
        missing = np.isnan(rows[:, f])
        values = np.unique(rows[~missing, f])
        cuts = [(low + high) / 2 for low, high in pairwise(values)] + [np.inf] * bool(missing.any())
        for cut in cuts:
            below = rows[:, f] <= cut
            gains += [gain(derivatives, below, rules), gain(derivatives, below | missing, rules)]
    return gains


def goes_left(tree: FlatTree, node: int, rows: np.ndarray) -> np.ndarray:
    values = rows[:, tree.feature[node]]
    return np.where(np.isnan(values), tree.missing_left[node], values <= tree.threshold[node])


def check(tree: FlatTree, rows: np.ndarray, derivatives: np.ndarray, features: np.ndarray, shape: Shape) -> int:
    """Hold a depth-wise or a leaf-wise tree against brute force; how many splits it has."""
    nodes = [(0, 0, np.arange(len(rows)))]
    leaves = int((tree.feature < 0).sum())
    left_open, taken = [0.0], [np.inf]
    for number, depth, own in nodes:
        best = max(all_gains(rows[own], derivatives[own], features, shape.newton))
        if tree.feature[number] < 0:
            gradient, hessian = np.split(derivatives[own].sum(0), 2)
            step = -shape.learning_rate * gradient / (hessian + shape.newton.l2)
            np.testing.assert_allclose(tree.values[tree.child[number]], step, rtol=2e-5, atol=1e-6)
            left_open.append(best if depth < shape.depth else 0.0)
            continue
        left = goes_left(tree, number, rows[own])
        assert tree.feature[number] in features
        assert gain(derivatives[own], left, shape.newton) == pytest.approx(best, rel=1e-4, abs=1e-5)
        assert tree.gain[number] == pytest.approx(best, rel=1e-4, abs=1e-5)
        taken.append(best)
        child = int(tree.child[number])
        nodes += [(child, depth + 1, own[left]), (child + 1, depth + 1, own[~left])]
    if shape.leaves is None or leaves < shape.leaves:
        assert max(left_open) < LEAST + 1e-5
    return len(taken) - 1


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Shape]:
    """Features with ties, missing and constant values, sparse ones; derivatives; the rows that are sampled."""
    random = np.random.default_rng(seed)
    count, width, labels = random.integers(2, 100), random.integers(1, 6), random.integers(1, 5)
    rows = random.normal(size=(count, width)).astype(np.float32)
    for f in range(width):
        kind = random.integers(4)
        if kind == 0:
            rows[:, f] = rows[:, f].round()
        elif kind == 1:
            rows[random.random(count) < 0.8, f] = 0.5
        rows[random.random(count) < random.choice([0, 0, 0.2, 0.7, 1], p=[0.3, 0.2, 0.3, 0.1, 0.1]), f] = np.nan
    hessian = random.uniform(0.05, 0.5, (count, labels))
    derivatives = np.concatenate([random.normal(size=(count, labels)), hessian], 1).astype(np.float32)
    sampled = np.sort(random.permutation(count)[: random.integers(1, count + 1)]).astype(np.int32)
    features = np.sort(random.permutation(width)[: random.integers(1, width + 1)])
    newton = Newton(float(random.choice([0.1, 1, 5])), int(random.integers(1, 3)), float(random.choice([0, 0.5])))
    leaves = None if seed % 2 else int(random.integers(2, 8))
    return rows, derivatives, sampled, features, Shape(int(random.integers(0, 5)), leaves, 0.3, newton)


def test_trees_are_those_of_brute_force() -> None:
    splits, ways = 0, np.zeros(3, int)
    for seed in range(50):
        rows, derivatives, sampled, features, shape = problem(seed)
        tree = Grower(make_bins(rows), 1, Collective(), CPU).grow(derivatives, sampled.copy(), features, shape)
        exact = derivatives[sampled].astype(np.float64)
        splits += check(tree, rows[sampled], exact, features, shape)
        inner = tree.feature >= 0
        ways += [
            np.isinf(tree.threshold[inner]).sum(),
            tree.missing_left[inner].sum(),
            (~tree.missing_left[inner]).sum(),
        ]
    assert splits > 60 and ways.min() > 0


def test_leafwise_growth_takes_the_best_gain_next() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 4)).astype(np.float32)
    derivatives = np.concatenate([random.normal(size=(300, 2)), np.ones((300, 2))], 1).astype(np.float32)
    shape = Shape(20, None, 1.0, Newton(1.0, 5, 0.0))
    grower = Grower(make_bins(rows), 1, Collective(), CPU)
    own, features = np.arange(300, dtype=np.int32), np.arange(4)
    before: list[float] = []
    for leaves in range(2, 12):
        tree = grower.grow(derivatives, own.copy(), features, shape._replace(leaves=leaves))
        gains = tree.gain[tree.feature >= 0]
        assert len(gains) == leaves - 1
        # The tree of one leaf more has the same splits and one more.
        assert set(before) <= set(gains.tolist())
        before = gains.tolist()


@pytest.mark.parametrize("cut", [False, True], ids=["best", "random"])
@pytest.mark.parametrize("sparse", [False, True])
def test_threads_give_the_same_bits(sparse: bool, cut: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldl.methods.forest.boosted_tree.WORTH_THREADS", 0)
    random = np.random.default_rng(1)
    rows = random.normal(size=(500, 13)).astype(np.float32)
    if sparse:
        rows[random.random(rows.shape) < 0.9] = 0
    derivatives = random.random((500, 6)).astype(np.float32) - np.float32(0.3)
    derivatives[:, 3:] += np.float32(0.3)
    shape = Shape(6, None, 0.1, Newton(1.0, 2, 0.0, cut))
    trees = []
    for threads in (1, 2, 20):
        grower = Grower(make_bins(rows), threads, Collective(), CPU)
        trees.append(grower.grow(derivatives, np.arange(500, dtype=np.int32), np.arange(13), shape, 5))
        grower.close()
    for tree in trees[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(trees[0], tree))


def share_of(draws: int, place: int) -> float:
    """The first number in [0, 1) of a stream's own stream, in Python's whole numbers (splitmix64)."""
    most = 2**64 - 1
    z = ((draws ^ ((place + 1) * 0xD1342543DE82EF95 & most)) + 0x9E3779B97F4A7C15) & most
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & most
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & most
    return ((z ^ (z >> 31)) >> 11) / 2**53


def test_random_thresholds_are_the_best_of_those_drawn() -> None:
    """Held against brute force, with a bin for each value, so that bins are ranks of values."""
    splits, ways = 0, np.zeros(3, int)
    for seed in range(50):
        rows, derivatives, sampled, features, shape = problem(seed)
        rules = shape.newton._replace(random=True)
        shape = Shape(shape.depth, None, shape.learning_rate, rules)
        tree = Grower(make_bins(rows), 1, Collective(), CPU).grow(derivatives, sampled.copy(), features, shape, seed)
        nodes = [(0, 0, sampled)]
        for number, depth, own in nodes:
            best = 0.0
            for f in features:
                values, all_ = rows[own, f], np.unique(rows[~np.isnan(rows[:, f]), f])
                missing, there = np.isnan(values), np.unique(values[~np.isnan(values)])
                if not len(there):
                    continue
                low, high = np.searchsorted(all_, there[[0, -1]])
                last = all_[low + int(share_of(seed, int(number * rows.shape[1] + f)) * (high - low))]
                below = values <= last
                tries = [~missing] if missing.any() else []
                tries += [below, below | missing] if low < high else []
                best = max([best, *(gain(derivatives[own].astype(np.float64), each, rules) for each in tries)])
            if tree.feature[number] < 0:
                assert best <= LEAST + 1e-5 or depth == shape.depth or len(own) < 2 * rules.min_leaf
                continue
            assert tree.gain[number] == pytest.approx(best, rel=1e-4, abs=1e-5)
            left, values = goes_left(tree, number, rows[own]), rows[own, tree.feature[number]]
            assert gain(derivatives[own].astype(np.float64), left, rules) == pytest.approx(best, rel=1e-4, abs=1e-5)
            missing = np.isnan(values)
            if np.isfinite(tree.threshold[number]):
                middle = (values[left & ~missing].max() + values[~left & ~missing].min()) / 2
                assert tree.threshold[number] == pytest.approx(middle, rel=1e-5)
            if not missing.any():
                assert bool(tree.missing_left[number]) == (2 * left.sum() >= len(own))
            ways += [np.isinf(tree.threshold[number]), missing.any() and tree.missing_left[number], missing.any()]
            splits += 1
            child = int(tree.child[number])
            nodes += [(child, depth + 1, own[left]), (child + 1, depth + 1, own[~left])]
    assert splits > 45 and ways.min() > 0


@pytest.mark.parametrize("threads", [1, 3])
def test_random_thresholds_of_what_rows_list_are_those_of_all_codes(threads: int) -> None:
    """Sparse features, some of which mostly miss values, beside others: the sparse ones read both ways."""
    random = np.random.default_rng(5)
    rows = random.normal(size=(400, 24)).astype(np.float32)
    rows[:, 6:] = np.where(random.random((400, 18)) < 0.9, np.float32(0.2), np.round(rows[:, 6:], 1))
    rows[:, 18:] = np.where(rows[:, 18:] == np.float32(0.2), np.nan, rows[:, 18:])
    rows[:, 12:18] = np.where(random.random((400, 6)) < 0.04, np.nan, rows[:, 12:18])
    derivatives = np.concatenate([random.normal(size=(400, 3)), random.random((400, 3))], 1).astype(np.float32)
    listed = make_bins(rows)
    assert (listed.default[6:] >= 0).all() and (listed.default[:6] < 0).all()
    every = listed._replace(default=np.full(24, -1, np.int32))
    shape = Shape(6, None, 0.3, Newton(1.0, 2, 0.1, random=True))
    splits = 0
    for draws in range(10):
        features = np.sort(random.permutation(24)[:16])
        own = np.sort(random.permutation(400)[:300]).astype(np.int32)
        trees = [
            Grower(bins, threads, Collective(), CPU).grow(derivatives, own.copy(), features, shape, draws)
            for bins in (listed, every)
        ]
        for name in ("feature", "threshold", "missing_left", "child"):
            np.testing.assert_array_equal(getattr(trees[0], name), getattr(trees[1], name))
        np.testing.assert_allclose(trees[0].gain, trees[1].gain, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(trees[0].values, trees[1].values, rtol=1e-5)
        splits += np.isin(trees[0].feature, np.arange(6, 24)).sum()
    assert splits > 30


ROUNDS, DEPTH, ETA, LAMBDA = 50, 4, 0.2, 3.0


def test_equals_xgboost_on_repeated_rows(ldl_data: Path) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    table = read_table(ldl_data / "ldl/SJAFFE.mat")
    # With a bin for each value the bins are the same.
    features = np.stack([np.digitize(x, np.quantile(x, np.arange(1, 32) / 32)) for x in table.features[:, :12].T], 1)
    features, target = features.astype(np.float32), table.target.astype(np.float32)
    count, labels = target.shape
    row, label = np.nonzero(target)
    start = np.log(target.mean(0, dtype=np.float64)).astype(np.float32)
    margin = np.tile(start, (count, 1))
    repeated = xgboost.DMatrix(features[row], label, weight=target[row, label], base_margin=margin[row])
    rules = {"objective": "multi:softprob", "num_class": labels, "tree_method": "hist", "nthread": 1}
    rules |= {"eta": ETA, "max_depth": DEPTH, "lambda": LAMBDA, "min_child_weight": 0}
    expected = xgboost.train(rules, repeated, ROUNDS).predict(xgboost.DMatrix(features, base_margin=margin))
    head = BoostedTrees(
        rounds=ROUNDS, depth=DEPTH, learning_rate=ETA / 2, l2=LAMBDA / 2, trees="label", min_leaf=1, sampling=1.0,
        features=1.0, search="histogram", patience=None, threads=1,
    )  # fmt: skip
    head.build(features.shape[1], LabelSpace.nominal([str(c) for c in range(labels)]))
    rows, distributions = torch.from_numpy(features), torch.from_numpy(target)
    head.fit(Rows(rows, distributions), Collective())
    found = head(rows)
    mine, its = (float(kl(each, distributions).mean()) for each in (found, torch.from_numpy(expected)))
    assert mine == pytest.approx(its, abs=1e-5)
    assert float(kl(found, torch.from_numpy(expected)).mean()) < 1e-5
