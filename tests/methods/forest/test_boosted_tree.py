"""Boosted trees: splits and steps against brute force, and XGBoost as reference."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes.boosting_reference import gain, goes_left, problem

from ldl.collective import Collective
from ldl.data.tables.reading import read_table
from ldl.heads import BoostedTrees
from ldl.labels import LabelSpace
from ldl.methods.forest.binning import make_bins
from ldl.methods.forest.boosted_tree import Grower, Shape
from ldl.methods.forest.flat import FlatTree
from ldl.methods.forest.histograms import LEAST_GAIN, Newton
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl

CPU = torch.device("cpu")


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
        assert max(left_open) < LEAST_GAIN + 1e-5
    return len(taken) - 1


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
    monkeypatch.setattr("ldl.methods.forest.boosted_tree.ADDITIONS_WORTH_THREADS", 0)
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
