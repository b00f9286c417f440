"""Peers that learn classes: their loss is that of the distributions, and each library learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from benchmarks.tables import peers
from ldl.protocols import with_validation

PEERS = {"xgboost": peers.XGBoost, "lightgbm": peers.LightGBM, "catboost": peers.CatBoost}
SMALL = {"rounds": 60, "patience": 10, "learning_rate": 0.3, "depth": 3, "threads": 1}


def problem(rows: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Distributions that depend on the features, with labels of no mass; label 4 has none anywhere."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, 6)).astype(np.float32)
    target = np.exp(2 * features[:, :4])
    target[target < 0.2 * target.max(1, keepdims=True)] = 0
    target = np.hstack([target, np.zeros((rows, 1))])
    return features, (target / target.sum(1, keepdims=True)).astype(np.float32)


def divergence(predicted: np.ndarray, target: np.ndarray) -> float:
    held = target > 0
    return float((target[held] * np.log(target[held] / np.maximum(predicted[held], 1e-12))).sum() / len(target))


def test_repeated_rows_have_the_loss_of_the_distributions() -> None:
    features, target = problem()
    target = target.astype(np.float64)
    predicted = np.random.default_rng(1).dirichlet(np.ones(5), len(target))
    rows = peers.repeat(peers.Rows(np.arange(len(features)), target))
    hard = -(rows.weight * np.log(predicted[rows.features, rows.label])).sum()
    soft = -(target * np.log(predicted)).sum()
    assert hard == pytest.approx(soft, rel=1e-12)
    assert rows.weight.min() > 0 and len(rows.label) == (target > 0).sum() < 4 * len(target)


@pytest.mark.parametrize("library", PEERS)
def test_each_library_learns(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    features, target = problem()
    peer = PEERS[library](**SMALL)
    peer.fit(features[:180], target[:180])
    predicted = peer.predict(features[180:])
    assert predicted.shape == (60, 5) and np.allclose(predicted.sum(1), 1, atol=1e-5)
    constant = np.broadcast_to(target[:180].mean(0), predicted.shape)
    assert divergence(predicted, target[180:]) < 0.5 * divergence(constant, target[180:])
    again = PEERS[library](**SMALL)
    again.fit(features[:180], target[:180])
    assert np.array_equal(again.predict(features[180:]), predicted)
    other = PEERS[library](**SMALL, seed=1)
    other.fit(features[:180], target[:180])
    assert not np.array_equal(other.predict(features[180:]), predicted)


@pytest.mark.parametrize("library", PEERS)
def test_sparse_rows_teach_the_same(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    _, target = problem()
    rng = np.random.default_rng(1)
    features = (rng.random((240, 30)) < 0.05 + 0.2 * target[:, rng.integers(0, 5, 30)]).astype(np.float32)
    predicted = []
    for rows in (features, csr_matrix(features)):
        peer = PEERS[library](**{**SMALL, "columns": 1.0, "sampling": 1.0})
        peer.fit(rows[:180], target[:180])
        predicted.append(peer.predict(rows[180:]))
    assert np.abs(predicted[0] - target[180:].mean(0)).max() > 0.05
    np.testing.assert_allclose(*predicted, atol=1e-5)


@pytest.mark.parametrize("library", PEERS)
def test_boosting_stops_on_whole_rows_that_it_did_not_see(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    features, target = problem()
    features[:, 0] = np.arange(len(features))
    asked: list[tuple[peers.Rows, peers.Rows | None, int]] = []
    answered: list[int] = []

    def train(self: peers.Booster, *given: Any) -> tuple[Any, int]:
        asked.append(given)
        model, rounds = own(self, *given)
        answered.append(rounds)
        return model, rounds

    own = PEERS[library].train
    monkeypatch.setattr(PEERS[library], "train", train)
    group = np.arange(len(features)) // 8
    peer = PEERS[library](**{**SMALL, "rounds": 1000}, refit=True)
    peer.fit(features, target, group)
    seen, watched = ({*part.features[:, 0].astype(int)} for part in asked[0][:2] if part)
    assert not seen & watched and seen | watched == {*range(240)} and len(watched) == 24
    assert not {*group[[*seen]]} & {*group[[*watched]]}
    assert asked[0][2] == 1000 > answered[0] + SMALL["patience"]
    rows, none, rounds = asked[1]
    assert len(rows.target) == 240 and none is None and rounds == answered[0] == answered[1]
    alone = PEERS[library](**{**SMALL, "rounds": rounds, "patience": None})
    alone.fit(features, target)
    assert np.array_equal(alone.predict(features), peer.predict(features))


@pytest.mark.parametrize("library", PEERS)
def test_without_refit_the_best_round_of_nine_tenths_stays(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    features, target = problem()
    peer = PEERS[library](**{**SMALL, "rounds": 1000})
    peer.fit(features, target)
    fold = with_validation(np.arange(240), np.arange(0), 0.1, 0)
    watched = [divergence(PEERS[library].predict(peer, features[fold.val]), target[fold.val])]
    for rounds in (1, 1000):
        other = PEERS[library](**{**SMALL, "rounds": rounds, "patience": None})
        other.fit(features[fold.train], target[fold.train])
        watched.append(divergence(other.predict(features[fold.val]), target[fold.val]))
    assert watched[0] < min(watched[1:])


def test_derivatives_are_those_of_the_cross_entropy() -> None:
    _, target = problem(20)
    target = target.astype(np.float64)
    scores = np.random.default_rng(0).normal(size=target.shape)
    first, second = peers.derivatives(scores, target, 1.0)
    step = 1e-4
    for label in range(5):
        moved = [scores + sign * step * np.eye(5)[label] for sign in (-1, 0, 1)]
        low, here, high = (-(target * log_softmax(one, 1)).sum(1) for one in moved)
        np.testing.assert_allclose((high - low) / (2 * step), first[:, label], atol=1e-7)
        np.testing.assert_allclose((high - 2 * here + low) / step**2, second[:, label], atol=1e-6)
    assert peers.cross_entropy(scores, target) == pytest.approx(-(target * log_softmax(scores, 1)).sum(1).mean())
