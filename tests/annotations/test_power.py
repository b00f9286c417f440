"""Power curves against the mean over all choices of other votes."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.simulated_votes import NOMINAL, ORDINAL, fitted_mixture, nll_of_all_choices, votes_of_mixture

from ldl.annotations import (
    DirichletMixture,
    DirichletMultinomial,
    held_out_nll,
    measure_power,
    most_raters,
)
from ldl.errors import LDLError

COUNTS = np.array([[3, 1, 0, 1], [0, 2, 2, 0], [5, 0, 0, 0], [1, 1, 1, 1]], dtype=np.float64)
PRIOR = DirichletMultinomial(np.array([0.7, 0.3, 0.5, 1.1]))
"""A prior of four labels that is not symmetric."""
BOTH = pytest.mark.parametrize("truth", [ORDINAL, NOMINAL], ids=["ordinal", "nominal"])


@pytest.mark.parametrize("raters", [0, 1, 2, 3])
def test_the_power_curve_is_the_mean_over_all_choices(raters: int) -> None:
    found = held_out_nll(COUNTS, PRIOR, raters)
    assert found.shape == (4, raters + 1)
    expected = [[nll_of_all_choices(counts, PRIOR, k) for k in range(raters + 1)] for counts in COUNTS]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    own = DirichletMultinomial(np.tile(PRIOR.alpha, (4, 1)) * np.arange(1, 5)[:, None])
    expected = [
        [nll_of_all_choices(c, DirichletMultinomial(a), k) for k in range(raters + 1)]
        for c, a in zip(COUNTS, own.alpha)
    ]
    np.testing.assert_allclose(held_out_nll(COUNTS, own, raters), expected, rtol=1e-12)


def test_fractional_and_too_few_votes_have_no_power_curve() -> None:
    with pytest.raises(LDLError, match="needs whole votes, and some counts are fractional"):
        held_out_nll(COUNTS / 2, PRIOR, 1)
    with pytest.raises(LDLError, match="4 raters predict a vote on items with 5 votes, and an item has 4"):
        held_out_nll(COUNTS, PRIOR, 4)
    with pytest.raises(LDLError, match="none of 4 items has two votes"):
        most_raters(np.eye(4))


def test_sums_are_exact_up_to_three_votes_and_draws_have_their_error(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.array([[3.0, 1, 2, 0, 1], [0, 4, 0, 2, 1], [7, 0, 0, 0, 0], [1, 1, 1, 0, 0], [2, 2, 2, 2, 2]])
    found = measure_power(counts, ORDINAL, 5)
    several = [row for row in range(5) if counts[row].sum() > 5]
    for k in range(6):
        rows = np.flatnonzero(counts.sum(1) > k)
        expected = np.array([nll_of_all_choices(counts[row], ORDINAL, k) for row in rows])
        if k <= 3:
            np.testing.assert_allclose(found.nll[rows, k], expected, rtol=1e-12)
            assert (found.variance[rows, k] == 0).all()
        else:
            assert (np.abs(found.nll[rows, k] - expected) <= 4 * np.sqrt(found.variance[rows, k]) + 1e-12).all()
            assert found.variance[0, k] > 0
    assert np.isnan(found.nll[3, 3:]).all() and np.isnan(found.variance[3, 3:]).all()
    chosen = found.select(np.array(several), 5)
    assert chosen.error()[5] == pytest.approx(np.sqrt(chosen.variance[:, 5].sum()) / len(several))
    assert (chosen.error()[:4] == 0).all() and 0 < chosen.error()[4] < 0.02
    monkeypatch.setattr("ldl.annotations.power.EXACT_SETS", 0)  # draws in place of sums, from k = 2
    drawn = measure_power(counts, ORDINAL, 3)
    rows = counts.sum(1) > 3
    assert (drawn.variance[0, 2:] > 0).all() and (drawn.variance[rows, :2] == 0).all()
    np.testing.assert_allclose(drawn.nll[rows], found.nll[rows, :4], atol=0.1)


@BOTH
def test_the_curve_is_not_above_that_of_one_dirichlet_on_held_out_items(truth: DirichletMixture) -> None:
    (train,), (test,) = votes_of_mixture(truth, 1000, 8, seed=1), votes_of_mixture(truth, 500, 7, seed=2)
    mixture = measure_power(test, fitted_mixture(truth is NOMINAL), 6)
    one = held_out_nll(test, DirichletMultinomial.fit(train), 6)
    gap = mixture.nll - one
    error = np.sqrt(gap.var(0) / len(gap) + mixture.error() ** 2)
    assert (gap.mean(0) <= 2 * error).all()
    assert (gap.mean(0)[1:4] < -5 * error[1:4]).all()  # labels lie together, and one Dirichlet cannot learn that
