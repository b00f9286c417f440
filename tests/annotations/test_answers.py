"""The cells of votes: gaps, answers that are no votes, several labels in one vote, and rows that repeat a header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldl.annotations import Annotations, read_annotations
from ldl.errors import LDLError

GAPS = ["", " ", "nan", "NaN", "NA", "N/A", "None", "null", "<NA>", None, np.nan, pd.NA, pd.NaT]


def table(votes: list[Any]) -> pd.DataFrame:
    """Return votes of two raters on each item."""
    raters = [f"w{number % 2}" for number in range(len(votes))]
    return pd.DataFrame({"item": [f"i{number // 2}" for number in range(len(votes))], "rater": raters, "label": votes})


def votes_of(found: Annotations) -> dict[str, float]:
    return dict(zip(found.labels.names, found.counts.sum(0)))


@pytest.mark.parametrize("layout", ["long", "matrix"])
@pytest.mark.parametrize("gap", GAPS, ids=repr)
def test_gaps_are_no_label(gap: Any, layout: str) -> None:
    votes, options = table(["cat", gap, "dog", " cat"]), {}
    if layout == "matrix":
        votes = votes.pivot(index="item", columns="rater", values="label").reset_index()
        options = {"rater_columns": "w*"}
    found = read_annotations(votes, **options)
    assert votes_of(found) == {"cat": 2, "dog": 1} and len(found.raters) == 3


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", None])
def test_blanks_do_not_count_in_any_source(kind: str | None, tmp_path: Path) -> None:
    votes = pd.DataFrame({"item": ["a ", "a", " b"], "rater": ["w", " v", "w "], "label": ["x", " x", "y "]})
    source: Any = votes
    if kind is not None:
        source = tmp_path / f"votes.{kind}"
        separator = "\t" if kind == "tsv" else ","
        votes.to_parquet(source) if kind == "parquet" else votes.to_csv(source, sep=separator, index=False)
    found = read_annotations(source)
    assert found.items.tolist() == ["a", "b"] and found.counts.tolist() == [[2, 0], [0, 1]]
    assert found.raters.tolist() == ["w", "v", "w"]


def test_blanks_around_the_label_of_a_column() -> None:
    assert read_annotations(pd.DataFrame({"label: q": [1], "label:z ": [2]})).labels.names == ("q", "z")


@pytest.mark.parametrize("word", ["none", "?", "n/a"])
def test_a_word_for_a_gap_may_be_a_label(word: str) -> None:
    found = read_annotations(table(["cat", word, "cat", word]))
    assert votes_of(found) == {"cat": 2} and f"the entries '{word}' (2) are read as gaps" in found.notes[0]
    found = read_annotations(table(["cat", word]), order=["cat", word], label_type="nominal")
    assert votes_of(found) == {"cat": 1, word: 1} and found.labels.kind == "nominal" and not found.notes
    counts = read_annotations(pd.DataFrame({"label:cat": [1], f"label:{word}": [2]}))
    assert votes_of(counts) == {"cat": 1, word: 2}


@pytest.mark.parametrize(
    ("votes", "no_vote"),
    [
        ([1, 99, 2, -1], [99, -1]),
        ([1.0, 99.0, 2.0, -1.0], ["99", "-1.0"]),
        (["1", "skip", "2", "not sure "], ["skip", "not sure"]),
    ],
)
def test_answers_that_are_no_votes(votes: list[Any], no_vote: list[Any]) -> None:
    found = read_annotations(table(votes), no_vote=no_vote)
    assert (
        votes_of(found) == {"1": 1, "2": 1} and found.labels.kind == "ordinal" and found.raters.tolist() == ["w0"] * 2
    )
    assert "(1) are no votes and left out" in found.notes[0]


def test_answers_that_are_no_votes_in_counts() -> None:
    counts = pd.DataFrame({"label:a": [1, 2, 0], "label:skip": [3, 0, 2], "label:b": [0, 1, 0]})
    found = read_annotations(counts, no_vote="skip")
    assert found.counts.tolist() == [[1, 0], [2, 1]] and found.left_out == 1 and found.labels.names == ("a", "b")
    assert "5 votes of 'skip' are no votes" in found.notes[0]
    total = read_annotations(counts.assign(n=[8, 3, 2]), votes_column="n", no_vote="skip")
    assert total.counts.tolist() == [[2, 0], [2, 1]]  # of 8 votes, 6 are skipped
    shares = pd.DataFrame({"label:a": [0.5, 0.2], "label:u": [0.2, 0.0], "label:b": [0.3, 0.8]})
    np.testing.assert_allclose(read_annotations(shares, no_vote="u").counts, [[0.625, 0.375], [0.2, 0.8]])


def test_answers_that_nobody_gave() -> None:
    found = read_annotations(table(["a", "Not sure"]), no_vote="not sure")
    assert found.notes == ("the DataFrame: no_vote has 'not sure', which nobody answered; did you mean 'Not sure'?",)
    with pytest.raises(LDLError, match="has no vote"):
        read_annotations(table(["a", "a"]), no_vote="a")


@pytest.mark.parametrize(
    "several",
    ["a;b", "a | b", "a, b", '["a", "b"]', "['a', 'b']", ["a", "b"], ("a", "b"), {"a", "b"}, np.array(["a", "b"])],
    ids=lambda several: f"{type(several).__name__} {sorted(several)}",
)
def test_several_labels_in_one_vote(several: Any) -> None:
    votes = table(["a", "b", several, "a"])
    with pytest.raises(LDLError, match="1 votes hold several labels, the first is .*; pass multiple count") as error:
        read_annotations(votes)
    assert "\n" not in str(error.value)
    found = read_annotations(votes, multiple="count")
    assert found.counts.tolist() == [[1, 1], [2, 1]] and found.raters.tolist() == ["w0", "w1", "w0", "w0", "w1"]
    assert "1 votes hold several labels, and each counts" in found.notes[0]


def test_several_numbers_in_one_vote() -> None:
    found = read_annotations(table([1, 2, [1, 2.0], "[1]"]), multiple="count")
    assert votes_of(found) == {"1": 3, "2": 2}


def test_labels_with_separators() -> None:
    votes = table(["a", "b", "a;b", "[1, 2]"])
    found = read_annotations(votes, order=["a", "b", "a;b", "[1, 2]"], label_type="nominal")
    assert votes_of(found) == {"a": 1, "b": 1, "a;b": 1, "[1, 2]": 1}
    assert votes_of(read_annotations(table(["red, blue", "green, blue"]))) == {"green, blue": 1, "red, blue": 1}
    pairs = table(["a;b", "b;c"])
    assert "pass multiple count" in read_annotations(pairs).notes[0]
    assert votes_of(read_annotations(pairs, multiple="count")) == {"a": 1, "b": 2, "c": 1}


def test_a_dictionary_is_no_vote() -> None:
    with pytest.raises(LDLError, match="is no label; give text, a number or a list of them"):
        read_annotations(table([{"choice": "a"}]))


SURVEY = """ResponseId,Start Date,clip,r1,r2
{}R1,x,c1,yes,no
R2,x,c2,no,no
R3,x,c3,yes,yes
R4,x,c4,no,yes
"""


@pytest.mark.parametrize(
    "heading",
    [
        'Response ID,Start Date,Which clip?,Toxic?,Rude?\n"{""ImportId"":""_id""}",,"{""ImportId"":""q1""}",,\n',
        "Response ID,StartDate,Which clip?,Toxic?,Rude?\n",
        'a,b,Which clip?,Toxic?,Rude?\n"{""ImportId"":""_id""}",,c,d,e\n',
    ],
)
def test_headings_of_surveys_are_no_votes(heading: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(SURVEY.format(heading))
    found = read_annotations(tmp_path / "a.csv", rater_columns="r[0-9]", item_column="clip")
    assert votes_of(found) == {"no": 4, "yes": 4} and found.items.tolist() == ["c1", "c2", "c3", "c4"]
    assert "rows repeat or explain the header, the first is line 2; they are left out" in found.notes[0]


def test_a_row_of_questions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(SURVEY.format("-,-,Which?,How toxic?,How rude?\n"))
    options: dict[str, Any] = {"rater_columns": "r[0-9]", "item_column": "clip"}
    with pytest.raises(
        LDLError, match="the first row has answers that no other row has, 'How toxic\\?', 'How rude\\?'"
    ):
        read_annotations(tmp_path / "a.csv", **options)
    order = ["yes", "no", "How toxic?", "How rude?"]
    assert len(read_annotations(tmp_path / "a.csv", order=order, **options)) == 5
    votes = pd.DataFrame({"w1": ["x", "a", "b", "a", "b"], "w2": ["x", "b", "a", "b", "a"]})
    assert len(read_annotations(votes, rater_columns="w*")) == 5


def test_a_row_of_questions_in_single_votes() -> None:
    rows = [["Which?", "Who?", "How toxic?"]] + [
        [f"c{n // 2}", f"w{n % 2}", "yes" if n % 4 < 2 else "no"] for n in range(8)
    ]
    votes = pd.DataFrame(rows, columns=["item", "rater", "label"])
    with pytest.raises(LDLError, match="the first row has answers that no other row has, 'Who\\?', 'How toxic\\?'"):
        read_annotations(votes)
    assert len(read_annotations(votes.iloc[::-1])) == 5 and len(read_annotations(votes.iloc[1:])) == 4


def test_a_header_within_a_file_is_no_vote(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,rater,label\na,1,x\nitem,rater,label\nb,1,y\n")
    found = read_annotations(tmp_path / "a.csv")
    assert found.labels.names == ("x", "y") and "the first is line 3" in found.notes[0]
    votes = pd.DataFrame({"item": ["i", "j"], "A": ["A", "B"], "B": ["B", "A"]})  # raters named like labels
    assert read_annotations(votes, rater_columns=["A", "B"]).counts.tolist() == [[1, 1], [1, 1]]
    named = pd.DataFrame({"item": ["Item", "b"], "rater": ["w", "w"], "label": ["x", "y"]})  # an item of this name
    assert read_annotations(named).items.tolist() == ["Item", "b"]


def test_an_answer_is_a_label_or_no_vote() -> None:
    long = pd.DataFrame({"item": ["x", "y"], "label": [1, 9]})
    counts = pd.DataFrame({"label:1": [2, 1], "label:9": [0, 1]})
    for table in (long, counts):
        with pytest.raises(LDLError, match="'9' is in the order of labels and in no_vote; leave it out of one"):
            read_annotations(table, order=[1, 9], no_vote=9)
    with pytest.raises(LDLError, match="all label columns are in no_vote"):
        read_annotations(counts, no_vote=[1, 9])


@pytest.mark.parametrize("votes", [["1", "1", "2"], "[1, 1, 2]", "1;1;2"], ids=repr)
def test_all_votes_of_a_list_count(votes: Any) -> None:
    lists = pd.DataFrame({"item": ["x", "y"], "label": [votes, "2"]})
    with pytest.raises(LDLError, match="1 votes hold several labels"):
        read_annotations(lists.assign(label=[[1, 1], "2"]))
    found = read_annotations(lists, multiple="count")
    assert found.counts.tolist() == [[2, 1], [0, 1]]
