"""Votes in three layouts: the same annotations, and what is no vote is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldl.annotations import Annotations, read_annotations
from ldl.errors import LDLError
from ldl.labels import LabelSpace

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
        ({"item": ["x"], "number": [1]}, {}, "has no vote_column; pass the names, or label_columns"),
        ({"item": ["x"], "cat": [1]}, {"label_columns": ["cats"]}, r"has no column 'cats'; did you mean 'cat'"),
        ({"item": ["x"], "label:a": [1]}, {"layout": "matrix"}, "has no rater columns; pass rater_columns"),
        ({"label:a": [1]}, {"votes_column": "vote"}, "has no column 'vote'"),
    ],
)  # fmt: skip
def test_what_is_no_vote_is_named(table: dict[str, list[Any]], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message) as error:
        read_annotations(pd.DataFrame(table), **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no item_column .* It has none"),
        (b"a\n\xff\n", "a.csv is no text in UTF-8: byte 2 is 0xff, in line 2"),
        (b'"a\n', "has no item_column .* It has 'a'"),
        (b"item;rater;label\na;b;c\n", "a.csv: semicolons stand between its fields; write it with commas"),
        (b"item\trater\tlabel\na\tb\tc\n", "a.csv: tabs stand between its fields"),
        (b"item,label:a,label:a\nx,1,2\n", "a.csv: column 'label:a' is there twice"),
        (b"item,rater,label\na,b\n", "a.csv: line 2 has 2 fields, line 1 has 3"),
        (b"item,label:a\n", "a.csv: none of 0 items has a vote"),
        (b"item,label:a,label:b\nx,0,0\ny,0,\n", "a.csv: none of 2 items has a vote"),
        (b"label:a,label:b,n\n1,0,0\n", "a.csv: none of 1 items has a vote"),
    ],
)
def test_a_file_that_is_no_table(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(LDLError, match=message) as error:
        read_annotations(tmp_path / "a.csv", votes_column="n" if b",n" in content else None)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["votes.feather", "votes.xlsx", "votes"])
def test_other_kinds_of_files_are_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\xff")
    with pytest.raises(LDLError, match=f"{name}: unknown kind of file; save the votes as .csv"):
        read_annotations(tmp_path / name)


def test_blanks_around_names_labels_and_items_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('task , worker, label \n"a ",w,x\na, v ,"x "\n a,u, x\n')
    found = read_annotations(tmp_path / "a.csv")
    assert found.items.tolist() == ["a"] and found.labels.names == ("x",) and found.counts.tolist() == [[3]]


def test_words_for_gaps_beside_numbers(tmp_path: Path) -> None:
    """R writes NA for a gap. It is no label, unless an order lists it."""
    (tmp_path / "a.csv").write_text("item,w1,w2\na,1,NA\nb,2,1.0\nc,NA,nan\n")
    found = read_annotations(tmp_path / "a.csv", rater_columns="w*")
    assert found.labels.axes == ((1.0, 2.0),) and found.counts.tolist() == [[1, 0], [1, 1]] and found.left_out == 1
    (tmp_path / "a.csv").write_text("item,w1,w2\na,yes,NA\nb,no,yes\n")
    found = read_annotations(tmp_path / "a.csv", rater_columns="w*")
    assert found.labels.names == ("no", "yes") and "the entries 'NA' (1) are read as gaps" in found.notes[0]
    listed = {"order": ["yes", "no", "NA"], "label_type": "nominal"}
    found = read_annotations(tmp_path / "a.csv", rater_columns="w*", **listed)
    assert found.labels.names == ("yes", "no", "NA") and found.labels.kind == "nominal" and not found.notes
    (tmp_path / "a.csv").write_text("item,label:a,label:b\nx,NA,3\n")
    assert read_annotations(tmp_path / "a.csv").counts.tolist() == [[0, 3]]


def test_equal_numbers_are_one_label_and_infinity_is_none() -> None:
    table = pd.DataFrame({"item": [1, 1, 2], "rater": [1, 2, 1], "label": ["1", "1.0", "02"]})
    assert read_annotations(table).counts.tolist() == [[2, 0], [0, 1]]
    with pytest.raises(LDLError, match="the label columns 'label:1', 'label:1.0' name a label twice; add them up"):
        read_annotations(pd.DataFrame({"label:1": [1], "label:1.0": [2]}))
    for column in ("label:inf", "label:nan"):
        with pytest.raises(LDLError, match=f"the label '{column[6:]}' is beside numbers and not finite"):
            read_annotations(pd.DataFrame({column: [1], "label:1": [2]}))


@pytest.mark.parametrize("layout", ["counts", "long", "matrix"])
def test_an_order_holds_in_every_layout(layout: str) -> None:
    tables = {
        "counts": (pd.DataFrame({"item": ["a", "b"], "high": [1, 0], "low": [1, 0], "mid": [0, 1]}),
                   {"label_columns": ["high", "low", "mid"]}),
        "long": (pd.DataFrame({"item": ["a", "a", "b"], "rater": [1, 2, 1], "label": ["high", "low", "mid"]}), {}),
        "matrix": (pd.DataFrame({"item": ["a", "b"], "w1": ["high", "mid"], "w2": ["low", None]}),
                   {"rater_columns": "w*"}),
    }  # fmt: skip
    table, options = tables[layout]
    found = read_annotations(table, order=["low", "mid", "high"], **options)
    assert found.labels.kind == "ordinal" and found.labels.names == ("low", "mid", "high")
    assert found.counts.tolist() == [[1, 0, 1], [0, 1, 0]]
    with pytest.raises(LDLError, match="'high'"):
        read_annotations(table, order=["low", "mid"], **options)
    with pytest.raises(LDLError, match="has a label twice; give every label one place"):
        read_annotations(table, order=["low", "low", "mid", "high"], **options)


@pytest.mark.parametrize("file", ["votes.parquet", None])
def test_a_named_index_is_a_column(file: str | None, tmp_path: Path) -> None:
    table = counted().set_index("path")
    if file is not None:
        table.to_parquet(tmp_path / file)
    check(read_annotations(table if file is None else tmp_path / file))


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


def test_frames_of_other_libraries() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    check(read_annotations(pyarrow.Table.from_pandas(long())))
    check(read_annotations(long().convert_dtypes(dtype_backend="pyarrow")))
    with pytest.raises(LDLError, match="votes are read from a file or a data frame, not from dict"):
        read_annotations({"label:a": [1]})


def test_raters_may_be_unknown(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("filename,label\na.png,cat\nb.png,dog\n")
    found = read_annotations(tmp_path / "a.csv")
    assert found.items.tolist() == ["a.png", "b.png"] and found.raters is None and not found.notes
    assert str(found) == "long layout, 2 items, 2 nominal labels, 1 votes an item, raters unknown"
    found = read_annotations(pd.DataFrame({"item": ["a", "a"], "label": ["x", "x"]}))
    assert (
        found.counts.tolist() == [[2]] and "each row is a vote of its own; name it with rater_column" in found.notes[0]
    )


REPEATED: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
    "long": (pd.DataFrame({"item": [1, 1, 2], "rater": [1, 1.0, 1], "label": ["x", "y", "x"]}), {}),
    "counts": (pd.DataFrame({"item": [1, 1, 2], "label:x": [1, 0, 1], "label:y": [0, 1, 0]}), {}),
    "matrix": (pd.DataFrame({"item": [1, 1, 2], "w1": ["x", "y", "x"]}), {"rater_columns": "w*"}),
}


@pytest.mark.parametrize("layout", REPEATED)
@pytest.mark.parametrize(
    ("duplicates", "counts"), [("first", [[1, 0], [1, 0]]), ("last", [[0, 1], [1, 0]]), ("keep", [[1, 1], [1, 0]])]
)
def test_repeated_votes(layout: str, duplicates: Any, counts: list[list[int]]) -> None:
    table, options = REPEATED[layout]
    found = read_annotations(table, duplicates=duplicates, **options)
    assert found.over(LabelSpace.nominal("xy")).counts.tolist() == counts and found.items.tolist() == [1, 2]
    assert found.raters is None or len(found.raters) == np.sum(counts)
    assert ("all count" if duplicates == "keep" else f"the {duplicates} counts") in found.notes[0]
    with pytest.raises(LDLError, match="or pass duplicates first, last or keep"):
        read_annotations(table, **options)


def test_shares_do_not_add_up() -> None:
    table = pd.DataFrame({"item": [1, 1], "label:x": [0.5, 0.2], "label:y": [0.5, 0.8]})
    with pytest.raises(LDLError, match="several rows of an item hold shares, which do not add up"):
        read_annotations(table, duplicates="keep")
    assert read_annotations(table.assign(n=[2, 5]), votes_column="n", duplicates="keep").counts.tolist() == [[2, 5]]


@pytest.mark.parametrize("suffix", [".tsv", ".tab", ".tsv.gz", ".TSV"])
def test_fields_with_tabs(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"votes{suffix}"
    long().assign(label=["cat, big", *["dog"] * 5]).to_csv(path, sep="\t", index=False, compression="infer")
    found = read_annotations(path)
    assert found.labels.names == ("cat, big", "dog") and len(found) == 3


def test_tabs_are_expected_by_name(tmp_path: Path) -> None:
    long().to_csv(tmp_path / "votes.tsv", index=False)
    with pytest.raises(LDLError, match="commas stand between its fields; name it .csv, or write it with tabs"):
        read_annotations(tmp_path / "votes.tsv")


def test_words_for_gaps_among_items_and_raters_are_names() -> None:
    found = read_annotations(pd.DataFrame({"item": ["NA", "b"], "rater": ["w", "nan"], "label": ["x", "y"]}))
    assert found.items.tolist() == ["NA", "b"] and found.raters.tolist() == ["w", "nan"]
    assert [note.split(" is taken")[0].split(": ")[1] for note in found.notes] == [
        "'NA' among the items",
        "'nan' among the raters",
    ]


def test_a_group_is_no_word_for_a_gap() -> None:
    with pytest.raises(LDLError, match="1 items have no patient, the first is 'c.png'"):
        read_annotations(long().assign(patient=["p"] * 5 + ["nan"]), group_column="patient")
    found = read_annotations(long().assign(patient=["p ", "p", " p", "q", "q", "q"]), group_column="patient")
    assert found.groups.tolist() == ["p", "q", "q"]
