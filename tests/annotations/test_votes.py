"""Annotations: their join with a table."""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.annotations import Annotations, read_annotations
from ldl.errors import LDLError
from ldl.labels import LabelSpace

COUNTS = {"a.png": [0, 2, 1], "b.png": [0, 0, 2], "c.png": [1, 0, 0]}


@pytest.mark.parametrize(
    ("keys", "others"),
    [([1.0, 2.0], [1, 2]), (["007", "7"], ["007", "7"]), (pd.array([1, 2], "Int64"), np.array([1.0, 2.0])),
     (pd.to_datetime(["2024-01-01", "2024-01-02"]), ["2024-01-01 00:00:00", "2024-01-02 00:00:00"]),
     (pd.Categorical(["a", "b"]), ["a", "b"]), ([1, 2], ["1", "2"])],
    ids=lambda keys: "",
)  # fmt: skip
def test_keys_join_whatever_their_type(keys: Any, others: Any) -> None:
    found, rows = read_annotations(pd.DataFrame({"item": keys, "label:a": [1, 2]})).join(others[::-1], "the table")
    assert rows.tolist() == [0, 1] and found.counts.tolist() == [[2], [1]]


def test_votes_for_unknown_items() -> None:
    votes = {
        "task": ["a.png"] * 3 + ["b.png"] * 2 + ["c.png"],
        "worker": ["w1", "w2", "w3", "w1", "w3", "w2"],
        "label": ["cat", "dog", "cat", "dog", "dog", "bird"],
    }
    found = read_annotations(pd.DataFrame(votes))
    with pytest.raises(LDLError, match="1 of 3 items with votes are not in t, .*'c.png'.*pass unknown_items drop"):
        found.join(["b.png", "a.png"], "t")
    with pytest.warns(UserWarning, match="1 of 3 items with votes are not in t"):
        joined, rows = found.join(["b.png", "d.png", "a.png"], "t", unknown_items="drop")
    assert joined.items.tolist() == ["b.png", "a.png"] and rows.tolist() == [0, 2] and joined.left_out == 1
    assert joined.counts.tolist() == [COUNTS["b.png"], COUNTS["a.png"]] and "are left out" in joined.notes[-1]
    with pytest.raises(LDLError, match="3 of 3 items with votes are not in t"):
        found.join(["x", "y"], "t", unknown_items="drop")


def test_long_keys_join_whatever_their_type() -> None:
    keys = [1234567.0, 1234568.0, 16777217.0]
    found = read_annotations(pd.DataFrame({"item": keys, "label:a": [1, 2, 3]}))
    for others in ([1234568, 1234567, 16777217], ["1234568", " 1234567", "16777217.0"], np.array(keys)[[1, 0, 2]]):
        joined, rows = found.join(others, "t")
        assert joined.counts[:, 0].tolist() == [2, 1, 3] and rows.tolist() == [0, 1, 2]


def counts_of(annotations: Annotations) -> np.ndarray:
    """Counts of the single votes."""
    counts = np.zeros(annotations.counts.shape)
    assert annotations.single is not None
    np.add.at(counts, (annotations.single.item, annotations.single.label), 1)
    np.testing.assert_array_equal(annotations.single.counts(*counts.shape), counts)
    return counts


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_single_votes_stay_with_their_items_labels_and_raters(votes: list[tuple[int, ...]], random: Random) -> None:
    rows = [*votes, votes[0]]  # a first row whose answers never recur may be a second header, which is an error
    table = pd.DataFrame(rows, columns=["item", "rater", "label"]).map("abcdef".__getitem__)
    read = read_annotations(table, duplicates="keep")
    everyone = LabelSpace.nominal("abcdefg")
    keys = random.sample("abcdef", random.randint(3, 6))
    if not set(keys) & set(read.items):
        keys.append(read.items[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        joined, _ = read.join(keys, "t", unknown_items="drop")
    wide = joined.over(everyone)
    places = random.sample(range(7), 7)
    arranged = wide.arranged(LabelSpace.nominal([everyone.names[place] for place in places]), places)
    part = arranged.take(np.array(random.sample(range(len(arranged)), (len(arranged) + 1) // 2)))
    for step in (read, joined, wide, arranged, part):
        single = step.single
        assert np.array_equal(counts_of(step), step.counts)
        kept = {
            (str(step.items[item]), str(rater), step.labels.names[label])
            for item, rater, label in zip(single.item, step.raters, single.label)
        }
        expected = table[table["item"].isin(step.items)]
        assert kept == set(expected.itertuples(index=False, name=None)) and len(single.item) == len(expected)
