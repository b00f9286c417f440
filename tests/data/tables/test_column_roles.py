"""What a column is: a feature, a vote, an item, a group or a split; none of the others is ever a feature."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldl.data import TabularLDL, TabularValues
from ldl.data.tables.column_roles import ColumnChoice, find_roles
from ldl.data.tables.module import GroupedRows
from ldl.errors import LDLError
from ldl.tables.csv_table import read_csv

RNG = np.random.default_rng(0)
ROWS = 40
X = RNG.normal(size=(ROWS, 2)).round(3)
VOTES = RNG.integers(1, 4, (ROWS, 3))
ITEMS = [f"n{row}" for row in range(ROWS)]
FEATURES = pd.DataFrame(X, columns=["a", "b"])
COUNTS = pd.DataFrame({f"label:{label}": (label == VOTES).sum(1) for label in (1, 2, 3)})
MATRIX = pd.DataFrame(VOTES, columns=["vote_ann", "vote_bob", "vote_cat"])
LONG = (
    MATRIX.rename(columns=lambda name: name.removeprefix("vote_"))
    .assign(item=ITEMS)
    .melt("item", var_name="rater", value_name="label")
)


def opened(path: Path, table: pd.DataFrame, kind: type[GroupedRows] = TabularLDL, **options: Any) -> Any:
    """Write a table, and return the data module that reads it."""
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)
    data = kind(path=str(path), folds=4, val_fraction=0.0, **options)
    data.setup()
    return data


def shares_of(data: Any) -> np.ndarray:
    return np.asarray(data.columns["target"].numpy())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("votes", [False, True])
def test_raters_beside_features(votes: bool, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"m{suffix}"
    of_votes = {"votes": str(path)} if votes else {}
    data = opened(path, FEATURES.join(MATRIX), rater_columns="vote_*", **of_votes)
    assert data.feature_names == ["a", "b"]
    assert np.allclose(shares_of(data), COUNTS / 3) and data.labels.axes == ((1.0, 2.0, 3.0),)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("options", [{}, {"vote_column": "label"}, {"item_column": "item", "rater_column": "rater"}])
def test_one_row_a_vote_beside_features(options: dict[str, Any], suffix: str, tmp_path: Path) -> None:
    table = LONG.merge(FEATURES.assign(item=ITEMS, site=["x", "y"] * (ROWS // 2)), on="item").sample(
        frac=1, random_state=0
    )
    data = opened(tmp_path / f"m{suffix}", table, **options)
    order = [ITEMS.index(name) for name in data.names]
    assert data.size == ROWS and data.feature_names == ["a", "b", "site=x", "site=y"]
    assert np.allclose(shares_of(data), COUNTS.iloc[order] / 3) and np.allclose(data.features[:, :2], X[order])


def test_what_differs_within_an_item_is_named(tmp_path: Path) -> None:
    table = LONG.merge(FEATURES.assign(item=ITEMS), on="item").assign(seconds=range(3 * ROWS))
    with pytest.raises(LDLError, match=r"one row a vote, and 'seconds' differ within an item.*--data.drop"):
        opened(tmp_path / "m.csv", table)
    assert opened(tmp_path / "m.csv", table, drop="seconds").feature_names == ["a", "b"]


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


KINDS = {
    "counts": (COUNTS, TabularLDL, {}),
    "distributions": (COUNTS / 3, TabularLDL, {}),
    "matrix": (MATRIX, TabularLDL, {"rater_columns": "vote_*"}),
    "values": (pd.DataFrame({"value": VOTES[:, 0] + X[:, 0]}), TabularValues, {}),
}


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


@pytest.mark.parametrize("name", ["patient", "Subject", "person_id", "PatientID", "user", "slide_id", "case"])
@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_found_by_usual_names(kind: str, name: str, tmp_path: Path) -> None:
    target, module, options = KINDS[kind]
    table = FEATURES.assign(**{name: np.arange(ROWS) // 4}).join(target)
    data = opened(tmp_path / "t.csv", table, module, **options)
    assert data.feature_names == ["a", "b"] and data.leak == 0 and len(data.group_names) == ROWS // 4
    with pytest.raises(LDLError, match="may be the group; choose one with --data.group_key"):
        opened(tmp_path / "t.csv", table.assign(groups=1), module, **options)
    chosen = opened(tmp_path / "t.csv", table.assign(groups=np.arange(ROWS)), module, group_key=name, **options)
    assert chosen.feature_names == ["a", "b"] and "'groups'" in chosen.taken


SETS = ["train"] * 20 + ["validation"] * 8 + ["TEST"] * 12


@pytest.mark.parametrize("name", ["split", "set", "Usage", "partition", "fold", "subset"])
@pytest.mark.parametrize("kind", KINDS)
def test_published_splits_are_followed(kind: str, name: str, tmp_path: Path) -> None:
    target, module, options = KINDS[kind]
    table = FEATURES.assign(**{name: SETS}).join(target)
    data = opened(tmp_path / "t.csv", table, module, **options)
    assert data.feature_names == ["a", "b"] and data.protocol == "published" and data.num_folds == 1
    assert [len(rows) for rows in (data.split.train, data.split.val, data.split.test)] == [20, 8, 12]
    random = opened(tmp_path / "t.csv", table, module, protocol="random_kfold", **options)
    assert random.feature_names == ["a", "b"] and f"'{name}'" in random.taken
    with pytest.raises(LDLError, match=rf"column '{name}' is named like a published split, but 40 entries"):
        opened(tmp_path / "t.csv", table.assign(**{name: range(ROWS)}), module, **options)
    dropped = opened(tmp_path / "t.csv", table.assign(**{name: range(ROWS)}), module, drop=name, **options)
    assert dropped.feature_names == ["a", "b"] and dropped.protocol != "published"


def test_a_published_split_needs_its_column_and_both_sets(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="names no sets of a published split.*data.split_column"):
        opened(tmp_path / "t.csv", FEATURES.join(COUNTS), protocol="published")
    table = FEATURES.assign(part_of="train").join(COUNTS)
    with pytest.raises(LDLError, match="no instance is in the set 'test'"):
        opened(tmp_path / "t.csv", table, split_column="part_of")
    with pytest.raises(LDLError, match="fold 1 must be 0"):
        opened(tmp_path / "t.csv", FEATURES.assign(split=SETS).join(COUNTS), fold=1)


def test_a_published_split_of_matrices(tmp_path: Path) -> None:
    shares = COUNTS.to_numpy() / 3
    np.savez(tmp_path / "t.npz", features=X, labels=shares, split=np.array(SETS))
    data = TabularLDL(path=str(tmp_path / "t.npz"), val_fraction=0.0)
    data.setup()
    assert data.protocol == "published" and len(data.split.test) == 12


def test_a_column_that_looks_like_a_group_is_a_feature_where_its_name_is_given(tmp_path: Path) -> None:
    table = FEATURES.assign(case=["upper", "lower"] * (ROWS // 2)).join(COUNTS)
    data = opened(tmp_path / "t.csv", table, category_columns="case")
    assert data.feature_names == ["a", "b", "case=lower", "case=upper"] and data.groups is None
    data = opened(tmp_path / "t.csv", table, feature_columns=["a", "case"])
    assert data.feature_names == ["a", "case=lower", "case=upper"]


@pytest.mark.parametrize("kind", ["counts", "distributions", "matrix"])
def test_a_column_that_repeats_the_labels_is_no_feature(kind: str, tmp_path: Path) -> None:
    target, module, options = KINDS[kind]
    majority = COUNTS.to_numpy().argmax(1)
    names = np.array(["low", "mid", "top"])
    if kind == "matrix":
        target = target.replace(dict(zip((1, 2, 3), names)))
    else:
        target = target.set_axis([f"label:{name}" for name in names], axis=1)
    table = FEATURES.assign(consensus=names[majority], site=["low", "north"] * (ROWS // 2)).join(target)
    data = opened(tmp_path / "t.csv", table, module, **options)
    assert data.feature_names == ["a", "b", "site=low", "site=north"] and "'consensus'" in data.taken
    data = opened(tmp_path / "t.csv", FEATURES.assign(label=majority).join(target), module, **options)
    assert data.feature_names == ["a", "b"] and "'label'" in data.taken
    kept = opened(tmp_path / "t.csv", table, module, category_columns="consensus", **options)
    assert "consensus=low" in kept.feature_names


@pytest.mark.parametrize("kind", ["counts", "distributions", "matrix"])
def test_votes_and_their_mean_beside_labels_are_no_features(kind: str, tmp_path: Path) -> None:
    target, module, options = KINDS[kind]
    values = {} if kind != "distributions" else {"label_values": [1, 2, 3]}
    table = FEATURES.assign(mean=VOTES.mean(1).round(2), annotator_2=VOTES[:, 1], grade=VOTES[:, 1]).join(target)
    data = opened(tmp_path / "t.csv", table, module, **options, **values)
    assert data.feature_names == ["a", "b", "grade"] and "'mean', 'annotator_2'" in data.taken


def test_each_row_is_an_item_if_nothing_else_names_one(tmp_path: Path) -> None:
    table = FEATURES.assign(kind=np.array(["x", "y", "z"])[VOTES[:, 0] - 1])
    data = opened(tmp_path / "t.csv", table, vote_column="kind")
    assert data.size == ROWS and data.labels.names == ("x", "y", "z") and data.feature_names == ["a", "b"]
    assert np.array_equal(shares_of(data).argmax(1), VOTES[:, 0] - 1)
    with pytest.raises(LDLError, match="has no item_column"):
        opened(tmp_path / "t.csv", table.assign(worker="w"), vote_column="kind")


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


@pytest.mark.parametrize("label_type", ["nominal", "ordinal"])
def test_summaries_of_votes_are_no_features(label_type: str, tmp_path: Path) -> None:
    most = COUNTS.to_numpy().argmax(1)
    table = FEATURES.assign(majority=most + 1, code=most, one_rater=VOTES[:, 1], number=RNG.integers(1, 4, ROWS))
    copies = ["majority", "code"]
    if label_type == "ordinal":
        copies += ["middle", "std", "sd"]
        table = table.assign(
            middle=np.median(VOTES, 1),
            std=VOTES.std(1).round(2),
            sd=VOTES.std(1, ddof=1).round(2),
            off=VOTES.std(1) + 0.1,
        )
    options = {"rater_columns": "vote_*", "label_type": label_type}
    data = opened(tmp_path / "t.csv", table.join(MATRIX), **options)
    assert data.feature_names == [name for name in table if name not in copies]
    assert f"no features are {', '.join(map(repr, copies))} (data.feature_columns decides)" in data.taken
    kept = opened(tmp_path / "t.csv", table.join(MATRIX), feature_columns=["a", "majority"], **options)
    assert kept.feature_names == ["a", "majority"]


def test_deviations_of_unequal_numbers_of_votes_are_no_features(tmp_path: Path) -> None:
    votes = MATRIX.mask(RNG.random((ROWS, 3)) < 0.4).fillna({"vote_ann": 2})
    table = FEATURES.assign(sd=votes.std(axis=1)).join(votes)
    assert table["sd"].isna().any()
    data = opened(tmp_path / "t.csv", table, rater_columns="vote_*", missing="keep")
    assert data.feature_names == ["a", "b"] and "'sd'" in data.taken


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


def test_a_group_may_be_named_like_the_rater_in_the_file_of_votes(tmp_path: Path) -> None:
    LONG.rename(columns={"rater": "user"}).to_csv(tmp_path / "v.csv", index=False)
    table = FEATURES.assign(item=ITEMS, user=np.arange(ROWS) // 4)
    data = opened(tmp_path / "t.csv", table, votes=str(tmp_path / "v.csv"))
    assert data.feature_names == ["a", "b"] and data.leak == 0 and len(data.group_names) == ROWS // 4


def test_an_item_may_have_any_name_beside_one_row_a_vote(tmp_path: Path) -> None:
    table = LONG.merge(FEATURES.assign(item=ITEMS), on="item").rename(columns={"item": "nodule"})
    data = opened(tmp_path / "t.csv", table, item_column="nodule")
    assert data.size == ROWS and data.feature_names == ["a", "b"]


def test_an_absent_file_of_votes_is_named_with_its_option(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=r"no file of votes at .*v\.csv; correct --data\.votes"):
        opened(tmp_path / "t.csv", FEATURES.assign(item=ITEMS), votes=str(tmp_path / "v.csv"))


def test_the_time_of_many_columns_grows_with_their_number(tmp_path: Path) -> None:
    """Expression of genes has tens of thousands of columns."""
    names = [*(f"g{number}" for number in range(30_000)), "patient", "label:a", "label:b"]
    (tmp_path / "t.csv").write_text(f"{','.join(names)}\n{','.join(['1'] * len(names))}\n")
    table, start = read_csv(tmp_path / "t.csv"), time.process_time()
    roles = find_roles(table, ColumnChoice(drop=["g7"]), ["label:a", "label:b"], None, None)
    assert (len(roles.features), roles.group) == (29_999, "patient")
    assert time.process_time() - start < 3
