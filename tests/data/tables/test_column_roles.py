"""What a column is: a feature, a vote, an item, a group or a split; none of the others is ever a feature."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.voted_tables import COUNTS, FEATURES, ITEMS, KINDS, LONG, MATRIX, RNG, ROWS, VOTES, X, opened, shares_of

from ldl.data import TabularLDL
from ldl.data.tables.column_roles import ColumnChoice, find_roles
from ldl.errors import LDLError
from ldl.tables.csv_table import read_csv


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("votes", [False, True])
def test_raters_beside_features(votes: bool, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"m{suffix}"
    of_votes = {"votes": str(path)} if votes else {}
    data = opened(path, FEATURES.join(MATRIX), rater_columns="vote_*", **of_votes)
    assert data.feature_names == ["a", "b"]
    assert np.allclose(shares_of(data), COUNTS / 3) and data.labels.axes == ((1.0, 2.0, 3.0),)


@pytest.mark.parametrize("name", ["id", "item", "task_id", "Image", "film_id"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_an_item_stay_together_and_its_name_is_no_feature(kind: str, name: str, tmp_path: Path) -> None:
    target, module, options = KINDS[kind]
    item = RNG.permutation(np.arange(ROWS) // 3)
    data = opened(tmp_path / "t.csv", FEATURES.assign(**{name: item}).join(target), module, **options)
    assert data.feature_names == ["a", "b"] and data.leak == 0 and data.protocol == "group_exclusive"
    assert not set(item[data.split.train]) & set(item[data.split.test])
    named = opened(tmp_path / "t.csv", FEATURES.assign(**{name: range(ROWS)}).join(target), module, **options)
    assert named.feature_names == ["a", "b"] and named.groups is None and named.names == list(map(str, range(ROWS)))


def test_a_repeated_item_decides_beside_numbers_of_the_rows(tmp_path: Path) -> None:
    film = np.arange(ROWS) // 3
    data = opened(tmp_path / "t.csv", FEATURES.assign(task=range(ROWS), id=film).join(COUNTS))
    assert data.feature_names == ["a", "b"] and data.names == list(map(str, film)) and data.leak == 0
    assert "'task'" in data.taken and not set(film[data.split.train]) & set(film[data.split.test])


def test_a_column_that_looks_like_a_group_is_a_feature_where_its_name_is_given(tmp_path: Path) -> None:
    table = FEATURES.assign(case=["upper", "lower"] * (ROWS // 2)).join(COUNTS)
    data = opened(tmp_path / "t.csv", table, category_columns="case")
    assert data.feature_names == ["a", "b", "case=lower", "case=upper"] and data.groups is None
    data = opened(tmp_path / "t.csv", table, feature_columns=["a", "case"])
    assert data.feature_names == ["a", "case=lower", "case=upper"]


@pytest.mark.parametrize("raters", ["vote_*", ["vote_ann", "vote_bob", "vote_cat"]])
def test_a_dropped_rater_has_no_votes(raters: Any, tmp_path: Path) -> None:
    data = opened(tmp_path / "t.csv", FEATURES.join(MATRIX), rater_columns=raters, drop="vote_ann")
    assert data.feature_names == ["a", "b"] and data.annotations.votes.tolist() == [2.0] * ROWS
    counted = [(label == VOTES[:, 1:]).sum(1) for label in (1, 2, 3)]
    assert np.allclose(shares_of(data), np.stack(counted, 1) / 2)


def test_a_vote_that_is_named_as_a_category_is_none(tmp_path: Path) -> None:
    data = opened(tmp_path / "t.csv", FEATURES.join(MATRIX), rater_columns="vote_*", category_columns=["vote_ann"])
    assert data.feature_names == ["a", "b"]


def test_ordered_labels_have_values_one_by_one(tmp_path: Path) -> None:
    words = np.array(["low", "mid", "top"])
    table = FEATURES.join(MATRIX.replace(dict(zip((1, 2, 3), words))))
    options = {"rater_columns": "vote_*", "label_values": [1, 2, 10]}
    data = opened(tmp_path / "t.csv", table, label_order=list(words), **options)
    assert data.labels.axes == ((1.0, 2.0, 10.0),) and np.allclose(shares_of(data), COUNTS / 3)
    with pytest.raises(LDLError, match="columns are 'low', 'mid', 'top', but the labels are '1', '2', '10'"):
        opened(tmp_path / "t.csv", table, **options)
    options["label_values"] = [1, 2, 3]
    for order in (["1", "2", "3"], ["3", "2", "1"]):
        data = opened(tmp_path / "t.csv", FEATURES.join(MATRIX), label_order=order, **options)
        assert data.labels.axes == ((1.0, 2.0, 3.0),) and np.allclose(shares_of(data), COUNTS / 3)


def test_distributions_beside_votes_in_another_file_are_no_features(tmp_path: Path) -> None:
    LONG.to_csv(tmp_path / "v.csv", index=False)
    data = opened(
        tmp_path / "t.csv", FEATURES.join(COUNTS / 3).assign(item=ITEMS), votes=str(tmp_path / "v.csv"), drop="label:1"
    )
    assert data.feature_names == ["a", "b"] and "no features are 'label:2', 'label:3'" in data.taken


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_empty_counts_are_no_votes(suffix: str, tmp_path: Path) -> None:
    table = FEATURES.join(COUNTS.astype(float).mask(COUNTS == 0))
    assert np.allclose(shares_of(opened(tmp_path / f"t{suffix}", table)), COUNTS / 3)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_item_that_repeats_is_named_in_every_row(suffix: str, tmp_path: Path) -> None:
    items = [None, *(f"n{row // 2}" for row in range(ROWS - 1))]
    with pytest.raises(LDLError, match=r"column 'item' is '(nan)?', which names no item; fill it in, or name another"):
        opened(tmp_path / f"t{suffix}", FEATURES.assign(item=items).join(COUNTS))
    numbered = FEATURES.assign(item=[None, *(f"n{row}" for row in range(ROWS - 1))]).join(COUNTS)
    assert opened(tmp_path / f"t{suffix}", numbered).names is None


def test_options_of_labels_are_followed_beside_distributions(tmp_path: Path) -> None:
    table = FEATURES.join(COUNTS / 3)
    assert opened(tmp_path / "t.csv", table).labels.kind == "nominal"
    assert opened(tmp_path / "t.csv", table, label_type="ordinal").labels.axes == ((1.0, 2.0, 3.0),)
    data = opened(tmp_path / "t.csv", table, label_order=["1", "2", "3", "4"])
    assert data.labels.axes == ((1.0, 2.0, 3.0, 4.0),) and np.allclose(shares_of(data)[:, :3], COUNTS / 3)
    left = COUNTS.to_numpy()[:, :2]
    data = opened(tmp_path / "t.csv", table, no_vote=["3"])
    assert np.allclose(shares_of(data), (left / left.sum(1).clip(1)[:, None])[left.sum(1) > 0])
    np.savez(tmp_path / "t.npz", features=X, labels=COUNTS / 3)
    with pytest.raises(LDLError, match="options of votes are for .csv and Parquet"):
        TabularLDL(path=str(tmp_path / "t.npz"), label_order=["1", "2", "3"]).setup()


def test_the_time_of_many_columns_grows_with_their_number(tmp_path: Path) -> None:
    """Expression of genes has tens of thousands of columns."""
    names = [*(f"g{number}" for number in range(30_000)), "patient", "label:a", "label:b"]
    (tmp_path / "t.csv").write_text(f"{','.join(names)}\n{','.join(['1'] * len(names))}\n")
    table, start = read_csv(tmp_path / "t.csv"), time.process_time()
    roles = find_roles(table, ColumnChoice(drop=["g7"]), ["label:a", "label:b"], None, None)
    assert (len(roles.features), roles.group) == (29_999, "patient")
    assert time.process_time() - start < 3
