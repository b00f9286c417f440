"""The labels of votes: numbers are values, words are classes, and notes say what could be read in another way."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from ldl.annotations import Annotations, read_annotations
from ldl.annotations.labels import label_values
from ldl.errors import LDLError


def read(votes: list[Any], **options: Any) -> Annotations:
    """Return single votes, of one rater each, on one item."""
    raters = [f"w{number}" for number in range(len(votes))]
    return read_annotations(pd.DataFrame({"item": "a", "rater": raters, "label": votes}), **options)


def scale(found: Annotations) -> dict[float, float]:
    """Return the votes by value."""
    return dict(zip(found.labels.axes[0], found.counts[0]))


@pytest.mark.parametrize("votes", [[2, 3, 5], [2.0, 3.0, 5.0], ["2", "3", "5"], ["2.0", "03", " 5"]])
@pytest.mark.parametrize("order", [[1, 2, 3, 5], ["1", "2", "3", "5"], [1.0, 2.0, 3.0, 5.0]])
def test_numbers_of_an_order_are_values(votes: list[Any], order: list[Any]) -> None:
    found = read(votes, order=order)
    assert scale(found) == {1: 0, 2: 1, 3: 1, 5: 1} and found.labels.names == ("1", "2", "3", "5")
    assert not found.notes


def test_numbers_of_an_order_are_values_in_every_layout() -> None:
    order = [1, 2, 10]
    counts = read_annotations(pd.DataFrame({"label:10": [3], "label:2": [1]}), order=order)
    matrix = read_annotations(pd.DataFrame({"w1": [10.0], "w2": [2.0]}), rater_columns="w*", order=order)
    prefixed = read(["star-2", "star-10"], order=["star-1", "star-2", "star-10"])
    assert scale(counts) == {1: 0, 2: 1, 10: 3}
    assert scale(matrix) == scale(prefixed) == {1: 0, 2: 1, 10: 1}


@pytest.mark.parametrize("order", [[3, 2, 1], ["1", "2", "many"]])
def test_an_order_that_is_no_rising_numbers_has_places(order: list[Any]) -> None:
    found = read([1, 2], order=order)
    assert found.labels.axes == ((0, 1, 2),) and found.labels.names == tuple(map(str, order))
    assert "so values are the places 0 to 2 in the order" in found.notes[0]


def test_an_order_names_a_label_once() -> None:
    with pytest.raises(LDLError, match="has a label twice"):
        read([1], order=[1, "1.0"])


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (["star-1", "star-2", "star-10"], [1, 2, 10]), (["r-1", "r-2"], [1, 2]), (["q.1", "q.10"], [1, 10]),
        (["r1", "r2"], [1, 2]), (["rating_-1", "rating_0"], [-1, 0]), (["r-1", "r0", "r1"], [-1, 0, 1]),
        (["-1", "0", "1"], [-1, 0, 1]), (["-.5", "-.25"], [-0.5, -0.25]), (["v1.1", "v1.25"], [1.1, 1.25]),
        (["star--1", "star--2"], [-1, -2]), (["1", "01"], [1, 1]),
        (["2020-1", "2020-2"], None), (["1_0", "1_1x"], None), (["a", "b"], None), (["٣", "٤"], None),
    ],
)  # fmt: skip
def test_numbers_in_names(names: list[str], values: list[float] | None) -> None:
    assert label_values(names, "the table") == values


def test_a_hyphen_behind_letters_is_no_minus_in_columns() -> None:
    table = pd.DataFrame({f"star-{number}": [number] for number in range(1, 6)})
    assert scale(read_annotations(table, label_columns="star-*")) == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}


def test_a_number_is_one_label_however_it_is_written() -> None:
    table = pd.DataFrame({"w1": ["1", "2"], "w2": [1.0, 2.0], "w3": ["1.0", " 2"], "w4": [1, 2], "w5": ["unsure", "2"]})
    found = read_annotations(table, rater_columns="w*")
    assert found.labels.names == ("1", "2", "unsure") and found.counts.tolist() == [[4, 0, 1], [0, 5, 0]]
    assert read(["01", "1", "x"]).labels.names == ("01", "1", "x")  # a code beside words keeps its zeros
    for columns in (["label:1", "label:1.0", "label:x"], ["label:1", "label:01"]):
        with pytest.raises(LDLError, match="name a label twice; add them up"):
            read_annotations(pd.DataFrame([range(1, len(columns) + 1)], columns=columns))


def test_long_numbers_stay_apart() -> None:
    found = read([1234567.0, 1234568.0, 1234568.0], label_type="nominal")
    assert found.labels.names == ("1234567", "1234568") and found.counts.tolist() == [[1, 2]]
    assert read([0.1234567, 0.1234568], label_type="nominal").labels.names == ("0.1234567", "0.1234568")


@pytest.mark.parametrize("votes", [[0, 1, 2, 3], ["0", "1", "2", "3"], ["class_0", "class_1", "class_2", "class_3"]])
def test_numbers_may_be_codes(votes: list[Any]) -> None:
    found = read(votes)
    assert found.labels.axes == ((0, 1, 2, 3),) and "pass label_type nominal" in found.notes[0]
    codes = read(votes, label_type="nominal")
    assert codes.labels.kind == "nominal" and not codes.notes and codes.counts.tolist() == [[1, 1, 1, 1]]
    assert not read(votes, label_type="ordinal").notes


def test_numbers_stay_in_their_order_beside_a_word() -> None:
    votes = [1, 2, 10] * 5
    found = read([*votes, "not sure"])
    assert found.labels.kind == "nominal" and found.labels.names == ("1", "2", "10", "not sure")
    assert "because 'not sure' (1 of 16 votes) is no number" in found.notes[0] and "as no_vote" in found.notes[0]
    with pytest.raises(LDLError, match="'not sure' are no numbers.*in order, or .*in no_vote"):
        read([*votes, "not sure"], label_type="ordinal")
    assert scale(read([*votes, "not sure"], no_vote="not sure")) == {1: 5, 2: 5, 10: 5}


@pytest.mark.parametrize(
    ("code", "others"), [(99, [1, 2, 3, 4, 5]), (9, [1, 2, 3, 4, 5]), (-1, [1, 2, 3]), (-99, [0, 1, 2])]
)
def test_a_number_apart_from_a_scale(code: int, others: list[int]) -> None:
    found = read([*others, code])
    assert f"the label {code} (1 of {len(others) + 1} votes) stands apart from the others" in found.notes[0]
    assert scale(read([*others, code], no_vote=[code])) == dict.fromkeys(others, 1)
    assert "apart" not in "".join(read([-2, -1, 0, 1, 2, 4]).notes)


def test_labels_that_begin_with_numbers() -> None:
    assert "begin with numbers and are read as nominal" in read(["1 star", "2 stars", "10 stars"]).notes[0]


@pytest.mark.parametrize(
    "pair", [("Cat", "cat"), ("cafe\u0301", "caf\u00e9"), ("x\u200b", "x"), ("two  words", "two words"), ("ﬁt", "fit")]
)
def test_labels_that_look_alike(pair: tuple[str, str]) -> None:
    (note,) = read([*pair, pair[0], "other"]).notes
    assert "look alike and are kept apart" in note and "(2 votes)" in note and "(1 votes)" in note
    assert all(ascii(name)[1:-1] in note for name in pair)
    columns = read_annotations(pd.DataFrame([[1, 2]], columns=[f"label:{name}" for name in pair]))
    assert len(columns.labels) == 2 and "look alike" in columns.notes[0]


def test_items_and_raters_that_look_alike() -> None:
    table = pd.DataFrame(
        {"item": ["é", "e\u0301"], "rater": ["w\u200b", "w"], "label": ["x", "y"], "site": ["é", "e\u0301"]}
    )
    found = read_annotations(table, group_column="site")
    assert [note.split(": the ")[1].split()[0] for note in found.notes] == ["items", "raters", "groups"]
    assert not read_annotations(table.assign(item=["A", "a"], rater=["B", "b"])).notes


@pytest.mark.parametrize("layout", ["long", "matrix"])
@pytest.mark.parametrize(("categories", "axis"), [(["low", "mid", "high"], (0, 1, 2)), ([1, 2, 10], (1, 2, 10))])
def test_the_order_of_a_categorical(layout: str, categories: list[Any], axis: tuple[float, ...]) -> None:
    votes = pd.Categorical([categories[0], categories[2]], categories, ordered=True)
    table = pd.DataFrame({"item": ["a", "b"], "rater": ["w", "w"], "label": votes})
    options = {} if layout == "long" else {"rater_columns": ["label"]}
    found = read_annotations(table, **options)
    assert found.labels.axes == (axis,) and found.labels.names == tuple(map(str, categories))
    assert found.counts.tolist() == [[1, 0, 0], [0, 0, 1]] and not found.notes
    assert read_annotations(table, label_type="nominal", **options).labels.kind == "nominal"


def test_categoricals_of_different_orders() -> None:
    columns = {f"w{n}": pd.Categorical(["a"], order, ordered=True) for n, order in enumerate((["a", "b"], ["b", "a"]))}
    with pytest.raises(LDLError, match="different ordered categories; list all labels in order"):
        read_annotations(pd.DataFrame(columns), rater_columns="w*")
    assert len(read_annotations(pd.DataFrame(columns), rater_columns="w*", order=["a", "b"])) == 1


def test_ordered_categories_in_a_file(tmp_path: Any) -> None:
    votes = pd.Categorical(["low", "high"], ["low", "mid", "high"], ordered=True)
    pd.DataFrame({"item": ["a", "b"], "label": votes}).to_parquet(tmp_path / "a.parquet")
    assert read_annotations(tmp_path / "a.parquet").labels.names == ("low", "mid", "high")


def test_unknown_choices() -> None:
    for option in ("label_type", "duplicates", "multiple"):
        with pytest.raises(LDLError, match=f"unknown {option} 'nominl'; one of"):
            read(["a"], **{option: "nominl"})


def test_python_gets_each_note_as_a_warning() -> None:
    with pytest.warns(UserWarning, match="are read as numbers on a scale") as caught:
        found = read([1, 2])
    assert [str(warning.message) for warning in caught] == list(found.notes)
