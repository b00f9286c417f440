"""The scale of KL divergences on the page of metrics: votes on an item lower the divergence as they should."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.kl_scale import divergence, scale


def test_one_prediction_stands_for_all_items() -> None:
    """KL by hand: of (1, 0) and of (1/2, 1/2) from (1/4, 3/4)."""
    shares = np.array([[1, 0], [0.5, 0.5]])
    expected = (np.log(4) + 0.5 * np.log(2) + 0.5 * np.log(2 / 3)) / 2
    assert divergence(shares, np.array([0.25, 0.75])) == pytest.approx(expected)
    assert divergence(shares, shares) == pytest.approx(0)


def test_votes_on_clear_items_tell_the_shares() -> None:
    """Annotators agree on every item, so one vote suffices, and the baseline has the entropy of four labels."""
    counts = np.repeat(np.eye(4) * 20, 100, axis=0)
    baseline, *votes = scale(counts, None)
    assert baseline == pytest.approx(np.log(4), abs=0.05)
    assert max(votes) < 0.02


def test_votes_on_equal_items_tell_nothing() -> None:
    """All items have the same distribution, so the mean baseline knows as much as the votes do."""
    counts = np.random.default_rng(0).multinomial(1000, [0.5, 0.3, 0.2], size=300)
    baseline, *votes = scale(counts, None)
    assert votes == pytest.approx([baseline] * len(votes), abs=0.002)
    assert baseline < 0.005


def test_groups_stay_in_one_half() -> None:
    """Items of a group are alike, and groups differ: the mean of the other groups is far from them."""
    counts, groups = np.repeat(np.eye(2) * 10, 50, axis=0), np.repeat([0, 1], 50)
    assert scale(counts, groups)[0] > 10
