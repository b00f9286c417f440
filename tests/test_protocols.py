"""Folds equal scikit-learn's, keep groups together, and say what leaks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from ldl.errors import LDLError
from ldl.protocols import Fold, calibration_units, kfold, leak, split_ratio, with_validation


@pytest.mark.parametrize("size", [10, 213, 2000])
@pytest.mark.parametrize("seed", [0, 7])
def test_test_parts_are_those_of_scikit_learn(size: int, seed: int) -> None:
    splits = KFold(10, shuffle=True, random_state=seed).split(np.zeros((size, 1)))
    for number, (train, test) in enumerate(splits):
        fold = kfold(size, 10, number, seed)
        assert np.array_equal(fold.test, test)
        assert np.array_equal(fold.train, train)
        assert len(fold.val) == 0


@pytest.mark.parametrize("val_fraction", [0.1, 0.5])
def test_validation_is_cut_from_training_alone(val_fraction: float) -> None:
    plain, cut = kfold(213, 10, 3), kfold(213, 10, 3, val_fraction=val_fraction)
    assert np.array_equal(cut.test, plain.test)
    assert np.array_equal(np.sort(np.concatenate([cut.train, cut.val])), plain.train)
    assert len(cut.val) == round(val_fraction * len(plain.train))
    assert bool((np.diff(cut.train) > 0).all()) and bool((np.diff(cut.val) > 0).all())
    assert np.array_equal(cut.val, kfold(213, 10, 3, val_fraction=val_fraction).val)
    assert not np.array_equal(cut.val, kfold(213, 10, 3, seed=1, val_fraction=val_fraction).val)
    # Spread over the file, not one end of it.
    assert cut.val.min() < 60 and cut.val.max() > 150


@pytest.mark.parametrize(
    ("rows", "groups", "units"),
    [
        *[(1, None, 0), (499, None, 0), (500, None, 49), (589, None, 49), (590, None, 59), (10_000, None, 999)],
        *[(900, 89, 0), (900, 90, 9), (499, 400, 0), (900, 199, 19), (900, 900, 90)],
    ],
)
def test_a_tenth_calibrates_where_it_suffices(rows: int, groups: int | None, units: int) -> None:
    assert calibration_units(rows, groups) == units
    owner = None if groups is None else np.random.default_rng(0).permutation(np.arange(rows) % groups)
    fold = with_validation(np.arange(rows), np.arange(0), None, 0, groups=owner)
    assert len(fold.val if owner is None else np.unique(owner[fold.val])) == units
    assert np.array_equal(np.sort(np.concatenate([fold.train, fold.val])), np.arange(rows))
    if owner is not None:
        assert not set(owner[fold.train]) & set(owner[fold.val])


def test_held_out_rows_make_the_usual_levels_exact() -> None:
    """With n rows, a split conformal interval has a coverage of ceil((n + 1) level) / (n + 1)."""
    for rows in range(500, 3000, 7):
        held = calibration_units(rows)
        assert 0.8 * rows / 10 < held <= rows / 10
        assert all((held + 1) * percent % 100 == 0 for percent in (50, 80, 90))


@pytest.mark.parametrize("kind", ["numbers", "names"])
def test_groups_are_never_split(kind: str) -> None:
    rng = np.random.default_rng(0)
    people = rng.integers(0, 30, 400) * 7
    groups = people if kind == "numbers" else np.array([f"person {number}" for number in people])
    tested = []
    for number in range(5):
        fold = kfold(400, 5, number, val_fraction=0.2, groups=groups)
        parts = [set(groups[rows].tolist()) for rows in (fold.train, fold.val, fold.test)]
        assert all(parts)
        assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
        assert sorted(np.concatenate([fold.train, fold.val, fold.test]).tolist()) == list(range(400))
        assert leak(fold, groups) == 0
        tested.append(fold.test)
    assert sorted(np.concatenate(tested).tolist()) == list(range(400))


def test_the_leak_audit_counts_test_instances() -> None:
    groups = np.array(["a", "a", "b", "b", "c", "d", "a"])
    fold = Fold(train=np.array([0, 2]), val=np.array([4]), test=np.array([1, 3, 5, 6]))
    assert leak(fold, groups) == 0.75
    seen_in_validation = Fold(train=np.array([0]), val=np.array([2]), test=np.array([3, 5]))
    assert leak(seen_in_validation, groups) == 0.5


def test_cutting_instances_leaks_groups() -> None:
    groups = np.repeat(np.arange(20), 10)
    assert leak(kfold(200, 10, 0), groups) > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fold": 10}, "fold 10 must be in 0..9"),
        ({"fold": -1}, "fold -1 must be in 0..9"),
        ({"folds": 1}, "folds 1 must be in 2..20, the number of instances"),
        ({"folds": 21}, "folds 21 must be in 2..20"),
        ({"size": 0}, "folds 10 need at least 2 instances, and the number of instances is 0"),
        ({"val_fraction": 1.0}, "val_fraction 1.0 must be in"),
        ({"val_fraction": -0.1}, "val_fraction -0.1 must be in"),
        ({"val_fraction": 0.01}, "val_fraction 0.01 of 18 training instances leaves an empty part"),
        ({"groups": np.arange(20) // 4}, "folds 10 must be in 2..5, the number of groups"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        kfold(**{"size": 20, "folds": 10, "fold": 0, **arguments})  # type: ignore[arg-type]


def test_validation_rows_are_of_the_training_part() -> None:
    assert split_ratio(kfold(50, 5, fold, val_fraction=0.2) for fold in range(5)) == pytest.approx(1 / 4)
    rows = np.arange(10)
    assert split_ratio([Fold(rows[:4], rows[4:5], rows[5:])]) == 1
