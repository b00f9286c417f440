"""Evaluation protocols: splits into training, validation and test rows, and their group leakage.

A protocol has two steps: a function here, or a published list, selects the test rows; :func:`with_validation` then
selects validation rows among the rest, by group if there are groups.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold, train_test_split

from ldl.errors import LDLError

LEAST_UNITS = 9
"""Smallest number of rows or groups that can calibrate an interval of 90%."""
CALIBRATION_ROWS = 50
"""Smallest tenth of the training rows that is held out for calibration unless a share is given."""


@dataclass(frozen=True)
class Fold:
    """Row numbers of one fold, disjoint rising int64 arrays."""

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray


def calibration_units(rows: int, groups: int | None = None) -> int:
    """Return how many training rows, or groups, are held out to calibrate a model if no share is given.

    It is a tenth, if a tenth of the rows is at least ``CALIBRATION_ROWS`` and a tenth of the groups at least
    ``LEAST_UNITS``, and else 0. Rows are rounded down to 49, 59, ...: if n + 1 is a multiple of ten, split conformal
    intervals of 50, 80 and 90% have exactly their level (Vovk et al. 2005).

    Args:
        rows: Number of rows of training and validation.
        groups: Number of their groups, if validation takes whole groups.
    """
    if rows // 10 < CALIBRATION_ROWS:
        return 0
    if groups is None:
        return (rows // 10 + 1) // 10 * 10 - 1
    return groups // 10 if groups // 10 >= LEAST_UNITS else 0


def with_validation(
    train: np.ndarray,
    test: np.ndarray,
    val_fraction: float | None,
    seed: int,
    fold: int = 0,
    groups: np.ndarray | None = None,
) -> Fold:
    """Split validation rows from the training rows at random.

    Args:
        train: Rows of training and validation.
        test: Rows of the test set.
        val_fraction: Share of the training instances, or groups, for validation, in [0, 1); 0 for none, and None for
            :func:`calibration_units`.
        seed: Random state, together with ``fold``.
        fold: Number of the fold.
        groups: (size,) group of every instance; validation then takes whole groups.

    Raises:
        LDLError: ``val_fraction`` is out of its range, or a part would be empty.
    """
    if val_fraction is not None and not 0 <= val_fraction < 1:
        raise LDLError(f"val_fraction {val_fraction!r} must be in [0, 1)")
    train, test = np.sort(train), np.sort(test)
    undivided = Fold(train, train[:0], test)
    if val_fraction == 0:
        return undivided
    owner = train if groups is None else groups[train]
    units = train if groups is None else distinct(owner)
    shuffled = np.random.default_rng([seed, fold]).permutation(units)
    if val_fraction is None:
        cut = calibration_units(len(train), None if groups is None else len(units))
        if not cut:
            return undivided
    else:
        cut = int(round(val_fraction * len(units)))
    if not 0 < cut < len(units):
        unit_name = "instances" if groups is None else "groups"
        raise LDLError(f"val_fraction {val_fraction:g} of {len(units)} training {unit_name} leaves an empty part")
    validated = np.isin(owner, shuffled[:cut])
    return Fold(train[~validated], train[validated], test)


def kfold(
    size: int, folds: int, fold: int, seed: int = 0, val_fraction: float | None = 0.0, groups: np.ndarray | None = None
) -> Fold:
    """Return one fold of scikit-learn's ``KFold(folds, shuffle=True, random_state=seed)``.

    Args:
        size: Number of instances.
        folds: Number of folds, at least 2.
        fold: The test fold, 0 to folds - 1.
        seed: Random state of the folds and of the validation rows.
        val_fraction: As of :func:`with_validation`.
        groups: (size,) group of every instance; folds then consist of whole groups.

    Raises:
        LDLError: An argument is out of its range, or there are too few instances or groups.
    """
    unit = np.arange(size) if groups is None else distinct(groups, return_inverse=True)[1]
    units = int(unit.max()) + 1 if size else 0
    _check_fold(fold, folds, units, "instances" if groups is None else "groups")
    parts = KFold(folds, shuffle=True, random_state=seed).split(np.arange(units))
    _, test = next(islice(parts, fold, None))
    tested = np.zeros(units, bool)
    tested[test] = True
    train_rows, test_rows = np.flatnonzero(~tested[unit]), np.flatnonzero(tested[unit])
    return with_validation(train_rows, test_rows, val_fraction, seed, fold, None if groups is None else unit)


def published_split(
    sets: np.ndarray, val_fraction: float | None, seed: int, fold: int = 0, groups: np.ndarray | None = None
) -> Fold:
    """Return the rows of a published split; without a validation set, one is split from the training rows.

    Args:
        sets: (size,) set of every instance: ``train``, ``val`` or ``test``.
        val_fraction: As of :func:`with_validation`, as are ``seed`` and ``groups``.
        seed: Random state.
        fold: The test fold: there is one, 0.
        groups: (size,) group of every instance, or None.

    Raises:
        LDLError: There is no instance of the training or the test set, or no such fold.
    """
    train, val, test = (np.flatnonzero(sets == name) for name in ("train", "val", "test"))
    if lacking := [name for name, rows in (("train", train), ("test", test)) if not len(rows)]:
        raise LDLError(
            f"no instance is in the set {lacking[0]!r} of the published split, which needs train and test; give "
            "both, or choose another protocol"
        )
    if fold:
        raise LDLError(f"fold {fold} must be 0: a published split has one fold")
    return Fold(train, val, test) if len(val) else with_validation(train, test, val_fraction, seed, fold, groups)


def leave_one_group_out(groups: np.ndarray, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows with the ``fold``-th group, in rising order, as test set. Raises LDLError."""
    names = distinct(groups)
    _check_fold(fold, len(names), len(names), "groups")
    tested = groups == names[fold]
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def stratified_kfold(
    values: np.ndarray, folds: int, fold: int, seed: int, groups: np.ndarray | None = None, width: float = 5.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows of folds that have the same mix of values, and never split a group.

    Args:
        values: (size,) values, such as ages, which are stratified in bins.
        folds: Number of folds.
        fold: The test fold.
        seed: Random state of the folds.
        groups: (size,) group of every instance, or None.
        width: Width of the bins, in the unit of ``values``; doubled until a bin holds as many instances as folds.

    Raises:
        LDLError: ``folds`` or ``fold`` is out of its range.
    """
    units = len(values) if groups is None else len(distinct(groups))
    _check_fold(fold, folds, units, "instances" if groups is None else "groups")
    bins = np.floor(values / width).astype(int)
    while np.unique(bins, return_counts=True)[1].max() < folds:
        # scikit-learn requires a bin that can be in all folds.
        width *= 2
        bins = np.floor((values - values.min()) / width).astype(int)
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():
        # A bin with fewer instances than folds cannot be in all of them; the other bins are stratified.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        parts = splitter(folds, shuffle=True, random_state=seed).split(np.zeros(len(bins)), bins, groups)
        train, test = next(islice(parts, fold, None))
    return train, test


def random_split(size: int, test_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows of one random split. Raises LDLError if a part would be empty."""
    if not 0 < round(test_fraction * size) < size:
        raise LDLError(f"a test share of {test_fraction:g} of {size} instances leaves an empty part")
    train, test = train_test_split(np.arange(size), test_size=round(test_fraction * size), random_state=seed)
    return train, test


def leak(fold: Fold, groups: np.ndarray) -> float:
    """Return the share of test instances whose group is also in training or validation, in [0, 1]."""
    trained = groups[np.concatenate([fold.train, fold.val])]
    return float(np.isin(groups[fold.test], trained).mean()) if len(fold.test) else 0.0


def keep_together(fold: Fold, units: np.ndarray) -> Fold:
    """Return the fold with every unit in one part: the part of its first row.

    Args:
        fold: Rows of the parts.
        units: (size,) equal for rows that belong together, such as copies of one image.

    Raises:
        LDLError: No training rows, or no test rows, would remain.
    """
    parts = (fold.train, fold.val, fold.test)
    rows = np.concatenate(parts)
    order = np.argsort(rows, kind="stable")
    sets = np.repeat(np.arange(3), [len(some) for some in parts])[order]
    rows = rows[order]
    _, first, unit = np.unique(units[rows], return_index=True, return_inverse=True)
    sets = sets[first][unit]
    kept = Fold(*(rows[sets == number] for number in range(3)))
    if not len(kept.train) or (len(fold.test) and not len(kept.test)):
        raise LDLError(
            f"{len(rows)} instances have only {len(first)} different inputs, too few for training and test sets "
            "without common copies; add others, or use fewer folds"
        )
    return kept


def split_ratio(folds: Iterable[Fold]) -> float:
    """Return the mean over folds of the number of test rows per training or validation row."""
    return float(np.mean([len(fold.test) / (len(fold.train) + len(fold.val)) for fold in folds]))


def distinct(groups: np.ndarray, **options: Any) -> Any:
    """Return ``np.unique`` of groups. Raises LDLError for types that do not sort, such as texts and numbers."""
    try:
        return np.unique(groups, **options)
    except TypeError:
        kinds = sorted({type(group).__name__ for group in groups})
        raise LDLError(
            f"groups mix the types {', '.join(kinds)}; give all of one type, such as [str(group) for group in groups]"
        ) from None


def _check_fold(fold: int, folds: int, units: int, unit_name: str) -> None:
    if units < 2:
        raise LDLError(
            f"folds {folds} need at least 2 {unit_name}, and the number of {unit_name} is {units}; give more of them"
        )
    if not 2 <= folds <= units:
        raise LDLError(f"folds {folds} must be in 2..{units}, the number of {unit_name}")
    if not 0 <= fold < folds:
        raise LDLError(f"fold {fold} must be in 0..{folds - 1}, one of the {folds} folds")
