"""Heads beside the implementations of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.speed_cases import OURS, Works, case, fitted, table
from ldl.collective import Collective
from ldl.labels import LabelSpace


@case
def structrf() -> Works:
    """Fit 20 trees of StructRF, scikit-learn's random forest and extra trees, with all features at every node."""
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    from ldl.heads import StructRF

    features, target = table(6000, 36, 18)
    options: dict[str, Any] = {"n_estimators": 20, "max_depth": 20, "max_features": 1.0, "n_jobs": 2, "random_state": 0}
    make = partial(StructRF, trees=20, depth=20, min_leaf=1, out_of_bag=False, seed=0)
    return {
        OURS: lambda: fitted(make(), features, target),
        "ldl, histograms": lambda: fitted(make(search="histogram"), features, target),
        "random forest": lambda: RandomForestRegressor(max_samples=0.8, **options).fit(features, target),
        "extra trees": lambda: ExtraTreesRegressor(**options).fit(features, target),
    }


@case
def structrf_one_row() -> Works:
    """Predict 200 single rows with 20 fitted trees."""
    from sklearn.ensemble import RandomForestRegressor

    from ldl.heads import StructRF

    features, target = table(2000, 36, 18)
    ours = fitted(StructRF(trees=20, depth=20, out_of_bag=False, seed=0), features, target)
    theirs = RandomForestRegressor(20, max_depth=20, random_state=0).fit(features, target)
    rows = [features[row : row + 1] for row in range(200)]
    return {
        OURS: lambda: [ours(row) for row in rows],
        "random forest": lambda: [theirs.predict(row.numpy()) for row in rows],
    }


@case
def boosted() -> Works:
    """Boost 20 rounds of depth 6. XGBoost learns distributions from rows that are repeated once per label."""
    from ldl.heads import BoostedTrees

    features, target = table(6000, 24, 6)
    make = partial(
        BoostedTrees, rounds=20, learning_rate=0.3, depth=6, l2=0.5, min_leaf=1, sampling=1.0, features=1.0, bins=255,
        patience=None, seed=0,
    )  # fmt: skip
    works: Works = {
        OURS: lambda: fitted(make(trees="vector"), features, target),
        "ldl, one tree per label": lambda: fitted(make(trees="label", learning_rate=0.15), features, target),
    }
    try:
        import xgboost
    except ImportError:
        return works
    options = {"objective": "multi:softprob", "num_class": 6, "tree_method": "hist", "max_depth": 6, "eta": 0.3,
               "min_child_weight": 0.0, "nthread": 2}  # fmt: skip
    repeated, label = features.numpy().repeat(6, axis=0), np.tile(np.arange(6), len(features))

    def boost() -> object:
        data = xgboost.QuantileDMatrix(repeated, label, weight=target.numpy().ravel(), nthread=2)
        return xgboost.train(options, data, 20, verbose_eval=False)

    return {**works, "XGBoost": boost}


@case
def boosted_random() -> Works:
    """Boost 5 rounds of random thresholds, depth 10, on 100,000 rows of 30 features, on one thread."""
    from ldl.heads import BoostedTrees

    features, target = table(100_000, 30, 6)
    return {OURS: lambda: fitted(BoostedTrees(rounds=5, depth=10, patience=None, seed=0), features, target, threads=1)}


@case
def boosted_mixed() -> Works:
    """Boost 200 rounds at each depth on 2,000 rows of numbers, categories and missing values with shares of votes."""
    from ldl.heads import BoostedTrees

    features, target = table(2000, 20, 5)
    rng = np.random.default_rng(1)
    features[:, 14:] = (2 * features[:, 14:]).round().clamp(-2, 2)
    features[:, :4][torch.from_numpy(rng.random((2000, 4)) < 0.1)] = torch.nan
    votes = torch.from_numpy(rng.multinomial(rng.integers(5, 30, 2000), target.double() / target.double().sum(1, True)))
    shares = (votes / votes.sum(1, keepdim=True)).float()
    return {OURS: lambda: fitted(BoostedTrees(rounds=200, seed=0), features, shares)}


@case
def ldlf() -> Works:
    """Take 30 training steps of LDLF and of Softmax on features, batch 256, with one leaf update."""
    from ldl.heads import LDLF, Softmax

    features, target = table(256, 512, 101)

    def train(head: Any) -> None:
        torch.manual_seed(0)
        head.build(512, LabelSpace.ordinal(range(101)))
        optimizer = torch.optim.SGD(head.parameters(), 0.1)
        for _ in range(30):
            losses = head.loss(features, target)
            optimizer.zero_grad()
            losses["loss"].backward()
            optimizer.step()
            if "memory" in losses:
                head.observe(losses["memory"], target)
        if hasattr(head, "update"):
            head.update(Collective())

    return {OURS: lambda: train(LDLF(trees=5, depth=7, outputs=64, batches=30)), "softmax": lambda: train(Softmax())}


