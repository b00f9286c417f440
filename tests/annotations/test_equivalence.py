"""Dirichlet-multinomial votes, agreement and rater equivalence against their definitions in float64."""

from __future__ import annotations

from itertools import combinations, permutations
from math import exp, log

import numpy as np
import pandas as pd
import pytest
from scipy.stats import dirichlet_multinomial

from ldl.annotations import (
    DirichletMixture,
    DirichletMultinomial,
    entropy_bias,
    held_out_nll,
    krippendorff_alpha,
    majority_accuracy,
    most_raters,
    rater_equivalence,
    read_annotations,
    vote_nll,
    worth,
)
from ldl.errors import LDLError
from ldl.labels import LabelSpace

RNG = np.random.default_rng(0)
COUNTS = np.array([[3, 1, 0, 1], [0, 2, 2, 0], [5, 0, 0, 0], [1, 1, 1, 1]], dtype=np.float64)
PRIOR = DirichletMultinomial(np.array([0.7, 0.3, 0.5, 1.1]))
"""A prior of four labels that is not symmetric."""


def simulated(items: int, votes: int, alpha: list[float], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """True distributions of items, and votes drawn from them."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(alpha, items)
    return truth, np.stack([rng.multinomial(votes, row) for row in truth]).astype(np.float64)


def test_the_likelihood_is_that_of_votes_in_their_order() -> None:
    for counts in COUNTS:
        votes = np.repeat(np.arange(4), counts.astype(int))
        product, seen = 1.0, np.zeros(4)
        for vote in votes:  # each vote is predicted from those before it
            product *= ((PRIOR.alpha + seen) / (PRIOR.alpha + seen).sum())[vote]
            seen[vote] += 1
        assert PRIOR.log_likelihood(counts[None])[0] == pytest.approx(log(product), rel=1e-12)
        orders = len(set(permutations(votes)))
        together = dirichlet_multinomial(PRIOR.alpha, int(counts.sum())).pmf(counts)
        assert orders * product == pytest.approx(together, rel=1e-9)


def test_the_fit_is_a_maximum_and_finds_the_truth() -> None:
    alpha = [0.2, 1.0, 0.6]
    _, counts = simulated(4000, 12, alpha)
    fitted = DirichletMultinomial.fit(counts)
    np.testing.assert_allclose(fitted.alpha, alpha, rtol=0.1)
    best = fitted.log_likelihood(counts).sum()
    for label in range(3):
        for factor in (0.97, 1.03):
            alpha_ = fitted.alpha.copy()
            alpha_[label] *= factor
            assert DirichletMultinomial(alpha_).log_likelihood(counts).sum() < best


def test_an_item_counts_as_often_as_it_is_there_and_fractions_are_votes() -> None:
    twice = DirichletMultinomial.fit(np.concatenate([COUNTS, COUNTS]))
    np.testing.assert_allclose(twice.alpha, DirichletMultinomial.fit(COUNTS).alpha, rtol=1e-3)
    assert np.isfinite(DirichletMultinomial.fit(COUNTS * 0.9).alpha).all()
    with pytest.raises(LDLError, match="none of 3 items has two votes, so their agreement cannot be measured"):
        DirichletMultinomial.fit(np.eye(3))


def test_effective_votes_give_the_variance_of_observed_shares() -> None:
    alpha = [0.6, 1.4]
    for votes in (1, 3, 30):
        _, counts = simulated(40_000, votes, alpha, seed=votes)
        mean = np.array(alpha) / sum(alpha)
        worth_ = DirichletMultinomial(np.array(alpha)).effective_votes(np.array([votes]))[0]
        assert (counts[:, 0] / votes).var() == pytest.approx(mean[0] * mean[1] / worth_, rel=0.03)
    many = DirichletMultinomial(np.array(alpha)).effective_votes(np.array([1, 200, 100_000]))
    assert many[0] == 1 and many[2] < 3 and many[2] / many[1] < 1.02


def brute_force(counts: np.ndarray, prior: DirichletMultinomial, raters: int) -> float:
    """Every vote, predicted from every choice of others."""
    votes = np.repeat(np.arange(len(counts)), counts.astype(int))
    losses = []
    for held, label in enumerate(votes):
        for others in combinations(np.delete(votes, held), raters):
            after = prior.alpha + np.bincount(np.array(others, int), minlength=len(counts))
            losses.append(-log(after[label] / after.sum()))
    return float(np.mean(losses))


@pytest.mark.parametrize("raters", [0, 1, 2, 3])
def test_the_power_curve_is_the_mean_over_all_choices(raters: int) -> None:
    found = held_out_nll(COUNTS, PRIOR, raters)
    assert found.shape == (4, raters + 1)
    expected = [[brute_force(counts, PRIOR, k) for k in range(raters + 1)] for counts in COUNTS]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    own = DirichletMultinomial(np.tile(PRIOR.alpha, (4, 1)) * np.arange(1, 5)[:, None])
    expected = [
        [brute_force(c, DirichletMultinomial(a), k) for k in range(raters + 1)] for c, a in zip(COUNTS, own.alpha)
    ]
    np.testing.assert_allclose(held_out_nll(COUNTS, own, raters), expected, rtol=1e-12)


def test_fractional_and_too_few_votes_have_no_power_curve() -> None:
    with pytest.raises(LDLError, match="needs whole votes, and some counts are fractional"):
        held_out_nll(COUNTS / 2, PRIOR, 1)
    with pytest.raises(LDLError, match="4 raters predict a vote on items with 5 votes, and an item has 4"):
        held_out_nll(COUNTS, PRIOR, 4)
    with pytest.raises(LDLError, match="none of 4 items has two votes"):
        most_raters(np.eye(4))


def test_worth_is_read_from_the_curve() -> None:
    curve = np.array([2.0, 1.0, 0.5, 0.6])
    assert [worth(curve, nll) for nll in (2.5, 2.0, 1.5, 1.0, 0.75, 0.5)] == [0, 0, 0.5, 1, 1.5, 2]
    assert worth(curve, 0.49) == np.inf


@pytest.mark.parametrize("grouped", [False, True])
def test_a_model_that_is_k_raters_is_worth_k(grouped: bool) -> None:
    """In at least 90% of draws the interval of 95% holds k, for a model that is the posterior of k raters."""
    held, alpha, k = 0, [0.4, 0.8, 0.5], 3
    for draw in range(100):
        truth, counts = simulated(150, 7, alpha, seed=draw)
        rng = np.random.default_rng([draw, 1])
        model = np.stack([rng.multinomial(k, row) for row in truth]) + np.array(alpha)
        model /= model.sum(1, keepdims=True)
        groups = np.arange(150) // 2 if grouped else None
        found = rater_equivalence(model, counts, DirichletMultinomial(np.array(alpha)), groups=groups, raters=6)
        held += found.interval[0] <= k <= found.interval[1]
    assert held >= 90


def test_a_model_beside_raters() -> None:
    truth, counts = simulated(400, 6, [0.5, 0.5, 0.5])
    prior = DirichletMultinomial.fit(counts)
    model_votes = DirichletMixture.of(prior).model_votes(truth, counts)
    found = rater_equivalence(truth, counts, prior, model_votes=model_votes)
    assert found.items == 400 and len(found.curve) == 6 and found.level == 0.95
    assert found.nll == pytest.approx(vote_nll(truth, counts).mean())
    # The truth is better than any number of raters, and raters add nothing to it.
    assert found.worth == np.inf and found.with_model is not None
    np.testing.assert_allclose(found.with_model, found.nll, atol=0.02)
    mean = np.tile(prior.mean, (400, 1))
    nothing = rater_equivalence(mean, counts, prior, raters=2)
    assert (
        nothing.worth == pytest.approx(0)
        and nothing.interval == (0, 0)
        and nothing.curve[0] == pytest.approx(nothing.nll)
    )
    with pytest.raises(LDLError, match="no item has more than 6 votes; give fewer raters"):
        rater_equivalence(mean, counts, prior, raters=6)


def test_most_raters_keeps_half_of_the_items() -> None:
    assert most_raters(np.array([[1.0, 0], [2, 0], [3, 0], [4, 0], [5, 0]])) == 2
    assert most_raters(np.full((3, 2), 5.0)) == 9


OBSERVERS = """1 2 3 3 2 1 4 1 2 * * *
1 2 3 3 2 2 4 1 2 5 * 3
* 3 3 3 2 3 4 2 2 5 1 *
1 2 3 3 2 4 4 1 2 5 1 *"""


def test_alpha_of_the_published_example() -> None:
    """Krippendorff 2011, section C: .743 for nominal and .815 for ordinal labels."""
    rows = [line.replace("*", "").split(" ") for line in OBSERVERS.splitlines()]
    table = pd.DataFrame(dict(zip("ABCD", rows))).replace("", None)
    votes = read_annotations(table, rater_columns=list("ABCD"))
    assert (len(votes), votes.left_out) == (12, 0)
    assert krippendorff_alpha(votes.counts, LabelSpace.nominal(list("12345"))) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(votes.counts, votes.labels) == pytest.approx(0.815, abs=5e-4)


def test_alpha_at_its_ends() -> None:
    names = LabelSpace.nominal(["a", "b"])
    assert krippendorff_alpha(np.array([[4.0, 0], [0, 3]]), names) == 1
    assert np.isnan(krippendorff_alpha(np.array([[4.0, 0], [3, 0]]), names))
    votes = RNG.multinomial(5, [0.3, 0.7], 20_000).astype(float)
    assert krippendorff_alpha(votes, names) == pytest.approx(0, abs=0.01)
    with pytest.raises(LDLError, match="needs an item with two votes"):
        krippendorff_alpha(np.eye(2), names)


def test_results_of_a_prediction() -> None:
    prediction = np.array([[0.5, 0.5, 0], [0.2, 0.7, 0.1]])
    counts = np.array([[2.0, 2, 0], [1, 0, 3]])
    expected = [log(2), -(0.25 * log(0.2) + 0.75 * log(0.1))]
    np.testing.assert_allclose(vote_nll(prediction, counts), expected)
    assert vote_nll(np.array([[1.0, 0]]), np.array([[0.0, 1]]))[0] == pytest.approx(-log(1e-12))
    assert majority_accuracy(prediction, counts) == 0.25  # a tie of two, and a miss
    np.testing.assert_allclose(entropy_bias(counts), [1 / 8, 1 / 8])
    assert exp(-vote_nll(np.eye(3)[:1], counts[:1] * [1, 0, 0])[0]) == 1
