"""Krippendorff's alpha, and the log-likelihood and the majority of votes, against published and computed results."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pandas as pd
import pytest

from ldl.annotations import (
    entropy_bias,
    krippendorff_alpha,
    majority_accuracy,
    read_annotations,
    vote_nll,
)
from ldl.errors import LDLError
from ldl.labels import LabelSpace

RNG = np.random.default_rng(0)
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
    with pytest.raises(LDLError, match="none of 2 items has two votes"):
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