@case
def sparse_table() -> Works:
    """Take 10 training steps of the network ``Tabular`` on 256 rows of 2,000 features, 1% of which are not 0."""
    from ldl.backbones import Tabular

    rows = torch.from_numpy((np.random.default_rng(0).random((256, 2000)) < 0.01).astype(np.float32))
    backbone = Tabular()
    backbone.build((2000,))
    backbone.train()

    def learn(features: Callable[[torch.Tensor], torch.Tensor]) -> None:
        for _ in range(10):
            features(rows).square().mean().backward()

    return {OURS: lambda: learn(backbone), "all entries": lambda: learn(backbone.network)}


@case
def maxent() -> Works:
    """Fit MaxEnt with its penalty chosen; softmax regression of scikit-learn on repeated rows fits one penalty."""
    from sklearn.linear_model import LogisticRegression

    from ldl.heads import MaxEnt

    features, target = table(2000, 50, 6)
    rows, label = features.numpy().repeat(6, axis=0), np.tile(np.arange(6), len(features))
    model = LogisticRegression(max_iter=600, tol=1e-4)
    return {
        OURS: lambda: fitted(MaxEnt(), features, target),
        "logistic regression, 25 fits": lambda: [model.fit(rows, label, target.numpy().ravel()) for _ in range(25)],
    }


@case
def cost_sensitive_forest() -> Works:
    """Grow 10 trees of the cost-sensitive forest on 4,000 x 256 features, and scikit-learn's random forest."""
    from sklearn.ensemble import RandomForestRegressor

    from ldl.heads import CostSensitiveForest

    features, _ = table(4000, 256, 1)
    values = (30 + 25 * torch.tanh(features[:, :20].sum(1) / 4)).round().double()
    target = LabelSpace.ordinal(range(70)).encode(values, 2.0)
    make = partial(CostSensitiveForest, trees=10, depth=10, min_samples=5, sets=5, seed=0)
    baseline = RandomForestRegressor(10, max_depth=10, min_samples_split=5, max_features=None, n_jobs=2, random_state=0)
    return {
        OURS: lambda: fitted(make(), features, target, values),
        "random forest": lambda: baseline.fit(features, values),
    }


@case
def dsna() -> Works:
    """Solve 32 queries of DSNA with 300 members each: working sets, and ADMM on all members."""
    from ldl.methods.dsna.admm import solve
    from ldl.methods.dsna.sparse import approximate

    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.normal(size=(32, 300, 250)) * np.geomspace(1, 0.02, 250))
    points /= points.square().sum(2).mean().sqrt()
    share, anchors = (torch.from_numpy(rng.dirichlet(np.full(300, 0.05), 32)) for _ in range(2))
    query = (share[:, None] @ points)[:, 0] + 0.5 * points[:, 0]
    none = torch.zeros_like(anchors)
    return {
        OURS: lambda: approximate(points, query, anchors, 0.05, 0.5, tolerance=1e-4),
        "all members": lambda: solve(points, query, anchors, anchors, none, 0.05, 0.5, False, 1e-4, 20_000),
    }


@case
def mslp() -> Works:
    """Fit MSLP on 4,000 x 36 features with 68 labels."""
    from ldl.heads import MSLP

    features, target = table(4000, 36, 68)
    return {OURS: lambda: fitted(MSLP(), features, target)}


@case
def milboost() -> Works:
    """Boost 64 stumps on 2,000 bags of one instance with 500 features; AdaBoost of scikit-learn."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    from ldl.bags import MILBoost
    from ldl.methods.rows import Rows

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 1, 500)).astype(np.float32)
    label = (rows[:, 0, :5].sum(1) > 0).astype(int)
    baseline = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=64, random_state=0)

    def boost() -> object:
        head = MILBoost(rounds=64, real=True, threads=1, seed=0)
        head.build(500, LabelSpace.nominal(["negative", "positive"]))
        return head.fit(Rows(torch.from_numpy(rows), torch.eye(2)[torch.from_numpy(label)]), Collective())

    return {OURS: boost, "AdaBoost": lambda: baseline.fit(rows[:, 0], label)}


@case
def structured_edges() -> Works:
    """Find the edges of one random image of 481 x 321 with 8 trees that are grown to few patches."""
    from ldl.edges import BSDS500, StructuredEdges
    from ldl.edges.structured.channels import PATCH
    from ldl.edges.structured.patches import make_scene

    rng = np.random.default_rng(0)
    data = BSDS500(crop=PATCH)
    data.setup()
    read = (data.read(row) for row in data.split.train[:8])
    scenes = [
        make_scene(image, truth.boundaries, truth.segments) for image, truth in read if truth.segments is not None
    ]
    head = StructuredEdges(patches=2000, seed=0)
    head.build(3, data.labels)
    head.fit_scenes(scenes, Collective())
    image = torch.from_numpy(rng.integers(0, 256, (1, 3, 321, 481), dtype=np.uint8))
    return {OURS: lambda: head.forward(image)}
