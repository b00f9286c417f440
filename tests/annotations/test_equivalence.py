"""Dirichlet-multinomial votes, agreement and rater equivalence against their definitions in float64."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.simulated_votes import NOMINAL, ORDINAL, fitted_mixture, votes_of_dirichlet, votes_of_mixture

from ldl.annotations import (
    DirichletMixture,
    DirichletMultinomial,
    most_raters,
    rater_equivalence,
    vote_nll,
    worth,
)
from ldl.errors import LDLError

RNG = np.random.default_rng(0)


def test_worth_is_read_from_the_curve() -> None:
    curve = np.array([2.0, 1.0, 0.5, 0.6])
    assert [worth(curve, nll) for nll in (2.5, 2.0, 1.5, 1.0, 0.75, 0.5)] == [0, 0, 0.5, 1, 1.5, 2]
    assert worth(curve, 0.49) == np.inf


@pytest.mark.parametrize("grouped", [False, True])
def test_a_model_that_is_k_raters_is_worth_k(grouped: bool) -> None:
    """In at least 90% of draws the interval of 95% holds k, for a model that is the posterior of k raters."""
    held, alpha, k = 0, [0.4, 0.8, 0.5], 3
    for draw in range(100):
        truth, counts = votes_of_dirichlet(150, 7, alpha, seed=draw)
        rng = np.random.default_rng([draw, 1])
        model = np.stack([rng.multinomial(k, row) for row in truth]) + np.array(alpha)
        model /= model.sum(1, keepdims=True)
        groups = np.arange(150) // 2 if grouped else None
        found = rater_equivalence(model, counts, DirichletMultinomial(np.array(alpha)), groups=groups, raters=6)
        held += found.interval[0] <= k <= found.interval[1]
    assert held >= 90


def test_a_model_beside_raters() -> None:
    truth, counts = votes_of_dirichlet(400, 6, [0.5, 0.5, 0.5])
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


BOTH = pytest.mark.parametrize("truth", [ORDINAL, NOMINAL], ids=["ordinal", "nominal"])


@BOTH
@pytest.mark.parametrize("seen", [1, 2, 3, 5])
def test_the_combiner_of_k_votes_is_worth_k(truth: DirichletMixture, seen: int) -> None:
    (train,) = votes_of_mixture(truth, 1000, 8, seed=1)
    test, others = votes_of_mixture(truth, 400, 8, seen, seed=10 + seen)
    combiner = fitted_mixture(truth is NOMINAL)
    found = rater_equivalence(combiner.posterior_mean(others), test, combiner, raters=7)
    assert found.interval[0] <= seen <= found.interval[1]
    assert found.interval[0] > seen - 1.5 and found.interval[0] > 0
    assert (found.error <= 0.01).all() and found.raters == 7
    # One Dirichlet knows less about the votes, so the same model looks better.
    flattered = rater_equivalence(combiner.posterior_mean(others), test, DirichletMultinomial.fit(train), raters=7)
    assert flattered.worth > found.worth + 0.4


def test_the_interval_holds_k_as_often_as_it_says() -> None:
    """In at least 44 of 50 draws the interval of 95% holds k = 2."""
    held = 0
    for draw in range(50):
        test, others = votes_of_mixture(ORDINAL, 80, 4, 2, seed=draw)
        found = rater_equivalence(ORDINAL.posterior_mean(others), test, ORDINAL, raters=3)
        held += found.interval[0] <= 2 <= found.interval[1]
    assert held >= 44
