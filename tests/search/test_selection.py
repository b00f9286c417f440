"""The nested choice sees rows of the training part alone, keeps groups together, and takes the best setting."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from ldl.data import LDLDataModule, TabularLDL, TabularValues
from ldl.errors import LDLError
from ldl.progress import Stopped, stop
from ldl.search.selection import ALL, Candidate, Selection, Setting, choose_and_test


@dataclass
class Spy(Candidate):
    """Writes down what it is fitted and measured on; its KL is the setting's ``kl``."""

    data: LDLDataModule
    settings: list[Setting] = field(default_factory=lambda: [{"kl": 0.3}, {"kl": 0.1}, {"kl": 0.2}])
    name: str = "spy"
    seen: list[tuple[bool, np.ndarray, np.ndarray]] = field(default_factory=list)

    def open(self, setting: Setting, fold: int) -> LDLDataModule:
        self.data.select_fold(fold)
        return self.data

    def score(self, setting: Setting, data: LDLDataModule, choosing: bool = False) -> dict[str, float]:
        assert isinstance(data, TabularLDL | TabularValues)
        assert abs(float(data.scaled[data.split.train].mean())) < 1e-5  # scaled by what is fitted alone
        self.seen.append((choosing, data.split.train, data.split.test))
        if setting["kl"] < 0:
            raise LDLError("no negative divergence")
        return {"kl": setting["kl"]}


@pytest.fixture
def rows(tmp_path: Path) -> TabularLDL:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "rows.npz", features=rng.normal(size=(41, 3)), labels=rng.dirichlet(np.ones(3), 41))
    data = TabularLDL(path=str(tmp_path / "rows.npz"), folds=4, val_fraction=0.0)
    data.setup()
    return data


@pytest.fixture
def grouped(tmp_path: Path) -> TabularValues:
    rng = np.random.default_rng(0)
    arrays = {"features": rng.normal(size=(60, 3)), "value": rng.integers(1, 6, 60), "group": np.arange(60) // 4}
    np.savez(tmp_path / "grouped.npz", **arrays)
    data = TabularValues(path=str(tmp_path / "grouped.npz"), folds=3, val_fraction=0.0)
    data.setup()
    return data


@pytest.mark.parametrize("inner_folds", [1, 3])
def test_choosing_never_sees_a_test_row(rows: TabularLDL, inner_folds: int) -> None:
    spy, choice = Spy(rows), Selection(inner_folds=inner_folds, val_fraction=0.2)
    for fold in range(4):
        spy.seen.clear()
        row = choose_and_test(spy, fold, choice)
        assert row["setting"] == {"kl": 0.1} and row["measures"] == {"kl": 0.1} and "failed_settings" not in row
        *inner, (choosing, train, test) = spy.seen
        assert len(inner) == 3 * inner_folds and not choosing
        assert np.array_equal(np.sort([*train, *test]), np.arange(41))
        for choosing, fitted, measured in inner:
            assert choosing and not np.isin([*fitted, *measured], test).any()
            assert np.array_equal(np.sort([*fitted, *measured]), train)
        if inner_folds > 1:
            assert np.array_equal(np.unique(np.concatenate([part[2] for part in inner])), train)


@pytest.mark.parametrize("inner_folds", [1, 3])
def test_groups_never_straddle(grouped: TabularValues, inner_folds: int) -> None:
    spy = Spy(grouped)
    groups = grouped.groups
    assert groups is not None
    for fold in range(3):
        choose_and_test(spy, fold, Selection(inner_folds=inner_folds, val_fraction=0.3))
    assert len(spy.seen) == 3 * (3 * inner_folds + 1)
    for _, train, test in spy.seen:
        assert len(test) and not np.isin(groups[test], groups[train]).any()


def test_groups_that_the_protocol_splits_are_split_inside(grouped: TabularValues) -> None:
    """A setting for new rows of known groups is chosen on such rows."""
    grouped.protocol = "random_kfold"
    grouped.select_fold(0)
    assert grouped.groups is not None
    for cut in Selection(inner_folds=3).splits(grouped):
        assert np.isin(grouped.groups[cut.test], grouped.groups[cut.train]).any()


def test_all_rows_together_keep_their_groups(grouped: TabularValues) -> None:
    spy, groups = Spy(grouped), grouped.groups
    assert groups is not None
    assert Selection(inner_folds=3).choose(spy, ALL).setting == {"kl": 0.1}
    for _, train, test in spy.seen:
        assert len(train) + len(test) == 60 and not np.isin(groups[test], groups[train]).any()
    assert np.array_equal(np.unique(np.concatenate([test for _, _, test in spy.seen])), np.arange(60))


def test_a_setting_that_fails_is_not_taken(rows: TabularLDL) -> None:
    row = choose_and_test(Spy(rows, [{"kl": -1.0}, {"kl": 0.2}]), 0, Selection())
    assert row["setting"] == {"kl": 0.2} and row["failed_settings"] == {'{"kl": -1.0}': "no negative divergence"}
    assert choose_and_test(Spy(rows, [{"kl": -1.0}, {"kl": -2.0}]), 0, Selection()) == {
        "error": "no negative divergence"
    }
    assert choose_and_test(Spy(rows, [{}]), 0, Selection()) == {"error": "KeyError: 'kl'"}


def test_a_told_run_is_no_failure(rows: TabularLDL) -> None:
    stop.signal = 2
    try:
        with pytest.raises(Stopped):
            choose_and_test(Spy(rows), 0, Selection())
    finally:
        stop.reset()
