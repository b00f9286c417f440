"""Votes in three layouts: the same annotations, and what is no vote is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldl.annotations import Annotations, read_annotations
from ldl.errors import LDLError

VOTES = {
    ("a.png", "w1"): "cat", ("a.png", "w2"): "dog", ("a.png", "w3"): "cat",
    ("b.png", "w1"): "dog", ("b.png", "w3"): "dog", ("c.png", "w2"): "bird",
}  # fmt: skip
COUNTS = {"a.png": [0, 2, 1], "b.png": [0, 0, 2], "c.png": [1, 0, 0]}


def long() -> pd.DataFrame:
    return pd.DataFrame(
        [[item, rater, vote] for (item, rater), vote in VOTES.items()], columns=["task", "worker", "label"]
    )


def counted() -> pd.DataFrame:
    names = ["label:bird", "label:cat", "label:dog"]
    return pd.DataFrame([[item, *row] for item, row in COUNTS.items()], columns=["path", *names])


def matrix() -> pd.DataFrame:
    table = long().pivot(index="task", columns="worker", values="label").reset_index()
    return table.rename_axis(columns=None).rename(columns={"task": "path"})


def check(found: Annotations) -> None:
    assert found.labels.names == ("bird", "cat", "dog") and found.labels.kind == "nominal"
    assert {item: row.tolist() for item, row in zip(found.items, found.counts)} == COUNTS
    np.testing.assert_allclose(found.shares.sum(1), 1)
    assert found.votes.tolist() == [3, 2, 1] and found.whole and len(found) == 3


@pytest.mark.parametrize("file", ["votes.csv", "votes.parquet", None])
@pytest.mark.parametrize(
    ("table", "options"), [(long(), {}), (counted(), {}), (matrix(), {"rater_columns": ["w*"]})], ids=lambda x: ""
)
def test_three_layouts_hold_the_same_votes(
    table: pd.DataFrame, options: dict[str, Any], file: str | None, tmp_path: Path
) -> None:
    source: Any = table
    if file is not None:
        source = tmp_path / file
        table.to_csv(source, index=False) if file.endswith("csv") else table.to_parquet(source)
    found = read_annotations(source, **options)
    check(found)
    known = "" if found.layout == "counts" else ", 3 raters"
    assert str(found) == f"{found.layout} layout, 3 items, 3 nominal labels, 1 to 3 votes an item{known}"
    assert (found.raters is None) == (found.layout == "counts")


def test_keys_stay_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,label:a,label:b\n007,1,2\nNA,3,4\n")
    assert read_annotations(tmp_path / "a.csv").items.tolist() == ["007", "NA"]


def test_shares_and_the_number_of_votes() -> None:
    table = pd.DataFrame({"r1": [60.0, 20, 0], "r2": [20.0, 20, 0], "r10": [20.0, 60, 0], "votes": [10, 200_000, 5]})
    found = read_annotations(table, label_columns=["r*"], votes_column="votes")
    assert found.labels.kind == "ordinal" and found.labels.axes == ((1.0, 2.0, 10.0),)
    np.testing.assert_allclose(found.counts, [[6, 2, 2], [40_000, 40_000, 120_000]])
    assert found.left_out == 1 and str(found).endswith("; 1 items without a vote are left out")
    with pytest.raises(LDLError, match="1 items have no vote; remove them, or pass unlabelled='drop'"):
        read_annotations(table, label_columns=["r*"], unlabelled="error")


def test_columns_in_any_order_are_sorted_by_their_numbers() -> None:
    found = read_annotations(pd.DataFrame({"label:10": [1], "label:2": [2], "label:-1.5": [3]}))
    assert found.labels.axes == ((-1.5, 2.0, 10.0),) and found.counts.tolist() == [[3, 2, 1]]


def test_ordinal_votes_and_an_order_of_ones_own() -> None:
    table = pd.DataFrame({"item": [1, 1, 2], "rater": ["a", "b", "a"], "rating": [3, 1, 10]})
    assert read_annotations(table).labels.axes == ((1.0, 3.0, 10.0),)
    table["rating"] = ["ok", "good", "ok"]
    found = read_annotations(table, order=["bad", "ok", "good"])
    assert found.labels.kind == "ordinal" and found.labels.names == ("bad", "ok", "good")
    assert found.counts.tolist() == [[0, 1, 1], [0, 1, 0]]
    with pytest.raises(LDLError, match="1 votes are for no label of the order, the first is 'good'; the labels are"):
        read_annotations(table, order=["bad", "ok"])


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"label:a": [1, -2], "label:b": [1, 1]}, {}, "1 entries of 'label:a' are no counts, the first is '-2'"),
        ({"label:a": ["1", "many"]}, {}, "1 entries of 'label:a' are no counts, the first is 'many' in row 1"),
        ({"label:a": [1.0, np.inf]}, {}, "the first is 'inf' in row 1"),
        ({"item": ["x", "x"], "label:a": [1, 2]}, {}, "1 rows repeat an item of item, the first is 'x'; add up"),
        ({"item": ["x", None], "label:a": [1, 2]}, {}, "1 rows have no item, the first is row 1"),
        (
            {"item": ["x", "x"], "rater": ["r", "r"], "label": ["a", "b"]}, {},
            "1 votes are by a rater who has voted on the item before, the first by 'r' on 'x'; keep one",
        ),
        ({"item": ["x"], "rater": [None], "label": ["a"]}, {}, "some votes have no item or no rater"),
        ({"item": ["x"], "rater": ["r"], "label": [None]}, {}, "has no vote; fill in label"),
        ({"item": ["x"], "number": [1]}, {}, "has no rater_column and vote_column; pass the names, or label_columns"),
        ({"item": ["x"], "cat": [1]}, {"label_columns": ["cats"]}, r"has no column 'cats'; did you mean 'cat'"),
        ({"item": ["x"], "label:a": [1]}, {"layout": "matrix"}, "has no rater columns; pass rater_columns"),
        ({"label:a": [1]}, {"votes_column": "vote"}, "has no column 'vote'"),
    ],
)  # fmt: skip
def test_what_is_no_vote_is_named(table: dict[str, list[Any]], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message) as error:
        read_annotations(pd.DataFrame(table), **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"a\n\xff\n", b'"a\n'])
def test_a_file_that_is_no_table(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(LDLError, match="a.csv cannot be read as a table: ") as error:
        read_annotations(tmp_path / "a.csv")
    assert "\n" not in str(error.value)


def test_real_sets(ldl_data: Path) -> None:
    readings = read_annotations(ldl_data / "lidc" / "readings.csv", vote_column="malignancy")
    assert (len(readings), int(readings.votes.sum())) == (2673, 6859) and readings.labels.axes == ((1, 2, 3, 4, 5),)
    names = (ldl_data / "cifar10h" / "counts.csv").read_text().splitlines()[0].split(",")[1:11]
    objects = read_annotations(ldl_data / "cifar10h" / "counts.csv", label_columns=names)
    assert len(objects) == 10_000 and (objects.votes.min(), objects.votes.max()) == (47, 63)


def test_groups_of_items() -> None:
    for table, options in ((long(), {}), (counted(), {}), (matrix(), {"rater_columns": ["w*"]})):
        item = "task" if "task" in table else "path"
        table["patient"] = table[item].map({"a.png": "p1", "b.png": "p2", "c.png": "p1"})
        found = read_annotations(table, group_column="patient", **options)
        assert dict(zip(found.items, found.groups)) == {"a.png": "p1", "b.png": "p2", "c.png": "p1"}
        joined, _ = found.join(["c.png", "b.png", "a.png"], "the table")
        assert joined.groups.tolist() == ["p1", "p2", "p1"]
    table = long().assign(patient=["p1", "p2", "p1", "p2", "p2", "p1"])
    with pytest.raises(LDLError, match="1 items are in several groups of patient, the first is 'a.png'"):
        read_annotations(table, group_column="patient")
    with pytest.raises(LDLError, match="1 items have no patient, the first is 'c.png'"):
        read_annotations(table.assign(patient=["p"] * 5 + [None]), group_column="patient")


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
