"""How a data set is cut into training, validation and test instances, and whether that cut leaks.

A protocol is two steps: a function here, or a published list, says which rows are tested; :func:`with_validation`
then cuts validation rows from the rest, by group where there are groups.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold, train_test_split

from ldl.errors import LDLError


@dataclass(frozen=True)
class Fold:
    """Row numbers of one fold, each a rising int64 array; together they are disjoint."""

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray


def with_validation(
    train: np.ndarray, test: np.ndarray, val_fraction: float, seed: int, fold: int = 0, groups: np.ndarray | None = None
) -> Fold:
    """Cut a validation part from the training rows, at random.

    Args:
        train: Rows of training and validation.
        test: Rows of the test part.
        val_fraction: Share of the training instances, or groups, that is cut off, in [0, 1); 0 for none.
        seed: Random state, together with ``fold``.
        fold: Number of the fold.
        groups: (size,) group of every instance; validation then takes whole groups.

    Raises:
        LDLError: ``val_fraction`` out of its range, or a part would be empty.
    """
    if not 0 <= val_fraction < 1:
        raise LDLError(f"val_fraction {val_fraction!r} must be in [0, 1)")
    train, test = np.sort(train), np.sort(test)
    if not val_fraction:
        return Fold(train, train[:0], test)
    owner = train if groups is None else groups[train]
    units = train if groups is None else np.unique(owner)
    shuffled = np.random.default_rng([seed, fold]).permutation(units)
    cut = int(round(val_fraction * len(units)))
    if not 0 < cut < len(units):
        what = "instances" if groups is None else "groups"
        raise LDLError(f"val_fraction {val_fraction:g} of {len(units)} training {what} leaves an empty part")
    validated = np.isin(owner, shuffled[:cut])
    return Fold(train[~validated], train[validated], test)


def kfold(
    size: int, folds: int, fold: int, seed: int = 0, val_fraction: float = 0.0, groups: np.ndarray | None = None
) -> Fold:
    """One fold of scikit-learn's ``KFold(folds, shuffle=True, random_state=seed)``.

    Args:
        size: Number of instances.
        folds: Number of folds, at least 2.
        fold: Which fold is the test part, 0 to folds - 1.
        seed: Random state of the folds and of the validation part.
        val_fraction: Share of the training part that is cut off for validation, in [0, 1); 0 for none.
        groups: (size,) group of every instance; groups are then cut instead of instances, and never split.

    Raises:
        LDLError: an argument out of its range, or too few instances or groups.
    """
    unit = np.arange(size) if groups is None else np.unique(groups, return_inverse=True)[1]
    units = int(unit.max()) + 1 if size else 0
    _check_fold(fold, folds, units, "instances" if groups is None else "groups")
    parts = KFold(folds, shuffle=True, random_state=seed).split(np.arange(units))
    _, test = next(islice(parts, fold, None))
    tested = np.zeros(units, bool)
    tested[test] = True
    train_rows, test_rows = np.flatnonzero(~tested[unit]), np.flatnonzero(tested[unit])
    return with_validation(train_rows, test_rows, val_fraction, seed, fold, None if groups is None else unit)


def leave_one_group_out(groups: np.ndarray, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows where the ``fold``-th group, in rising order, is tested. Raises LDLError."""
    names = np.unique(groups)
    _check_fold(fold, len(names), len(names), "groups")
    tested = groups == names[fold]
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def stratified_kfold(
    values: np.ndarray, folds: int, fold: int, seed: int, groups: np.ndarray | None = None, width: float = 5.0
) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of folds that have the same mix of values, and of groups that are never split.

    Args:
        values: (size,) values, such as ages; they are stratified in bins.
        folds: Number of folds.
        fold: The tested fold.
        seed: Random state of the folds.
        groups: (size,) group of every instance, or None.
        width: Width of the bins, in the unit of ``values``; doubled until one holds as many instances as folds.

    Raises:
        LDLError: folds or fold out of range.
    """
    units = len(values) if groups is None else len(np.unique(groups))
    _check_fold(fold, folds, units, "instances" if groups is None else "groups")
    bins = np.floor(values / width).astype(int)
    while np.unique(bins, return_counts=True)[1].max() < folds:
        # scikit-learn refuses where no bin could be in all folds.
        width *= 2
        bins = np.floor((values - values.min()) / width).astype(int)
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():
        # A bin with fewer instances than folds cannot be in all of them; the others are stratified all the same.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        parts = splitter(folds, shuffle=True, random_state=seed).split(np.zeros(len(bins)), bins, groups)
        train, test = next(islice(parts, fold, None))
    return train, test


def random_split(size: int, test_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of one random cut. Raises LDLError for a share that leaves a part empty."""
    if not 0 < round(test_fraction * size) < size:
        raise LDLError(f"a test share of {test_fraction:g} of {size} instances leaves an empty part")
    train, test = train_test_split(np.arange(size), test_size=round(test_fraction * size), random_state=seed)
    return train, test


def leak(fold: Fold, groups: np.ndarray) -> float:
    """Share of test instances whose group (the person, say) is also in training or validation, in [0, 1]; 0 of none."""
    known = groups[np.concatenate([fold.train, fold.val])]
    return float(np.isin(groups[fold.test], known).mean()) if len(fold.test) else 0.0


def split_ratio(folds: Iterable[Fold]) -> float:
    """Tested rows for each row of the training part, validation rows among them: the mean over some folds."""
    return float(np.mean([len(fold.test) / (len(fold.train) + len(fold.val)) for fold in folds]))


def _check_fold(fold: int, folds: int, units: int, what: str) -> None:
    if not 0 <= fold < folds:
        raise LDLError(f"fold {fold} must be in 0..{folds - 1}, one of the {folds} folds")
    if not 2 <= folds <= units:
        raise LDLError(f"folds {folds} must be in 2..{units}, the number of {what}")
