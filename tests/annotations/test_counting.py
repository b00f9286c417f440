"""Counts in columns of labels: votes, shares and percentages."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ldl.annotations import read_annotations
from ldl.errors import LDLError


def test_shares_and_the_number_of_votes() -> None:
    table = pd.DataFrame({"r1": [60.0, 20, 0], "r2": [20.0, 20, 0], "r10": [20.0, 60, 0], "votes": [10, 200_000, 5]})
    found = read_annotations(table, label_columns=["r*"], votes_column="votes")
    assert found.labels.kind == "ordinal" and found.labels.axes == ((1.0, 2.0, 10.0),)
    np.testing.assert_allclose(found.counts, [[6, 2, 2], [40_000, 40_000, 120_000]])
    assert found.left_out == 1 and str(found).endswith("; 1 items without a vote are left out")
    with pytest.raises(LDLError, match="1 items have no vote; remove them, or pass unlabelled='drop'"):
        read_annotations(table, label_columns=["r*"], unlabelled="error")


def test_rounded_shares_with_a_number_of_votes_give_whole_votes() -> None:
    """Shares of whole votes, rounded to a decimal and of any sum, give these votes again."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(rng.integers(1, 60, 200), rng.dirichlet(np.ones(5), 200)).astype(float)
    shares = np.round(100 * counts / counts.sum(1, keepdims=True), 1)
    table = pd.DataFrame(shares, columns=list("abcde")).assign(n=counts.sum(1))
    found = read_annotations(table, label_columns=list("abcde"), votes_column="n")
    np.testing.assert_array_equal(found.counts, counts)
    many = read_annotations(table.assign(n=12345.0), label_columns=list("abcde"), votes_column="n")
    assert (
        many.whole
        and (many.votes == 12345).all()
        and np.abs(many.shares - counts / counts.sum(1)[:, None]).max() < 2e-3
    )


@pytest.mark.parametrize("shares", [[[50, 50], [33, 66]], [[100, 0], [0, 100]], [[50, 51], [49, 51]]])
def test_whole_percents_are_shares(shares: list[list[int]]) -> None:
    table = pd.DataFrame(shares, columns=["label:a", "label:b"])
    found = read_annotations(table)
    np.testing.assert_allclose(found.shares, np.array(shares) / np.sum(shares, 1)[:, None])
    assert not found.counted and "1 shares an item" in str(found) and "votes_column" in found.notes[0]
    found = read_annotations(table.assign(n=[2, 3]), votes_column="n")
    assert found.counted and found.votes.tolist() == [2, 3] and found.whole and not found.notes
    assert read_annotations(table.mul(2)).counted and read_annotations(table.assign(**{"label:c": [0, 7]})).counted


def test_shares_counts_and_percents_do_not_mix_in_silence() -> None:
    mixed = read_annotations(pd.DataFrame({"label:a": [0.5, 2], "label:b": [0.5, 5.5]}))
    assert "1 rows sum to 1, as shares do, and those of 1 rows to up to 7.5" in mixed.notes[0]
    off = read_annotations(pd.DataFrame({"label:a": [3, 2], "label:b": [4, 1], "n": [10, 3]}), votes_column="n")
    assert "the counts of 1 rows do not sum to n, the first sums to 7 with 10" in off.notes[0]


def test_errors_of_rounding_are_no_votes() -> None:
    found = read_annotations(pd.DataFrame({"label:a": [-1e-17, 0.5], "label:b": [1.0, 0.5]}))
    assert found.counts.tolist() == [[0, 1], [0.5, 0.5]]
    found = read_annotations(pd.DataFrame({"label:a": [1e-17, 2.9999999999], "label:b": [1.0, 3]}))
    assert found.counts.tolist() == [[0, 1], [3, 3]] and found.counted
    assert read_annotations(pd.DataFrame({"label:a": [1e-17, 0.2], "label:b": [0, 0.8]})).left_out == 1
    with pytest.raises(LDLError, match="are no counts, the first is '-0.001'"):
        read_annotations(pd.DataFrame({"label:a": [-0.001], "label:b": [1]}))
