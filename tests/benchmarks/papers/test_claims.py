"""Verdicts."""

from __future__ import annotations

import math

import pytest

from benchmarks.common.claims import Number, Statement, behind_the_digits, from_json, judge, shows_the_same, to_json


@pytest.mark.parametrize(
    ("ours", "published", "deviation", "lower", "expected"),
    [
        ((0.10, 0.12), 0.10, 0.02, True, "repeated"),
        ((0.13, 0.13), 0.10, 0.02, True, "not repeated"),
        ((0.13, 0.13), 0.10, 0.02, False, "beaten"),
        ((0.07, 0.07), 0.10, 0.02, True, "beaten"),
        ((0.08, 0.12), 0.11, None, True, "repeated"),
        ((0.08, 0.12), 0.14, None, True, "beaten"),
        ((0.08, 0.12), 0.06, None, True, "not repeated"),
        ((0.10004,), 0.1, None, True, "repeated"),
        ((0.1001,), 0.1, None, True, "not repeated"),
        ((0.1, 0.2), None, None, True, ""),
    ],
)
def test_a_number_is_judged_by_the_printed_deviation_or_else_by_ours(ours, published, deviation, lower, expected):
    assert Number("kl", ours, published, deviation, lower).verdict == expected


def test_what_was_tried_and_peers_are_not_judged():
    assert Number("kl", (1.0,), 2.0, attempt=True).verdict == Number("kl", (1.0,), 2.0, peer=True).verdict == ""
    assert Statement("falls", False, "", attempt=True).verdict == ""


def test_an_item_is_repeated_only_where_all_its_claims_are():
    good, better, bad = (Number("kl", (value,), 1.0, 0.1) for value in (1.0, 0.5, 2.0))
    assert judge([good, better, bad]) == "not repeated"
    assert judge([good, better]) == "repeated"
    assert judge([good, better, better]) == "beaten"
    assert judge([good, Statement("falls", True, "1, 0")]) == "repeated"
    assert judge([Statement("falls", False, "0, 1")]) == "not repeated"
    assert judge([Number("foil", (1.0,))]) == "not repeated"


def test_claims_are_read_as_they_were_written():
    claims = [Number("kl", (0.1, 0.2), 0.1, None, False, 3, True), Statement("falls", True, "1, 0", "2, 1", False)]
    assert [from_json(to_json(claim)) for claim in claims] == claims


def test_seconds_need_not_come_out_the_same():
    one, other = (Statement("faster", True, text, exact=False) for text in ("2 s", "3 s"))
    assert shows_the_same(one, other) and not shows_the_same(one, Statement("faster", False, "3 s", exact=False))
    assert not shows_the_same(Statement("falls", True, "1"), Statement("falls", True, "2"))


def test_every_digit_that_is_shown_counts_and_what_is_behind_is_told():
    one = Number("kl", (0.1, 0.2))
    for other in (Number("kl", (0.1001, 0.2002)), Number("kl", (0.1, 0.2), 0.15), Number("kl", (0.1, 0.2), digits=3)):
        assert not shows_the_same(one, other)
    near = Number("kl", (0.1, 0.2 * (1 + 1e-9)))
    assert shows_the_same(one, near) and behind_the_digits(one, near) == pytest.approx(1e-9)
    assert behind_the_digits(one, one) == 0 == behind_the_digits(Number("kl", (math.nan,)), Number("kl", (math.nan,)))
    assert behind_the_digits(one, Number("kl", (0.1, 0.2, 0.15))) == math.inf
    assert behind_the_digits(one, Statement("falls", True, "1")) == 0
