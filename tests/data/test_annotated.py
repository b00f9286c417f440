"""Votes in the table of instances, or in a file of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fakes.simulated_raters import biased, confusion_of, simulate_items, simulate_votes
from fakes.voted_tables import COUNTS, FEATURES, ITEMS, LONG, MATRIX, ROWS, SETS, VOTES, opened, shares_of

from ldl.annotations import DawidSkene, SingleVotes
from ldl.collective import Collective
from ldl.data.annotated import majority
from ldl.errors import LDLError
from ldl.heads import MaxEnt
from ldl.methods.rows import Rows
from ldl.run.record import identity


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


def learned(data: Any) -> np.ndarray:
    """Targets of the training rows, after a check that the other rows keep their shares."""
    others = np.setdiff1d(np.arange(data.size), data.split.train)
    assert len(others) and np.array_equal(shares_of(data)[others], np.asarray(data.observed_target)[others])
    return shares_of(data)[data.split.train]


def test_the_target_is_learned_from_the_votes_of_the_training_set(tmp_path: Path) -> None:
    LONG.to_csv(tmp_path / "v.csv", index=False)
    table, votes = FEATURES.assign(item=ITEMS), {"votes": str(tmp_path / "v.csv")}
    shares = opened(tmp_path / "t.csv", table, **votes)
    assert shares.target == "shares" and "weight" not in shares.columns
    data = opened(tmp_path / "t.csv", table, target="dawid_skene", **votes)
    first, train = learned(data), data.split.train
    expected = DawidSkene.fit(data.annotations.single.take(train), len(train), 3)
    np.testing.assert_allclose(first, expected.probabilities, atol=1e-6)
    assert np.abs(first - shares_of(shares)[train]).max() > 0.1 and "weight" not in data.columns
    assert "training learns dawid_skene" in data.taken and "training learns" not in shares.taken
    # A checkpoint is of the same data, whatever it learned: its training rows are known in a test.
    assert identity(data) == identity(shares)
    # Other votes on the test rows change nothing, and those on a training row do.
    for rows, same in ((data.split.test, True), (train[:1], False)):
        changed = LONG.assign(label=LONG["label"].where(~LONG["item"].isin([ITEMS[row] for row in rows]), 1))
        changed.to_csv(tmp_path / "v.csv", index=False)
        other = learned(opened(tmp_path / "t.csv", table, target="dawid_skene", **votes))
        assert np.array_equal(other, first) == same
    data.select_fold(1)
    assert len(learned(data)) and data.dawid_skene.probabilities.shape == (len(data.split.train), 3)


def test_raters_of_both_layouts_give_one_model(tmp_path: Path) -> None:
    LONG.sample(frac=1, random_state=0).to_csv(tmp_path / "v.csv", index=False)
    table = FEATURES.assign(item=ITEMS)
    long = opened(tmp_path / "l.csv", table[::-1], target="dawid_skene", votes=str(tmp_path / "v.csv"))
    long.select_fold(0)
    matrix = opened(tmp_path / "m.csv", table.join(MATRIX)[::-1], target="dawid_skene", rater_columns="vote_*")
    np.testing.assert_allclose(learned(long), learned(matrix), atol=1e-5)


def test_labels_in_another_order_are_learned_in_it(tmp_path: Path) -> None:
    names = {1: "low", 2: "middle", 3: "high"}
    table = FEATURES.join(MATRIX.replace(names))
    options = {"rater_columns": "vote_*", "target": "dawid_skene"}
    data = opened(tmp_path / "m.csv", table, **options)
    other = opened(tmp_path / "m.csv", table, label_names=["high", "middle", "low"], **options)
    places = [data.labels.names.index(name) for name in other.labels.names]
    assert places != [0, 1, 2]
    np.testing.assert_allclose(learned(other), learned(data)[:, places], atol=1e-5)
    assert np.array_equal(other.annotations.counts, data.annotations.counts[:, places])
    follower = opened(tmp_path / "m.csv", table, **options)
    follower.follow_labels(other.labels)
    np.testing.assert_allclose(learned(follower), learned(other), atol=1e-5)


def test_a_tie_of_the_majority_is_broken_by_the_seed_of_the_folds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    most = COUNTS.to_numpy() == COUNTS.to_numpy().max(1, keepdims=True)
    chosen = []
    for seed in (0, 0, 1):
        data = opened(tmp_path / "c.csv", FEATURES.join(COUNTS), target="majority", fold_seed=seed)
        expected = majority(COUNTS.to_numpy() / 3, seed)
        assert ((expected == 1) & most).sum() == ROWS and (expected.sum(1) == 1).all()
        for fold in range(2):  # a row has one label in all folds
            data.select_fold(fold)
            assert np.array_equal(learned(data), expected[data.split.train])
        chosen.append(expected)
    ties = (most.sum(1) > 1).sum()
    assert f"{ties} of 40 rows have several labels with most votes" in capsys.readouterr().out and ties > 3
    assert np.array_equal(chosen[0], chosen[1]) and not np.array_equal(chosen[0], chosen[2])


def test_ties_are_broken_evenly() -> None:
    means = majority(np.tile([0.4, 0.4, 0.2], (4000, 1)), 0).mean(0)
    np.testing.assert_allclose(means, [0.5, 0.5, 0], atol=0.03)
    assert majority(np.array([[0.1, 0.9]], np.float32), 0).tolist() == [[0, 1]]


def test_weights_hold_for_every_target(tmp_path: Path) -> None:
    counts = COUNTS.assign(**{"label:1": COUNTS["label:1"] * 4})
    weights = [
        opened(tmp_path / "c.csv", FEATURES.join(counts), target=target, weighting="votes").columns["weight"].tolist()
        for target in ("shares", "majority")
    ]
    assert weights[0] == weights[1] and len(set(weights[0])) > 2


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (COUNTS, {"target": "dawid_skene"}, "raters are unknown; give one row a vote"),
        (COUNTS, {"target": "majority", "smooth": True}, "majority learns no shares; leave one of them out"),
        (COUNTS / 3, {"target": "dawid_skene"}, "learns from votes, and the labels are distributions"),
        (COUNTS, {"target": "mode"}, "target.*'mode'.*shares, majority, dawid_skene"),
        (LONG.drop(columns="rater"), {"target": "dawid_skene"}, "the column of the rater with --data.rater_column"),
    ],
)  # fmt: skip
def test_targets_that_cannot_be_learned(
    table: pd.DataFrame, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    if "item" in table:
        table.to_csv(tmp_path / "v.csv", index=False)
        table, options = pd.DataFrame({"item": ITEMS}), {**options, "votes": str(tmp_path / "v.csv")}
    with pytest.raises(LDLError, match=message):
        opened(tmp_path / "t.csv", FEATURES.join(table), **options)


def test_distributions_have_a_majority(tmp_path: Path) -> None:
    data, votes = (
        opened(tmp_path / "d.csv", FEATURES.join(table), target="majority") for table in (COUNTS / 3, COUNTS)
    )
    assert data.annotations is None and np.array_equal(learned(data), learned(votes))


def loss_to_truth(path: Path, target: str, votes: SingleVotes, features: np.ndarray, truth: np.ndarray) -> float:
    """NLL of the truth on the test rows of one fold, under a MaxEnt that learns a target on the others."""
    table = pd.DataFrame(features, columns=["a", "b"]).assign(item=np.arange(len(features)))
    labels = np.array(["x", "y", "z"])[votes.label]
    frame = pd.DataFrame({"item": votes.item, "rater": votes.names[votes.rater], "label": labels})
    frame.to_csv(path / "votes.csv", index=False)
    data = opened(path / "table.csv", table, votes=str(path / "votes.csv"), target=target)
    head, train, test = MaxEnt(), data.split.train, data.split.test
    head.build(2, data.labels)
    head.fit(Rows(data.inputs(train, train, False), data.columns["target"][torch.from_numpy(train)]), Collective())
    prediction = head.predict(data.inputs(test, test, False))[0].numpy()
    return float(-(truth[test] * np.log(prediction)).sum(1).mean())


@pytest.mark.parametrize("seed", range(3))
def test_with_unequal_raters_the_true_label_is_better_learned_by_dawid_skene(seed: int, tmp_path: Path) -> None:
    features, truth = simulate_items(600, sharpness=4.0, seed=seed)
    raters = np.concatenate([confusion_of(*[0.9] * 6, *[0.0] * 8), *[biased()] * 4])  # good, random and biased ones
    votes, classes = simulate_votes(raters, truth, 600, 5, seed)
    loss = {
        target: loss_to_truth(tmp_path, target, votes, features, np.eye(3)[classes])
        for target in ("majority", "dawid_skene", "shares")
    }
    assert loss["dawid_skene"] < loss["majority"] - 0.05 and loss["dawid_skene"] < loss["shares"] - 0.05


@pytest.mark.parametrize("seed", range(3))
def test_with_equal_raters_the_distribution_is_better_learned_by_shares(seed: int, tmp_path: Path) -> None:
    features, truth = simulate_items(600, sharpness=1.0, seed=seed)
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(600), 5)
    label = (rng.random((len(item), 1)) > truth[item].cumsum(1)[:, :-1]).sum(1)  # each vote is a draw from the truth
    votes = SingleVotes(item, np.tile(np.arange(5), 600), label, np.array(list("abcde"), object))
    loss = {
        target: loss_to_truth(tmp_path, target, votes, features, truth)
        for target in ("majority", "dawid_skene", "shares")
    }
    assert loss["shares"] < loss["majority"] - 0.02 and loss["shares"] < loss["dawid_skene"] - 0.02
