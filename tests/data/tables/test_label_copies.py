"""Columns that repeat the labels are no features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes.voted_tables import COUNTS, FEATURES, KINDS, MATRIX, RNG, ROWS, VOTES, opened


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
