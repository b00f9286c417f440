"""The law of row weights, for every head: a weight of 2 is the row twice, a weight of 0 is no row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from fakes.tasks import EMOTIONS, NO_YES, POSES
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import ldl.heads
from ldl.bags import Bagged, MILBoost, MPLBoost
from ldl.bags.layout import clusters, pack
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import AlternatingHead, FittedHead, Head
from ldl.heads import (
    AAKNN,
    DSNA,
    LDLF,
    MSLP,
    BoostedTrees,
    CostSensitiveForest,
    MaxEnt,
    MeanPredictor,
    Mirrored,
    Pool,
    Scaled,
    Softmax,
    StructRF,
    Trained,
)
from ldl.methods.conformal import Conformal, interval_columns
from ldl.methods.forest.sampling import bootstrap
from ldl.methods.rows import Rows
from ldl.metrics.stage import row_metrics

COUNT, WIDTH = 40, 4
BOOSTED: dict[str, Any] = {"rounds": 8, "depth": 1, "patience": None, "sampling": 1.0, "min_leaf": 1, "features": 1.0}
FITTED: dict[str, Callable[[], FittedHead]] = {
    "MeanPredictor": MeanPredictor,
    "AAKNN": lambda: AAKNN(neighbours=4),
    "MaxEnt": lambda: MaxEnt(l2=0.1, tolerance=1e-9),
    "BoostedTrees": lambda: BoostedTrees(search="histogram", **BOOSTED),
    "BoostedTrees one tree per label": lambda: BoostedTrees(
        search="histogram", trees="label", **{**BOOSTED, "depth": 1}
    ),
    "BoostedTrees that stop": lambda: BoostedTrees(
        search="histogram", seed=0, **{**BOOSTED, "rounds": 30, "patience": 2, "refit": False}
    ),
    "MILBoost": lambda: MILBoost(rounds=5),
    "MILBoost that stops": lambda: MILBoost(rounds=8, validation=0.3, patience=2, seed=0),
    "MPLBoost": lambda: MPLBoost(rounds=6, groups=2, clustered=0),
    "Mirrored": lambda: Mirrored(MaxEnt(l2=0.1, tolerance=1e-9), mirror=[1, 0, 2, 3]),
    "Scaled": lambda: Scaled(MaxEnt(l2=0.1, tolerance=1e-9), scaling="none"),
    "Scaled by moments": lambda: Scaled(MaxEnt(l2=0.1, tolerance=1e-9), scaling="standard"),
    "Trained": lambda: Trained(Softmax(), epochs=5, repeats=2, batch_size=1000, seed=0),  # without draws
    "Trained on scaled features": lambda: Trained(
        Softmax(), epochs=5, lr=0.1, batch_size=1000, seed=0, scaling="standard"
    ),
    "Trained LDLF": lambda: Trained(
        LDLF(trees=2, depth=3, batches=1, leaf_floor=0.0), epochs=3, lr=0.1, batch_size=1000, seed=0
    ),
    "Pool": lambda: Pool([MaxEnt(l2=0.1, tolerance=1e-9), AAKNN(neighbours=4)], folds=3, seed=0),
    "Pool around the mean": lambda: Pool(
        [MaxEnt(l2=0.1, tolerance=1e-9), MeanPredictor()], mean="multiplicative", folds=3, seed=0
    ),
}
"""Heads that a weight changes exactly as copies of the row do."""
LEARNED: dict[str, Callable[[], Head]] = {
    "Softmax": lambda: Softmax(hidden=[5]),
    "LDLF": lambda: LDLF(trees=2, depth=3, batches=1, leaf_smoothing=0.5),
    "LDLF forest": lambda: LDLF(trees=2, depth=3, batches=1, objective="forest"),
    "Bagged": Bagged,
}
DRAWN: dict[str, Callable[[], FittedHead]] = {
    "StructRF": lambda: StructRF(trees=600, depth=3, threads=1, out_of_bag=False),
    "StructRF without replacement": lambda: StructRF(trees=600, depth=3, threads=1, replace=False, sampling=1.0),
    "CostSensitiveForest": lambda: CostSensitiveForest(trees=300, depth=2),
}
"""Heads that draw rows, for which the law holds in expectation."""


def problem(head: Head, seed: int = 0) -> tuple[Tensor, Tensor, Any]:
    """Features, or bags of two instances, targets and labels."""
    torch.manual_seed(seed)
    labels = NO_YES if head.takes_bags else EMOTIONS
    features = 3 * torch.randn((COUNT, 2, WIDTH) if head.takes_bags else (COUNT, WIDTH))
    first = features[:, 0] if head.takes_bags else features
    target = torch.softmax(0.5 * first @ torch.randn(WIDTH, len(labels)), -1)
    return features, target, labels


def fit(head: FittedHead, features: Tensor, target: Tensor, labels: Any, **columns: Tensor | None) -> FittedHead:
    head.build(WIDTH, labels)
    head.fit(Rows(features, target, **columns), Collective())
    return head


def test_every_head_of_rows_has_its_law() -> None:
    tested = {name.split()[0] for name in (*FITTED, *LEARNED, *DRAWN)}
    assert set(ldl.heads.__all__) - tested == {"MSLP", "DSNA"}  # they take no weights


@pytest.mark.parametrize("name", FITTED)
@settings(max_examples=8, deadline=None, derandomize=True)  # gains of deeper nodes are often equal
@given(seed=st.integers(0, 2**16))
def test_weights_of_fitted_heads_are_copies_of_rows(name: str, seed: int) -> None:
    features, target, labels = problem(FITTED[name](), seed)
    weight = torch.randint(0, 4, (COUNT,))
    copies, kept = torch.arange(COUNT).repeat_interleave(weight), weight.nonzero().flatten()
    whole = weight[kept].double()
    # Copies of a row stay in one inner fold.
    weighted = fit(FITTED[name](), features[kept], target[kept], labels, weight=whole, group=kept)
    repeated = fit(FITTED[name](), features[copies], target[copies], labels, group=copies)
    torch.testing.assert_close(weighted(features), repeated(features), atol=2e-5, rtol=1e-4)
    assert weighted.summary() == pytest.approx(
        repeated.summary(), rel=1e-3, abs=1e-5
    )  # such as losses of held-out rows


@pytest.mark.parametrize(
    "name", [name for name in FITTED if "Boost" not in name and name.split()[0] not in ("AAKNN", "Pool")]
)
def test_only_proportions_of_weights_count(name: str) -> None:
    """Without options that count rows: neighbours, penalties, pseudo-counts."""
    features, target, labels = problem(FITTED[name]())
    weight = 0.1 + torch.rand(COUNT, dtype=torch.float64)
    one, other = (fit(FITTED[name](), features, target, labels, weight=scale * weight) for scale in (1.0, 7.3))
    torch.testing.assert_close(one(features), other(features), atol=2e-5, rtol=1e-4)
    plain = fit(FITTED[name](), features, target, labels)
    assert float((plain(features) - one(features)).abs().max()) > 1e-3


@pytest.mark.parametrize("name", LEARNED)
def test_weights_of_a_loss_are_copies_of_rows(name: str) -> None:
    """Loss, gradient and leaf update."""
    head = LEARNED[name]()
    features, target, labels = problem(head)
    head.build(WIDTH, labels)
    if "leaves" in dict(head.named_buffers()):
        learn_leaves(head)
    weight = torch.randint(0, 4, (COUNT,))
    copies = torch.arange(COUNT).repeat_interleave(weight)
    found = []
    for rows, targets, weights in (
        (features[copies], target[copies], None),
        (features, target, weight.float()),
        (features, target, 0.37 * weight),
    ):
        head.zero_grad()
        losses = head.eval().loss(rows, targets, weight=weights)
        losses["loss"].backward()
        gradients = [parameter.grad.clone() for parameter in head.parameters() if parameter.grad is not None]
        found.append([losses["loss"].detach(), *gradients])
        if isinstance(head, AlternatingHead) and len(found) < 3:  # smoothing counts rows
            before = head.leaves.clone()
            head.forget()
            head.observe(losses["memory"], targets if weights is None else targets * weights[:, None])
            head.update(Collective())
            found[-1].append(head.leaves.clone())
            head.leaves.copy_(before)
    torch.testing.assert_close(found[1], found[0], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(found[2], found[0][: len(found[2])], atol=1e-6, rtol=1e-4)


def test_weights_count_as_rows_against_the_shrinkage_of_a_pool() -> None:
    features, target, labels = problem(MaxEnt())
    target = 0.6 * target + 0.4 * torch.softmax(torch.randn(COUNT, len(labels)), -1)
    found = []
    for shrinkage, weight in ((10.0, None), (40.0, 4 * torch.ones(COUNT)), (40.0, None)):
        head = Pool([MaxEnt(l2=0.1, tolerance=1e-9), MeanPredictor()], folds=3, seed=0, shrinkage=shrinkage)
        found.append(fit(head, features, target, labels, weight=weight).weights)
    torch.testing.assert_close(found[1], found[0])
    assert float((found[2] - found[0]).abs().max()) > 1e-3


def test_weights_count_in_the_choice_of_a_penalty() -> None:
    """Rows of noise want a strong penalty, rows of a model a weak one."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, WIDTH))
    target = np.exp(3 * rows[:, :3]) / np.exp(3 * rows[:, :3]).sum(1, keepdims=True)
    target[20:] = rng.dirichlet(np.full(3, 0.3), 20)
    features, target, found = torch.from_numpy(rows), torch.from_numpy(target), []
    for weight in (np.repeat([9, 1], 20), np.repeat([1, 9], 20)):
        copies = torch.arange(40).repeat_interleave(torch.from_numpy(weight))
        weighted = fit(
            MaxEnt(), features, target, EMOTIONS, weight=torch.from_numpy(0.3 * weight), group=torch.arange(40)
        )
        repeated = fit(MaxEnt(), features[copies], target[copies], EMOTIONS, group=copies)
        found.append(float(weighted.chosen_l2))
        assert found[-1] == float(repeated.chosen_l2)
    assert found[0] < found[1]


