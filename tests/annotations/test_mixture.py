"""Mixtures of Dirichlets that combine votes: their fit, exact sums, draws, and what a model is worth by them."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from fakes.simulated_votes import NOMINAL, ORDINAL, fitted_mixture, votes_of_mixture

from ldl.annotations import (
    DirichletMixture,
    DirichletMultinomial,
    held_out_nll,
    measure_power,
    vote_nll,
)
from ldl.annotations import mixture as fits
from ldl.annotations.mixture import Posterior, choose_size, combiner_in_words, fit_size, split_items, thinned
from ldl.annotations.summary import power_curve
from ldl.errors import LDLError

BOTH = pytest.mark.parametrize("truth", [ORDINAL, NOMINAL], ids=["ordinal", "nominal"])


def matched(found: DirichletMixture, truth: DirichletMixture) -> DirichletMixture:
    """The same mixture with its components in the order of another one."""
    order = [int(np.square(_means(found) - mean).sum(1).argmin()) for mean in _means(truth)]
    assert sorted(order) == list(range(truth.size))
    return DirichletMixture(found.weights[order], found.alphas[order])


def _means(mixture: DirichletMixture) -> np.ndarray:
    return mixture.alphas / mixture.alphas.sum(1, keepdims=True)


@BOTH
def test_a_planted_mixture_is_recovered(truth: DirichletMixture) -> None:
    assert fitted_mixture(truth is NOMINAL).size == 3
    (counts,) = votes_of_mixture(truth, 3000, 12)
    found = matched(fit_size(counts, 3), truth)
    np.testing.assert_allclose(found.weights, truth.weights, atol=0.04)
    np.testing.assert_allclose(_means(found), _means(truth), atol=0.04)
    np.testing.assert_allclose(found.alphas.sum(1), truth.alphas.sum(1), rtol=0.25)
    assert found.log_likelihood(counts).sum() >= truth.log_likelihood(counts).sum()


def test_votes_of_one_dirichlet_need_one_component() -> None:
    one = DirichletMixture(np.ones(1), np.array([[0.4, 1.0, 0.7]]))
    (counts,) = votes_of_mixture(one, 1500, 8)
    found, prior = DirichletMixture.fit(counts), DirichletMultinomial.fit(counts)
    assert found.size == 1
    np.testing.assert_array_equal(found.alphas[0], prior.alpha)
    np.testing.assert_allclose(found.log_likelihood(counts), prior.log_likelihood(counts))
    np.testing.assert_allclose(found.posterior_mean(counts), prior.posterior_mean(counts))
    np.testing.assert_array_equal(held_out_nll(counts, found, 7), held_out_nll(counts, prior, 7))


def test_a_fit_is_deterministic_and_does_not_depend_on_the_order_of_items() -> None:
    (counts,) = votes_of_mixture(NOMINAL, 100, 5)
    first, again = (DirichletMixture.fit(counts, sizes=(1, 2, 3)) for _ in range(2))
    np.testing.assert_array_equal(first.alphas, again.alphas)
    turned = DirichletMixture.fit(counts[::-1], sizes=(first.size,))
    np.testing.assert_array_equal(first.alphas, turned.alphas)


def test_groups_are_held_out_as_a_whole() -> None:
    parts = split_items(np.repeat([f"p{number}" for number in range(20)], 3), 60)
    assert (parts.reshape(20, 3) == parts[::3, None]).all() and sorted(set(parts)) == [0, 1, 2, 3, 4]
    # Copies of the items of a group in other parts would favour a component for each of them.
    (counts,) = votes_of_mixture(DirichletMixture(np.ones(1), np.full((1, 6), 2.0)), 20, 6)
    counts, groups, sizes = np.repeat(counts, 5, 0), np.repeat(np.arange(20), 5), (1, 2, 4)
    assert choose_size(counts, groups, sizes) == 1 < choose_size(counts, None, sizes)


def test_many_votes_and_items_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.array([[90_000.0, 10_000], [3, 2], [60.5, 60]])
    thin = thinned(counts)
    assert thin.sum(1).tolist() == [100, 5, 120.5] and thin[0, 0] == pytest.approx(90, abs=12)
    monkeypatch.setattr(fits, "MOST_ITEMS", 200)
    (counts,) = votes_of_mixture(NOMINAL, 2000, 8)
    assert DirichletMixture.fit(counts, sizes=(1, 3)).size == 3


def test_the_likelihood_is_that_of_votes_in_their_order() -> None:
    counts = np.array([[2.0, 0, 1, 1, 0], [0, 0, 0, 3, 2]])
    for row in counts:
        seen, product = np.zeros((1, 5)), 0.0
        for vote in np.repeat(np.arange(5), row.astype(int)):
            product += log(ORDINAL.posterior_mean(seen)[0, vote])
            seen[0, vote] += 1
        assert ORDINAL.log_likelihood(row[None])[0] == pytest.approx(product)


@BOTH
def test_a_prediction_beside_votes(truth: DirichletMixture) -> None:
    validation, seen = votes_of_mixture(truth, 1500, 6, 2, seed=3)
    test, others = votes_of_mixture(truth, 1000, 6, 2, seed=4)
    model = truth.posterior_mean(others)
    s = truth.model_votes(truth.posterior_mean(seen), validation)
    assert 1 < s < 3
    curve = measure_power(test, truth, 5).mean()
    found = measure_power(test, truth, 4, model, s)
    # No further votes: the prediction itself. With k votes: about the votes that it has seen and k more.
    np.testing.assert_allclose(found.mean()[0], vote_nll(model, test).mean(), rtol=1e-9)
    np.testing.assert_allclose(found.mean()[:4], curve[2:], atol=0.02)
    # A model without a vote adds nothing to votes, and the truth has nothing to add to it.
    prior = np.tile(truth.posterior_mean(np.zeros((1, test.shape[1]))), (len(test), 1))
    alone = measure_power(test, truth, 3, prior, 1e-6).mean()
    np.testing.assert_allclose(alone, curve[:4], atol=1e-4)
    assert truth.model_votes(prior, test) < s / 4


def test_one_dirichlet_beside_a_prediction_is_a_prior_around_it() -> None:
    one = DirichletMixture(np.ones(1), np.array([[0.4, 1.0, 0.7]]))
    counts, others = votes_of_mixture(one, 1000, 6, 3)
    model = one.posterior_mean(others)
    assert one.model_votes(model, counts) == pytest.approx(3, rel=0.2)
    around = DirichletMultinomial((2.1 + 3) * model)
    np.testing.assert_allclose(
        measure_power(counts, one, 4, model, 3.0).nll, held_out_nll(counts, around, 4), rtol=1e-9
    )
    state = Posterior(one, model, 3.0)
    for label in (0, 2, 2):
        state.add(np.full(len(model), label))
    np.testing.assert_allclose(state.mean(), around.posterior_mean(np.tile([1.0, 0, 2], (1000, 1))), rtol=1e-9)


def test_votes_move_the_weights_of_the_components_beside_a_prediction() -> None:
    model = np.array([[0.2, 0.2, 0.2, 0.2, 0.2], [0.05, 0.05, 0.1, 0.3, 0.5]])
    state = Posterior(ORDINAL, model, 1.5)
    np.testing.assert_allclose(state.mean(), model)
    state.add(np.array([0, 4]))
    after = state.mean()
    np.testing.assert_allclose(after.sum(1), 1)
    assert after[0, 1] > 0.2 > after[0, 3] and after[1, 3] > 0.3  # neighbours of the vote
    again = Posterior(ORDINAL, model, 1.5).log_likelihood(np.eye(5)[[0, 4]])
    np.testing.assert_allclose(np.exp(again), model[[0, 1], [0, 4]])


def test_few_items_have_one_component() -> None:
    assert DirichletMixture.fit(np.array([[2.0, 0], [0, 1], [0, 1]])).size == 1
    assert power_curve(np.array([[2.0, 0], [1, 1]]))[0].size == 1
    with pytest.raises(LDLError, match="none of 3 items has two votes"):
        DirichletMixture.fit(np.eye(3))
    with pytest.raises(LDLError, match="the combiner has 5 labels and the votes have 4"):
        measure_power(np.ones((3, 4)), ORDINAL, 1)


def test_combiners_in_words() -> None:
    assert combiner_in_words([1]) == "one Dirichlet"
    assert combiner_in_words([4, 4]) == "a mixture of 4 Dirichlets"
    assert combiner_in_words([3, 6, 4]) == "mixtures of 3 to 6 Dirichlets"
