"""The Dirichlet-multinomial distribution of votes against its definition in float64."""

from __future__ import annotations

from itertools import permutations
from math import log

import numpy as np
import pytest
from fakes.simulated_votes import votes_of_dirichlet
from scipy.stats import dirichlet_multinomial

from ldl.annotations import (
    DirichletMultinomial,
)
from ldl.errors import LDLError

COUNTS = np.array([[3, 1, 0, 1], [0, 2, 2, 0], [5, 0, 0, 0], [1, 1, 1, 1]], dtype=np.float64)
PRIOR = DirichletMultinomial(np.array([0.7, 0.3, 0.5, 1.1]))
"""A prior of four labels that is not symmetric."""


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
    _, counts = votes_of_dirichlet(4000, 12, alpha)
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
        _, counts = votes_of_dirichlet(40_000, votes, alpha, seed=votes)
        mean = np.array(alpha) / sum(alpha)
        worth_ = DirichletMultinomial(np.array(alpha)).effective_votes(np.array([votes]))[0]
        assert (counts[:, 0] / votes).var() == pytest.approx(mean[0] * mean[1] / worth_, rel=0.03)
    many = DirichletMultinomial(np.array(alpha)).effective_votes(np.array([1, 200, 100_000]))
    assert many[0] == 1 and many[2] < 3 and many[2] / many[1] < 1.02
