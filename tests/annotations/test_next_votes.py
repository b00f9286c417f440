"""The expected gain of the next vote against a simulation of the posterior, and its theorems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.simulated_votes import ORDINAL

from ldl.annotations import DirichletMixture, DirichletMultinomial, expected_gain, rank_next
from ldl.annotations.mixture import Posterior
from ldl.errors import LDLError

RNG = np.random.default_rng(0)
LABELS = 4
MIXTURE = DirichletMixture(np.array([0.2, 0.5, 0.3]), RNG.gamma(0.7, size=(3, LABELS)) + 0.05)
COUNTS = np.vstack([np.zeros(LABELS), RNG.multinomial(5, np.ones(LABELS) / LABELS, 7), [9, 0, 0, 0]]).astype(float)
PREDICTION = RNG.dirichlet(np.ones(LABELS), len(COUNTS))
MODEL: tuple[dict[str, Any], ...] = ({}, {"prediction": PREDICTION, "model_votes": 2.5})
WITH_AND_WITHOUT = pytest.mark.parametrize("model", MODEL, ids=["votes", "model and votes"])


def entropy(p: np.ndarray) -> np.ndarray:
    return -np.sum(p * np.log(p), axis=-1)


def predict(counts: np.ndarray, model: dict[str, Any], combiner: DirichletMixture = MIXTURE) -> np.ndarray:
    """Return the distribution of the next vote (N, C) from single votes that are added one by one."""
    if model:
        posterior = Posterior(combiner, model["prediction"], model["model_votes"])
    else:
        posterior = Posterior(combiner)[np.zeros(len(counts), int)]
    for label in range(LABELS):
        for already in range(int(counts.max())):
            rows = np.flatnonzero(counts[:, label] > already)
            part = posterior[rows]
            part.add(np.full(len(rows), label))
            for name in ("logs", "totals", "counts"):
                getattr(posterior, name)[rows] = getattr(part, name)
    return posterior.mean()


@WITH_AND_WITHOUT
@pytest.mark.parametrize("combiner", [MIXTURE, DirichletMixture(np.ones(1), MIXTURE.alphas[:1])], ids=["three", "one"])
def test_the_gain_is_the_expected_fall_of_the_entropy(combiner: DirichletMixture, model: dict[str, Any]) -> None:
    now = predict(COUNTS, model, combiner)
    expected = entropy(now)
    for label in range(LABELS):
        after = predict(COUNTS + np.eye(LABELS)[label], model, combiner)
        expected -= now[:, label] * entropy(after)
    np.testing.assert_allclose(expected_gain(COUNTS, combiner, **model), expected, atol=1e-12)


def test_one_dirichlet_is_a_mixture_of_one() -> None:
    prior = DirichletMultinomial(MIXTURE.alphas[0])
    for model in MODEL:
        gain = expected_gain(COUNTS, prior, **model)
        np.testing.assert_allclose(gain, expected_gain(COUNTS, DirichletMixture.of(prior), **model), rtol=1e-12)


def test_simulated_votes_fall_in_nll_by_the_gain() -> None:
    """Draw item, next vote and further vote from the prior, and score the further vote before and after."""
    rng, draws, gains = np.random.default_rng(1), 200_000, []
    for counts in COUNTS[[0, 3]]:
        # The posterior of a mixture by importance weights of draws from the prior.
        component = rng.choice(3, draws, p=MIXTURE.weights)
        truth = rng.gamma(MIXTURE.alphas[component])
        truth = np.maximum(truth / truth.sum(1, keepdims=True), 1e-300)
        weight = np.exp((counts * np.log(truth)).sum(1))
        joint = (truth * (weight / weight.sum())[:, None]).T @ truth
        margin = joint.sum(1)
        gains.append(float((joint * np.log(joint / np.outer(margin, margin))).sum()))
    np.testing.assert_allclose(expected_gain(COUNTS[[0, 3]], MIXTURE), gains, rtol=0.03)


@WITH_AND_WITHOUT
def test_no_gain_is_negative(model: dict[str, Any]) -> None:
    assert (expected_gain(COUNTS, MIXTURE, **model) > 0).all()
    many = np.round(COUNTS * 1e9)
    gain = expected_gain(many, MIXTURE, **model)[1:]
    assert (gain >= 0).all() and (gain < 1e-8).all()


def test_a_certain_item_gains_nothing() -> None:
    alike = DirichletMixture(np.array([0.5, 0.5]), np.array([[1e12, 1.0], [1e12, 1.0]]))
    np.testing.assert_allclose(expected_gain(np.zeros((1, 2)), alike), 0, atol=1e-10)
    sure = {"prediction": np.array([[1.0, 0.0]]), "model_votes": 1e4}
    np.testing.assert_allclose(expected_gain(np.zeros((1, 2)), NARROW, **sure), 0, atol=1e-6)


NARROW = DirichletMixture(np.ones(1), np.array([[0.5, 0.5]]))


def test_one_dirichlet_gains_less_with_every_vote_in_the_same_shares() -> None:
    """The expected distribution stays, and the concentration rises."""
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    prior = DirichletMultinomial(2 * shares)
    gain = expected_gain(np.arange(0, 60, 10)[:, None] * shares, prior)
    assert (np.diff(gain) < 0).all()
    gain = expected_gain(np.zeros((3, LABELS)), prior, np.tile(shares, (3, 1)), 0.0)
    more = [expected_gain(np.zeros((1, LABELS)), prior, shares[None], votes)[0] for votes in (0.0, 1.0, 5.0)]
    assert (np.diff(more) < 0).all() and gain[0] == pytest.approx(more[0])


def test_the_expected_gain_falls_with_every_vote_under_one_dirichlet() -> None:
    """The gain after the next vote, in expectation over the vote, is below the gain before it."""
    prior = DirichletMultinomial(MIXTURE.alphas[1])
    now = prior.posterior_mean(COUNTS)
    after = sum(now[:, label] * expected_gain(COUNTS + np.eye(LABELS)[label], prior) for label in range(LABELS))
    assert (after < expected_gain(COUNTS, prior)).all()


def test_labels_in_another_order_and_empty_labels_change_nothing() -> None:
    order = np.array([2, 0, 3, 1])
    other = DirichletMixture(MIXTURE.weights[::-1], MIXTURE.alphas[::-1][:, order])
    for model in MODEL:
        permuted = {**model, "prediction": PREDICTION[:, order]} if model else {}
        gain = expected_gain(COUNTS, MIXTURE, **model)
        np.testing.assert_allclose(expected_gain(COUNTS[:, order], other, **permuted), gain, rtol=1e-9)


def test_items_in_parts_gain_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [expected_gain(COUNTS, MIXTURE, **model) for model in MODEL]
    monkeypatch.setattr("ldl.annotations.next_votes.PAIRS_AT_A_TIME", 2 * LABELS**2)
    for model, expected in zip(MODEL, whole):
        np.testing.assert_allclose(expected_gain(COUNTS, MIXTURE, **model), expected, rtol=1e-12)


def test_ranking() -> None:
    counts = np.vstack([COUNTS, COUNTS[2]])
    gain = expected_gain(counts, MIXTURE)
    ranked = rank_next(counts, MIXTURE, len(counts))
    assert len(ranked) == len(counts) and sorted(ranked.items) == list(range(len(counts)))
    np.testing.assert_array_equal(ranked.gain, np.sort(gain)[::-1])
    np.testing.assert_array_equal(ranked.gain, gain[ranked.items])
    np.testing.assert_array_equal(ranked.votes, counts.sum(1)[ranked.items])
    np.testing.assert_allclose(ranked.prediction, MIXTURE.posterior_mean(counts)[ranked.items], rtol=1e-12)
    items = ranked.items.tolist()
    assert items.index(2) + 1 == items.index(len(counts) - 1), "equal gains keep the order of the items"
    first = rank_next(counts, MIXTURE, 3)
    np.testing.assert_array_equal(first.items, ranked.items[:3])
    assert first.total == pytest.approx(ranked.gain[:3].sum())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"number": 0}, "0 items cannot be chosen of 9, each at most once; give a number from 1 to 9"),
        ({"number": 10}, "10 items cannot be chosen of 9"),
        ({"prediction": PREDICTION}, "model_votes must be a finite number from 0, and is None"),
        ({"prediction": PREDICTION, "model_votes": -1.0}, "model_votes must be a finite number from 0, and is -1.0"),
        ({"prediction": PREDICTION[:2], "model_votes": 1.0}, r"predictions have the shape \(2, 4\) and the votes"),
        ({"prediction": PREDICTION / 2, "model_votes": 1.0}, "row 0 of the predictions is no distribution"),
        ({"combiner": ORDINAL}, "the combiner has 5 labels for all items, and the votes have 4"),
        ({"counts": -COUNTS}, "votes must be finite and at least 0"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        rank_next(**{"counts": COUNTS, "combiner": MIXTURE, "number": 3, **arguments})
