"""The verdicts on the pages of papers: chance and the mean baseline do not reproduce a result."""

from __future__ import annotations

import numpy as np

from benchmarks.common.items import EXCEEDED, MISSED, REPRODUCED, UNDECIDED, Number, ahead, judge


def test_methods_of_equal_quality_are_rarely_told_apart() -> None:
    draws = np.random.default_rng(0).normal(size=(2000, 2, 10))
    holds = [ahead("better", ours.tolist(), other.tolist(), "").holds for ours, other in draws]
    assert np.mean(holds) < 0.06


def test_a_tie_is_no_gain() -> None:
    assert not ahead("better", [0.1, 0.2, 0.3], [0.1, 0.2, 0.3], "").holds
    assert ahead("better", [0.1, 0.2, 0.3], [0.21, 0.3, 0.41], "").holds
    assert ahead("better", [0.9, 0.8, 0.9], [0.7, 0.6, 0.65], "", lower=False).holds


def test_what_the_mean_baseline_reproduces_too_is_not_decisive() -> None:
    ours = Number("StructRF, kl", (0.0055,), 0.0054, 0.0007)
    assert judge([ours, Number("mean baseline, kl", (0.0056,))]) == UNDECIDED
    assert judge([ours, Number("mean baseline, kl", (0.0070,))]) == REPRODUCED
    assert judge([ours]) == REPRODUCED


def test_one_missed_claim_decides() -> None:
    near, far = Number("one", (1.0,), 1.0, 0.1), Number("two", (2.0,), 1.0, 0.1)
    assert judge([near, far]) == MISSED
    assert judge([Number("one", (0.5,), 1.0, 0.1)]) == EXCEEDED
