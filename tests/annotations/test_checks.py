"""Votes and predictions that no function of ``ldl.annotations`` takes: one line, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ldl.annotations import (
    DirichletMixture,
    DirichletMultinomial,
    entropy_bias,
    held_out_nll,
    krippendorff_alpha,
    majority_accuracy,
    measure_power,
    most_raters,
    power_curve,
    rater_equivalence,
    vote_nll,
    worth,
)
from ldl.errors import LDLError
from ldl.labels import LabelSpace

COUNTS = np.array([[3.0, 1, 0], [0, 2, 2], [1, 1, 1], [4, 0, 0]])
MODEL = np.full((4, 3), 1 / 3)
PRIOR = DirichletMultinomial(np.ones(3))
MIXTURE = DirichletMixture(np.full(2, 0.5), np.array([[1.0, 2, 3], [3, 2, 1]]))

OF_PREDICTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "rater_equivalence": lambda prediction, counts: rater_equivalence(prediction, counts, MIXTURE),
    "rater_equivalence of one Dirichlet": lambda prediction, counts: rater_equivalence(prediction, counts, PRIOR),
    "vote_nll": vote_nll,
    "majority_accuracy": majority_accuracy,
    "model_votes": MIXTURE.model_votes,
    "measure_power": lambda prediction, counts: measure_power(counts, MIXTURE, 1, prediction, 1.0),
}
OF_VOTES: dict[str, Callable[[Any], Any]] = {
    "entropy_bias": entropy_bias,
    "krippendorff_alpha": lambda counts: krippendorff_alpha(counts, LabelSpace.nominal(["a", "b", "c"])),
    "DirichletMultinomial.fit": DirichletMultinomial.fit,
    "DirichletMultinomial.log_likelihood": PRIOR.log_likelihood,
    "DirichletMultinomial.posterior_mean": PRIOR.posterior_mean,
    "DirichletMixture.fit": DirichletMixture.fit,
    "DirichletMixture.log_likelihood": MIXTURE.log_likelihood,
    "DirichletMixture.posterior_mean": MIXTURE.posterior_mean,
    "held_out_nll": lambda counts: held_out_nll(counts, PRIOR, 1),
    "most_raters": most_raters,
    "power_curve": power_curve,
    **{name: lambda counts, of=function: of(MODEL, counts) for name, function in OF_PREDICTIONS.items()},  # type: ignore[misc]
}


def changed(array: np.ndarray, number: float) -> np.ndarray:
    """A copy with another first number."""
    copy = array.copy()
    copy[0, 0] = number
    return copy


@pytest.mark.parametrize("name", OF_PREDICTIONS)
@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (MODEL * 3, "row 0 of the predictions is no distribution: its least probability is 1 and its sum 3"),
        (MODEL * 0, "row 0 of the predictions is no distribution"),
        (changed(MODEL, 1 / 3 + 0.01), "row 0 of the predictions is no distribution.* sum 1.01"),
        (np.tile([-0.5, 1.0, 0.5], (4, 1)), "its least probability is -0.5 and its sum 1"),
        (changed(MODEL, np.nan), "row 0 of the predictions is no distribution: its least probability is nan"),
        (changed(MODEL, np.inf), "row 0 of the predictions is no distribution.* sum inf"),
        (MODEL[:3], r"predictions have the shape \(3, 3\) and the votes \(4, 3\)"),
        (MODEL.T, r"predictions have the shape \(3, 4\) and the votes \(4, 3\)"),
        (MODEL[0], r"predictions have the shape \(3,\), not \(N, C\)"),
        ([["a", "b", "c"]] * 4, "predictions must be numbers"),
    ],
)
def test_predictions_that_are_no_distributions(name: str, prediction: Any, message: str) -> None:
    with pytest.raises(LDLError, match=message) as raised:
        OF_PREDICTIONS[name](prediction, COUNTS)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", OF_VOTES)
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (changed(COUNTS, -1), "votes must be finite and at least 0, and item 0 has -1 for label 0"),
        (changed(COUNTS, np.nan), "and item 0 has nan for label 0"),
        (changed(COUNTS, np.inf), "and item 0 has inf for label 0"),
        (COUNTS[0], r"votes have the shape \(3,\), not \(N, C\)"),
        (COUNTS[None], r"votes have the shape \(1, 4, 3\), not \(N, C\)"),
    ],
)
def test_votes_that_are_no_counts(name: str, counts: np.ndarray, message: str) -> None:
    with pytest.raises(LDLError, match=message):
        OF_VOTES[name](counts)


@pytest.mark.parametrize("name", [*OF_PREDICTIONS, "entropy_bias", "held_out_nll", "power_curve"])
def test_items_without_a_vote(name: str) -> None:
    counts = COUNTS * [[1], [0], [1], [0]]
    with pytest.raises(LDLError, match="2 of 4 items have no vote, the first is item 1; leave them out"):
        OF_VOTES[name](counts)


def test_labels_of_another_number() -> None:
    with pytest.raises(LDLError, match="votes are for 3 labels, and the label space has 2"):
        krippendorff_alpha(COUNTS, LabelSpace.nominal(["a", "b"]))
    for combiner in (PRIOR, MIXTURE):
        with pytest.raises(LDLError, match="the combiner has 3 labels and the votes have 2"):
            rater_equivalence(np.full((4, 2), 0.5), COUNTS[:, :2] + 1, combiner)


def test_groups_and_raters_that_do_not_fit() -> None:
    with pytest.raises(LDLError, match="3 groups for 4 items"):
        rater_equivalence(MODEL, COUNTS, MIXTURE, groups=np.arange(3))
    with pytest.raises(LDLError, match="3 groups for 4 items"):
        DirichletMixture.fit(COUNTS, np.arange(3))
    for number in (-1, 0, 1.5):
        with pytest.raises(LDLError, match="raters must be a whole number from 1"):
            rater_equivalence(MODEL, COUNTS, MIXTURE, raters=number)  # type: ignore[arg-type]
    for level in (0.0, 1.0, 95):
        with pytest.raises(LDLError, match="level must lie between 0 and 1"):
            rater_equivalence(MODEL, COUNTS, MIXTURE, level=level)
    for votes in (-1.0, np.nan):
        with pytest.raises(LDLError, match="model_votes must be a finite number from 0"):
            rater_equivalence(MODEL, COUNTS, MIXTURE, model_votes=votes)


def test_curves_that_are_not_finite() -> None:
    for curve, nll in (
        (np.array([1.0, np.nan]), 1.0),
        (np.array([1.0, 0.5]), np.nan),
        (np.ones((2, 2)), 1.0),
        ([], 1.0),
    ):
        with pytest.raises(LDLError, match="a worth needs a finite NLL and a power curve"):
            worth(np.array(curve), nll)


def test_shares_up_to_rounding_are_distributions() -> None:
    found = rater_equivalence(MODEL.astype(np.float32), COUNTS, MIXTURE)
    assert np.isfinite(found.nll)
    assert vote_nll((MODEL * 1.0005).tolist(), COUNTS.astype(int)).shape == (4,)