@pytest.mark.parametrize("options", [{"tree_dropout": 0.4}, {"ensemble": "alternating", "outputs": None}], ids=str)
@torch.no_grad()
def test_weights_count_in_a_loss_of_some_trees(options: dict[str, Any]) -> None:
    head = LDLF(trees=3, depth=3, **options)
    features, target, labels = problem(head)
    head.build(WIDTH, labels)
    learn_leaves(head)
    weight = torch.rand(COUNT) + torch.arange(COUNT) % 3
    trees = torch.einsum("nkl,klc->nkc", head.route(features).double(), head.leaves.double())
    losses = (target.double() * (target.double().log())).sum(-1)[:, None]
    losses = losses - (target.double()[:, None] * trees.log()).sum(-1)
    torch.manual_seed(5)
    own = weight.double()[:, None] * (torch.rand(COUNT, 3) >= 0.4 if "tree_dropout" in options else torch.ones(1, 3))
    expected = (own * losses).sum(0) / own.sum(0) if "ensemble" in options else (own * losses).sum() / own.sum()
    torch.manual_seed(5)
    found = head.train().loss(features, target, weight=weight)["loss"].double()
    assert float((found - expected).abs().min()) < 1e-6 and float((expected - losses.mean()).abs().min()) > 1e-4


def learn_leaves(head: Head) -> None:
    head.leaves.copy_(torch.softmax(torch.randn_like(head.leaves), -1))


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_weights_of_drawn_rows_are_copies_in_expectation(name: str) -> None:
    features, target, labels = problem(DRAWN[name]())
    weight = torch.tensor([6, *[1] * (COUNT // 2), *[0] * (COUNT - COUNT // 2 - 1)])
    copies, kept = torch.arange(COUNT).repeat_interleave(weight), weight.nonzero().flatten()
    weighted = fit(DRAWN[name](), features[kept], target[kept], labels, weight=weight[kept].double())
    repeated = fit(DRAWN[name](), features[copies], target[copies], labels)
    plain = fit(DRAWN[name](), features[kept], target[kept], labels)
    near, far = (float((other(features) - repeated(features)).abs().mean()) for other in (weighted, plain))
    assert near < 0.5 * far, (near, far)


def test_weights_count_in_an_out_of_bag_loss() -> None:
    """Rows that a forest predicts without error, and rows of noise."""
    torch.manual_seed(0)
    features, sure = torch.randn(COUNT, WIDTH), torch.arange(COUNT) < COUNT // 2
    features[sure, 0] += 20
    target = torch.where(sure[:, None], torch.tensor([0.2, 0.3, 0.5]), torch.softmax(2 * torch.randn(COUNT, 3), -1))
    few, many = (
        fit(StructRF(trees=60, threads=1, sampling=0.1, seed=0), features, target, EMOTIONS, weight=weight.double())
        for weight in (1 + 8 * sure, 9 - 8 * sure)
    )
    assert many.summary()["out_of_bag_kl"] > 3 * few.summary()["out_of_bag_kl"] > 0


def test_weights_count_in_the_map_of_a_forest() -> None:
    features, target, labels = problem(CostSensitiveForest())
    weight = torch.arange(COUNT) % 4
    copies, kept = torch.arange(COUNT).repeat_interleave(weight), weight.nonzero().flatten()
    one = fit(CostSensitiveForest(trees=1), features[kept], target[kept], labels, weight=weight[kept].double())
    other = fit(CostSensitiveForest(trees=1), features[copies], target[copies], labels)
    torch.testing.assert_close([one.centre, one.scale], [other.centre, other.scale])


def test_weights_count_in_clusters_of_instances() -> None:
    features = torch.tensor([0.0, 4.0, 10.0, 0.0])[:, None, None]
    target = torch.eye(2)[[1, 1, 1, 0]]
    for weight, expected in ((None, [True, False]), (torch.tensor([100, 100, 0.01, 1]), [False, True])):
        found = clusters(pack("MPLBoost", Rows(features, target, weight=weight), None), 2, 0.0, 0)
        assert [found[0] == found[1], found[1] == found[2]] == expected


@pytest.mark.parametrize("replace", [True, False])
def test_rows_are_drawn_by_their_weights(replace: bool) -> None:
    weight = np.array([0.5, 4.0, 1.0, 0.1, 2.4])
    counts = np.zeros(5)
    for tree in range(4000):
        rows, draws = bootstrap(5, 1.0, replace, 0, tree, weight)
        assert draws.sum() == 8
        if not replace:
            expected = 8 * weight[rows] / weight.sum()
            assert (np.abs(draws - expected) < 1).all()
        counts[rows] += draws
    np.testing.assert_allclose(counts / counts.sum(), weight / weight.sum(), atol=0.01)
    with pytest.raises(LDLError, match="training row 1 has the weight 2000 and would be drawn 1000 times; divide the"):
        bootstrap(3, 0.5, False, 0, 0, np.array([1.0, 2000.0, 3.0]))


def test_loaded_weights_of_neighbours_are_positive() -> None:
    head = AAKNN()
    head.build(WIDTH, EMOTIONS)
    with pytest.raises(LDLError, match="weights holds -1, not a positive number"):
        head.load_state_dict({**head.state_dict(), "weights": -torch.ones(1)})


def test_a_head_without_weights_refuses_them_in_one_line() -> None:
    features, target, labels = problem(MSLP())
    with pytest.raises(LDLError, match="MSLP takes no row weights, and the rows have different ones; set data.weight"):
        fit(MSLP(), features, target, labels, weight=torch.ones(COUNT))
    with pytest.raises(LDLError, match="DSNA takes no row weights"):
        fit(DSNA(), features, target, labels, weight=torch.ones(COUNT))
    with pytest.raises(LDLError, match="MSLP takes no row weights"):
        fit(Scaled(MSLP(), scaling="none"), features, target, labels, weight=torch.ones(COUNT))


@pytest.mark.parametrize("labels", [EMOTIONS, POSES], ids=["nominal", "grid"])
def test_weights_of_metrics_are_copies_of_rows(labels: Any) -> None:
    check_metrics(labels)


def test_weights_of_ordinal_metrics_are_copies_of_rows() -> None:
    check_metrics(ldl.labels.LabelSpace.ordinal(list(range(0, 70, 5)), "years"))
    check_metrics(NO_YES)


def check_metrics(labels: Any) -> None:
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, 40)
    rows: dict[str, Any] = {
        name: rng.dirichlet(np.ones(len(labels)), 40).astype(np.float32) for name in ("prediction", "target")
    }
    if labels.has_values:
        rows |= {
            name: labels.decode(torch.from_numpy(rows[of])).numpy()
            for name, of in (("predicted_value", "prediction"), ("value", "target"))
        }
    rows["votes"] = rng.integers(1, 9, 40)
    calibration = Conformal.fit(labels, rows["prediction"], rows["value" if labels.has_values else "target"])
    columns = interval_columns(calibration, torch.from_numpy(rows["prediction"]))
    rows |= {name: column.numpy() for name, column in columns.items()}
    kept = weight > 0
    weighted = row_metrics({**{name: part[kept] for name, part in rows.items()}, "weight": weight[kept] * 1.0}, labels)
    repeated = row_metrics({name: part.repeat(weight, 0) for name, part in rows.items()}, labels)
    assert weighted.keys() == repeated.keys() and len(weighted) > 15
    for name in weighted:
        if not name.startswith("n_"):
            assert weighted[name] == pytest.approx(repeated[name], rel=1e-6, nan_ok=True), name
