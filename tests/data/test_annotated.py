"""Votes in the table of instances, or in a file of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fakes.voted_tables import FEATURES, ITEMS, LONG, MATRIX, ROWS, SETS, VOTES, opened, shares_of

from ldl.errors import LDLError


def test_votes_in_another_file_are_no_features_of_the_table(tmp_path: Path) -> None:
    MATRIX.assign(item=ITEMS).to_csv(tmp_path / "v.csv", index=False)
    table = FEATURES.join(MATRIX).assign(item=ITEMS)
    data = opened(tmp_path / "m.csv", table, votes=str(tmp_path / "v.csv"), rater_columns="vote_*")
    assert data.feature_names == ["a", "b"] and "vote_ann" in data.taken


def test_names_of_the_item_and_the_group_may_differ_by_file(tmp_path: Path) -> None:
    patients = np.arange(ROWS) // 2
    LONG.merge(pd.DataFrame({"item": ITEMS, "patient": patients}), on="item").rename(columns={"item": "nodule"}).to_csv(
        tmp_path / "v.csv", index=False
    )
    options = {"votes": str(tmp_path / "v.csv"), "votes_item_column": "nodule"}
    data = opened(tmp_path / "m.csv", FEATURES.assign(id=ITEMS), **options)
    assert data.feature_names == ["a", "b"] and data.protocol == "group_exclusive"
    assert np.array_equal(np.array(data.group_names)[data.groups], patients.astype(str)) and data.leak == 0
    with pytest.raises(LDLError, match="neither .*m.csv nor .*v.csv has a column 'person'"):
        opened(tmp_path / "m.csv", FEATURES.assign(id=ITEMS), group_key="person", **options)


def test_votes_for_unknown_items_are_refused_or_left_out(tmp_path: Path) -> None:
    LONG.to_csv(tmp_path / "v.csv", index=False)
    table, votes = FEATURES.assign(item=ITEMS)[5:], {"votes": str(tmp_path / "v.csv")}
    with pytest.raises(LDLError, match="5 of 40 items with votes are not in .*m.csv"):
        opened(tmp_path / "m.csv", table, **votes)
    assert opened(tmp_path / "m.csv", table, unknown_items="drop", **votes).size == ROWS - 5


@pytest.mark.parametrize("layout", ["long", "matrix"])
def test_the_group_may_stand_in_the_file_of_votes_or_in_both(layout: str, tmp_path: Path) -> None:
    patients, path = np.arange(ROWS) // 4, str(tmp_path / "v.csv")
    votes = LONG if layout == "long" else MATRIX.assign(item=ITEMS)
    votes.merge(pd.DataFrame({"item": ITEMS, "patient": patients}), on="item").to_csv(path, index=False)
    options = {"votes": path} if layout == "long" else {"votes": path, "rater_columns": "vote_*"}
    table = FEATURES.assign(item=ITEMS)
    for given in ({}, {"group_key": "patient"}):
        data = opened(tmp_path / "t.csv", table, **options, **given)
        assert len(data.group_names) == 10 and "group 'patient'" in data.taken and data.group_key == "patient"
    both = opened(tmp_path / "t.csv", table.assign(patient=patients.astype(float)), **options)
    assert both.feature_names == ["a", "b"] and len(both.group_names) == 10
    own = opened(tmp_path / "t.csv", table.assign(subject=np.arange(ROWS) // 2), **options)
    assert len(own.group_names) == 20 and "group 'subject'" in own.taken
    with pytest.raises(LDLError, match=r"name different groups in column 'patient' for 40 items, the first is 'n0'"):
        opened(tmp_path / "t.csv", table.assign(patient=patients + 1), **options)


def test_a_split_in_the_file_of_votes_is_not_lost_in_silence(tmp_path: Path) -> None:
    LONG.merge(pd.DataFrame({"item": ITEMS, "split": SETS}), on="item").to_csv(tmp_path / "v.csv", index=False)
    options, table = {"votes": str(tmp_path / "v.csv")}, FEATURES.assign(item=ITEMS)
    assert f"not 'split' of {options['votes']}" in opened(tmp_path / "t.csv", table, **options).taken
    with pytest.raises(LDLError, match="no key 'split'.*--data.split_column"):
        opened(tmp_path / "t.csv", table, split_column="split", **options)
    named = opened(tmp_path / "t.csv", table.assign(split=SETS), **options)
    assert named.protocol == "published" and "not 'split'" not in named.taken


def test_a_group_may_be_named_like_the_rater_in_the_file_of_votes(tmp_path: Path) -> None:
    LONG.rename(columns={"rater": "user"}).to_csv(tmp_path / "v.csv", index=False)
    table = FEATURES.assign(item=ITEMS, user=np.arange(ROWS) // 4)
    data = opened(tmp_path / "t.csv", table, votes=str(tmp_path / "v.csv"))
    assert data.feature_names == ["a", "b"] and data.leak == 0 and len(data.group_names) == ROWS // 4


def test_an_absent_file_of_votes_is_named_with_its_option(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=r"no file of votes at .*v\.csv; correct --data\.votes"):
        opened(tmp_path / "t.csv", FEATURES.assign(item=ITEMS), votes=str(tmp_path / "v.csv"))


def test_each_row_is_an_item_if_nothing_else_names_one(tmp_path: Path) -> None:
    table = FEATURES.assign(kind=np.array(["x", "y", "z"])[VOTES[:, 0] - 1])
    data = opened(tmp_path / "t.csv", table, vote_column="kind")
    assert data.size == ROWS and data.labels.names == ("x", "y", "z") and data.feature_names == ["a", "b"]
    assert np.array_equal(shares_of(data).argmax(1), VOTES[:, 0] - 1)
    with pytest.raises(LDLError, match="has no item_column"):
        opened(tmp_path / "t.csv", table.assign(worker="w"), vote_column="kind")
