"""Scores of labels against loops, and sets."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal.sets import label_scores, label_sets, predicted_set


def one_row(p: np.ndarray, share: float, penalty: float, free: int) -> list[float]:
    ranked = sorted(range(len(p)), key=lambda label: -p[label])
    scores = [0.0] * len(p)
    total = 0.0
    for rank, label in enumerate(ranked, 1):
        scores[label] = total + share * p[label] + penalty * max(rank - free, 0)
        total += p[label]
    return scores


@pytest.mark.parametrize(("penalty", "free"), [(0.0, 0), (0.3, 2)])
def test_scores_are_those_of_loops(penalty: float, free: int) -> None:
    rng = np.random.default_rng(0)
    p, share = rng.dirichlet(np.ones(6), 50), rng.uniform(size=50)
    expected = [one_row(row, s, penalty, free) for row, s in zip(p, share)]
    np.testing.assert_allclose(label_scores(3 * p, share, penalty, free), expected, atol=1e-12)


def test_labels_of_one_probability_are_ranked_in_their_order() -> None:
    np.testing.assert_allclose(label_scores(np.full((1, 4), 0.25)), [[0, 0.25, 0.5, 0.75]])


def test_the_likeliest_label_belongs_to_every_set() -> None:
    scores = label_scores(np.array([[0.1, 0.6, 0.3]]), share=1.0)
    assert label_sets(scores, 0.0).tolist() == [[False, True, False]]


def test_a_predicted_set_is_the_smallest_with_its_mass() -> None:
    rng = np.random.default_rng(1)
    labels, p = LabelSpace.nominal(list("abcdef")), rng.dirichlet(np.ones(6), 100)
    held = predicted_set(labels, p, 0.7)
    assert ((p * held).sum(1) >= 0.7).all()
    least = np.where(held, p, 1.0).min(1)
    assert ((p * held).sum(1) - least < 0.7).all()
    assert predicted_set(labels, np.eye(6)[:1], 0.99).sum() == 1


def test_labels_with_values_and_strange_levels_are_refused() -> None:
    with pytest.raises(LDLError, match="take interval"):
        predicted_set(LabelSpace.ordinal([1, 2]), np.eye(2), 0.9)
    with pytest.raises(LDLError, match="level 90 must be above 0 and below 1"):
        predicted_set(LabelSpace.nominal("ab"), np.eye(2), 90)
