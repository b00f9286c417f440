"""Columns of annotations: which hold items, raters and votes, and which stand beside votes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from ldl.annotations import read_annotations
from ldl.annotations.columns import VoteColumns, VoteOptions, find_columns, matching_columns
from ldl.errors import LDLError

WIDE = ["item", "rater1", "rater2", "x"]


def find(header: list[Any], **options: Any) -> VoteColumns:
    return find_columns(header, "the table", options=VoteOptions(**options))


@pytest.mark.parametrize("raters", [["rater1", "rater2"], ["Rater 1", "Rater 2"], ["rater_1", "rater_2"]])
@pytest.mark.parametrize("form", ["{}_confidence", "{} Time", "{}.comment", "confidence_{}"])
def test_descriptions_of_votes_are_beside_them(raters: list[str], form: str) -> None:
    beside = [form.format(name) for name in raters]
    found = find(["item", *raters, *beside, "x"], rater_columns="?ater*")
    assert found.raters == tuple(raters) and found.beside == tuple(beside)
    assert "x" not in found.all and set(beside) < set(found.all)


def test_descriptions_do_not_vote() -> None:
    table = pd.DataFrame([["a", 1, 2, 5, 5]], columns=["item", "r1", "r2", "r1_confidence", "r2_confidence"])
    found = read_annotations(table, rater_columns="r*", label_type="ordinal")
    assert found.labels.axes == ((1, 2),) and found.raters.tolist() == ["r1", "r2"]
    assert found.notes == (
        "the DataFrame: 'r1_confidence', 'r2_confidence' describe votes; they are neither votes nor features",
    )


def test_names_decide() -> None:
    found = find([*WIDE, "rater1_time"], rater_columns=["rater1", "rater1_time"])
    assert found.raters == ("rater1", "rater1_time") and not found.beside


@pytest.mark.parametrize("role", ["label", "rater"])
def test_a_pattern_for_numbered_columns(role: str) -> None:
    with pytest.raises(LDLError, match=f"the {role} columns 'r1', 'r2', 'rest' are numbered, except 'rest'"):
        find(["item", "r1", "r2", "rest"], **{f"{role}_columns": "r*"})


def test_a_pattern_leaves_columns_of_other_roles() -> None:
    found = find(["id", "site", "a", "b"], rater_columns="*", group_column="site")
    assert (found.item, found.group, found.raters) == ("id", "site", ("a", "b"))
    found = find(["id", "n", "a", "b"], label_columns="*", votes_column="n", item_column="id")
    assert (found.item, found.total, found.labels) == ("id", "n", ("a", "b"))


def test_columns_that_are_numbers() -> None:
    table = pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=[10, 2, 1])
    found = read_annotations(table, label_columns=[1, 2, 10], label_type="ordinal")
    assert found.labels.axes == ((1, 2, 10),) and found.counts.tolist() == [[3, 2, 1], [6, 5, 4]]
    raters = read_annotations(table.astype(str), rater_columns=[1, 2], label_type="ordinal")
    assert raters.raters.tolist() == [2, 1, 2, 1] and raters.items.tolist() == [0, 1]
    assert matching_columns([0, 1], 1, "the table") == [1]


def test_a_name_with_brackets_is_no_pattern() -> None:
    assert matching_columns(["s[1]", "s1", "s2"], ["s[1]"], "the table") == ["s[1]"]
    assert matching_columns(["s3", "s1", "s2"], ["s[12]"], "the table") == ["s1", "s2"]


def test_the_option_decides_the_layout() -> None:
    header = ["item", "label:a", "w1", "w2", "answer"]
    assert find(header).layout == "counts"
    assert find(header, rater_columns="w*").layout == "matrix" and find(header, rater_columns="w*").beside == (
        "label:a",
    )
    assert find(header, vote_column="answer").layout == "long"
    with pytest.raises(LDLError, match="label_columns are for counts and rater_columns for a matrix; pass one"):
        find(header, label_columns=["label:a"], rater_columns="w*")


def test_an_absent_column_is_an_error() -> None:
    options = ("item_column", "rater_column", "vote_column", "votes_column", "group_column")
    for option in options:
        with pytest.raises(LDLError, match="has no column 'ittem'; did you mean 'item'"):
            find(WIDE, rater_columns="rater*", **{option: "ittem"})


def test_unclear_columns_are_named() -> None:
    table = pd.DataFrame({"id": [1, 2], "image_id": ["a", "a"], "worker": [1, 2], "label": ["x", "y"]})
    found = read_annotations(table)
    assert found.items.tolist() == ["a"]
    assert found.notes == (
        "the DataFrame: column 'image_id' is read as the item, although 'id' may be it; pass item_column",
    )
    assert not read_annotations(table, item_column="image_id").notes
    assert len(read_annotations(table, item_column="id")) == 2


@pytest.mark.parametrize(
    ("options", "unused"),
    [
        ({"rater_columns": "r?", "votes_column": "n"}, "matrix layout, which has no use for votes_column 'n'"),
        ({"vote_column": "r1", "votes_column": "n"}, "long layout, which has no use for votes_column 'n'"),
        ({"label_columns": "r?", "rater_column": "n"}, "counts layout, which has no use for rater_column 'n'"),
        ({"label_columns": "r?", "vote_column": "n"}, "counts layout, which has no use for vote_column 'n'"),
    ],
)
def test_columns_of_another_layout_are_refused(options: dict[str, Any], unused: str) -> None:
    with pytest.raises(LDLError, match=unused):
        find(["item", "r1", "r2", "n"], **options)
