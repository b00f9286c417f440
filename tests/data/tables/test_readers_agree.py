"""A run, the estimator and ``read_annotations`` see the same items, votes, labels and groups in a table."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.annotations import read_annotations
from ldl.data import TabularLDL
from ldl.estimator import LDLRegressor

LABELS: dict[str, list[Any]] = {
    "words": ["calm", "happy", "sad"],
    "numbers": [2, 3, 10],
    "fractions": [0.5, 1.0, 1.5],
    "prefixed": ["star-1", "star-2", "star-10"],
}
VALUES = {"numbers": (2.0, 3.0, 10.0), "fractions": (0.5, 1.0, 1.5), "prefixed": (1.0, 2.0, 10.0)}


@dataclass
class Truth:
    """Made-up votes: each of ``raters`` votes on an item, or leaves a gap."""

    table: pd.DataFrame
    options: dict[str, Any]
    counts: np.ndarray
    items: list[str]
    groups: np.ndarray | None


@st.composite
def tables(draw: st.DrawFn) -> tuple[Truth, str, str]:
    kind, layout = draw(st.sampled_from(list(LABELS))), draw(st.sampled_from(["counts", "long", "matrix"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    size, raters = draw(st.integers(8, 20)), draw(st.integers(1, 4))
    votes = rng.integers(-draw(st.integers(0, 1)), 3, (size, raters))  # -1 is a gap
    votes[:4] = np.arange(4)[:, None] % 3  # every label has a vote
    votes[4:6, 0] = 0  # as has every item that is tested below
    names, labels = [f"film {number}" for number in range(size)], np.array(LABELS[kind], object)
    order = rng.permutation(size)
    item, group = (
        draw(st.sampled_from(["item", "film_id", "id"])),
        draw(st.sampled_from([None, "patient", "Subject ID"])),
    )
    table = pd.DataFrame({"x": rng.normal(size=size), "y": rng.normal(size=size), item: names})
    groups = None if group is None else np.arange(size) // 2
    table = table if group is None else table.assign(**{group: groups})
    counts = np.stack([(votes == label).sum(1) for label in range(3)], 1)
    options: dict[str, Any] = {}
    if layout == "counts":
        prefix = draw(st.sampled_from(["label:", "n_"])) if kind == "words" else "label:"
        columns = [f"{prefix}{label}" for label in labels]
        table = table.join(pd.DataFrame(counts, columns=columns))
        options = (
            {"label_columns": "label:*"} if prefix == "label:" else {"label_columns": ["n_calm", "n_happy", "n_sad"]}
        )
    else:
        cells = np.where(votes < 0, None, labels[votes])
        matrix = pd.DataFrame(cells, columns=[f"rater_{number}" for number in range(raters)])
        if layout == "matrix":
            table, options = table.join(matrix), {"rater_columns": "rater_*"}
        else:
            long = matrix.assign(**{item: names}).melt(item, var_name="worker", value_name="label").dropna()
            table = long.merge(table, on=item)
            order = rng.permutation(len(table))
    truth = Truth(table.iloc[order].reset_index(drop=True), options, counts, names, groups)
    return truth, kind, item


@settings(max_examples=25, deadline=None)
@given(tables(), st.sampled_from(["csv", "tsv", "parquet"]))
def test_a_run_python_and_the_estimator_agree(drawn: tuple[Truth, str, str], suffix: str) -> None:
    truth, kind, item = drawn
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = Path(folder) / f"t.{suffix}"
        if suffix == "parquet":
            truth.table.to_parquet(path)
        else:
            truth.table.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
        data = TabularLDL(path=str(path), folds=3, val_fraction=0.0, **truth.options)
        data.setup()
        read = read_annotations(path, item_column=item, **truth.options)
    assert set(data.feature_names) == {"x", "y"}
    assert data.names is not None and sorted(data.names) == sorted(map(str, read.items))
    voted = [name for name, row in zip(truth.items, truth.counts) if row.sum()]
    assert sorted(data.names) == sorted(voted)
    expected = truth.counts[[truth.items.index(name) for name in data.names]]
    own = data.counts(np.arange(data.size))
    aligned = read.counts[[list(map(str, read.items)).index(name) for name in data.names]]
    labels = [str(name) for name in data.labels.names]
    assert labels == [str(name) for name in read.labels.names] and data.labels.axes == read.labels.axes
    if kind in VALUES:
        assert data.labels.axes == (VALUES[kind],)
    else:
        assert [label.removeprefix("n_") for label in labels] == LABELS["words"]
    assert np.array_equal(own, expected) and np.array_equal(aligned, expected)
    if truth.groups is not None:
        assert data.leak == 0 and data.group_names is not None
        assert [data.group_names[group] for group in data.groups] == [
            str(truth.groups[truth.items.index(name)]) for name in data.names
        ]
    model = LDLRegressor("MeanPredictor").fit(data.features, pd.DataFrame(read.shares, columns=labels))
    assert [str(name) for name in model.labels_.names] == labels
