"""Groups and published splits of tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes.voted_tables import COUNTS, FEATURES, KINDS, ROWS, SETS, X, opened

from ldl.data import TabularLDL
from ldl.errors import LDLError


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
