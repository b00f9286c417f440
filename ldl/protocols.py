"""How a data set is cut into training, validation and test instances, and whether that cut leaks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold

from ldl.errors import LDLError


@dataclass(frozen=True)
class Fold:
    """Row numbers of one fold, each a rising int64 array; together they are disjoint."""

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray


def kfold(
    size: int,
    folds: int,
    fold: int,
    seed: int = 0,
    val_fraction: float = 0.0,
    groups: np.ndarray | None = None,
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
    if not 0 <= fold < folds:
        raise LDLError(f"fold {fold} must be in 0..{folds - 1}, one of the {folds} folds")
    if not 0 <= val_fraction < 1:
        raise LDLError(f"val_fraction {val_fraction!r} must be in [0, 1)")
    unit = np.arange(size) if groups is None else np.unique(groups, return_inverse=True)[1]
    units = int(unit.max()) + 1 if size else 0
    if not 2 <= folds <= units:
        raise LDLError(
            f"folds {folds} must be in 2..{units}, the number of {'instances' if groups is None else 'groups'}"
        )
    splits = KFold(folds, shuffle=True, random_state=seed).split(np.arange(units))
    train, test = next(split for number, split in enumerate(splits) if number == fold)
    shuffled = np.random.default_rng([seed, fold]).permutation(train)
    cut = int(round(val_fraction * len(train)))
    if val_fraction > 0 and not 0 < cut < len(train):
        raise LDLError(f"val_fraction {val_fraction:g} of {len(train)} training instances leaves an empty part")
    return Fold(*(np.flatnonzero(np.isin(unit, part)) for part in (shuffled[cut:], shuffled[:cut], test)))


def leak(fold: Fold, groups: np.ndarray | None) -> float:
    """Share of test instances whose group (the person, say) is also in training or validation, in [0, 1].

    Without groups every instance is its own group, and nothing leaks.
    """
    if groups is None:
        return 0.0
    return float(np.isin(groups[fold.test], groups[np.concatenate([fold.train, fold.val])]).mean())
