"""MORPH's protocols: made here from what is known of the pictures, or read from published lists.

Nearly every figure printed for MORPH comes from a protocol that lets the same persons into training and test. They
are here to compare with such figures; ``subject_exclusive`` is the one that measures ages of unknown persons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ldl.data.faces.morph.lists import SplitList, match, read_list
from ldl.data.faces.protocols import RANDOM_80_20, RANDOM_KFOLD, SUBJECT_EXCLUSIVE, Cut, FaceProtocol, Rows
from ldl.errors import LDLError
from ldl.protocols import random_split

CAUCASIAN_SIZE = 5492
"""Pictures of white persons in the published protocol, of about 10,600; by which rule they were chosen is not known."""

SUB_SIZES = {"M": 7960, "F": 2570}
"""Pictures of men and of women, of black and of white persons each: the 21,060 of Morph_Sub as we read it.

The LDLF paper says that the set is balanced and, by its parts, how large it is; it does not print these counts.
"""

SUB_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Share of Morph_Sub that is trained on, by fold."""


def listed_files(cut: Cut, *patterns: str) -> list[SplitList]:
    """The lists of a folder, one for each pattern of ``glob``. Raises LDLError where there are none or several."""
    folder = cut.split_list
    if folder is None or not folder.is_dir():
        raise LDLError(f"data.split_list {folder} must be the folder of the lists {', '.join(patterns)}")
    lists = []
    for pattern in patterns:
        found = sorted(folder.glob(pattern))
        if len(found) != 1:
            names = ", ".join(path.name for path in found) or "none"
            raise LDLError(f"{folder} must hold one list {pattern}, it holds {names}; correct data.split_list")
        lists.append(read_list(found[0]))
    return lists


def listed_file(cut: Cut) -> SplitList:
    """The given list, or the only one in the given folder. Raises LDLError."""
    if cut.split_list is None:
        raise LDLError("this protocol follows a published list; name it in data.split_list")
    if not cut.split_list.is_dir():
        return read_list(cut.split_list)
    found = sorted(path for path in cut.split_list.iterdir() if path.suffix in (".txt", ".csv"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise LDLError(f"{cut.split_list} must hold one list, it holds {names}; name a file in data.split_list")
    return read_list(found[0])


def parts(train: np.ndarray, test: np.ndarray) -> Rows:
    """Training and test rows of lists, less missing pictures. Raises LDLError for an empty part, or a shared row."""
    train, test = train[train >= 0], test[test >= 0]
    if not len(train) or not len(test):
        raise LDLError(
            f"{len(train)} pictures of training and {len(test)} of test are there; "
            "the protocol needs both: choose another, or a list of these pictures"
        )
    if len(both := np.intersect1d(train, test)):
        raise LDLError(f"the lists put {len(both)} pictures into training and test; correct data.split_list")
    return train, test


def cells(cut: Cut) -> dict[tuple[str, str], np.ndarray]:
    """Rows by race (B or W) and gender (M or F), in random order. Raises LDLError where races are not known."""
    if "race" not in cut.records.facts:
        raise LDLError(
            "no file says the races of these pictures, which the protocol needs: name a published list in "
            "data.split_list, or add the release's CSV file"
        )
    race, gender = cut.records.facts["race"], cut.records.facts["gender"]
    rng = np.random.default_rng(cut.seed)
    return {(r, g): rng.permutation(np.flatnonzero((race == r) & (gender == g))) for r in "BW" for g in "MF"}


def _fold_column(cut: Cut) -> Rows:
    listed = listed_file(cut)
    tested = _column(listed) == np.unique(_column(listed))[cut.fold]
    (rows,) = match([listed], cut)
    return parts(rows[~tested], rows[tested])


def _count_column(cut: Cut) -> int:
    return len(np.unique(_column(listed_file(cut))))


def _column(listed: SplitList) -> np.ndarray:
    if listed.folds is None:
        raise LDLError(f"{listed.path} has no column 'fold', which this protocol needs; choose another list")
    return listed.folds


def _caucasian_list(cut: Cut) -> Rows:
    return parts(*match(listed_files(cut, f"*fold{cut.fold}_train.*", f"*fold{cut.fold}_test.*"), cut))


def _count_caucasian_list(cut: Cut) -> int:
    listed_files(cut, "*fold0_train.*", "*fold0_test.*")
    assert cut.split_list is not None
    return len(list(cut.split_list.glob("*fold*_test.*")))


def _caucasian(cut: Cut) -> Rows:
    by_cell = cells(cut)
    white = np.sort(np.concatenate([by_cell["W", "M"], by_cell["W", "F"]]))
    drawn = np.sort(np.random.default_rng(cut.seed).permutation(white)[:CAUCASIAN_SIZE])
    train, test = random_split(len(drawn), 0.2, cut.seed + cut.fold)
    return drawn[train], drawn[test]


def _three_sets_list(cut: Cut) -> Rows:
    return _trained_on_one(match(listed_files(cut, "*fold0.*", "*fold1.*", "*fold2.*"), cut), cut.fold)


def _three_sets(cut: Cut) -> Rows:
    by_cell = cells(cut)
    women = min(min(len(by_cell[race, "F"]) // 2, len(by_cell[race, "M"]) // 6) for race in "BW")
    if not women:
        counts = ", ".join(f"{race}{gender} {len(rows)}" for (race, gender), rows in by_cell.items())
        raise LDLError(f"S1 and S2 need two pictures of women and six of men, black and white each; there are {counts}")
    sizes = {"F": women, "M": 3 * women}
    sets = [
        np.concatenate([rows[number * sizes[gender] :][: sizes[gender]] for (_, gender), rows in by_cell.items()])
        for number in range(2)
    ]
    rest = np.setdiff1d(np.arange(len(cut.records)), np.concatenate(sets))
    return _trained_on_one([*sets, rest], cut.fold)


def _trained_on_one(sets: list[np.ndarray], fold: int) -> Rows:
    return parts(sets[fold], np.concatenate([rows for number, rows in enumerate(sets) if number != fold]))


def _morph_sub_list(cut: Cut) -> Rows:
    (rows,) = match([listed_file(cut)], cut)
    return _growing(np.sort(rows[rows >= 0]), cut)


def _morph_sub(cut: Cut) -> Rows:
    by_cell = cells(cut)
    size = {g: min(SUB_SIZES[g], len(by_cell["B", g]), len(by_cell["W", g])) for g in SUB_SIZES}
    return _growing(np.sort(np.concatenate([rows[: size[gender]] for (_, gender), rows in by_cell.items()])), cut)


def _growing(subset: np.ndarray, cut: Cut) -> Rows:
    train, test = random_split(len(subset), 1 - SUB_SHARES[-1], cut.seed)
    return parts(subset[train[: round(SUB_SHARES[cut.fold] * len(subset))]], subset[test])


def _coral_list(cut: Cut) -> Rows:
    train, valid, test = match(listed_files(cut, "*train*.csv", "*valid*.csv", "*test*.csv"), cut)
    return parts(np.concatenate([train, valid]), test)


def _either(made: FaceProtocol, rows: Callable[[Cut], Rows], count: Callable[[Cut], int]) -> FaceProtocol:
    """A protocol that follows a list where one is given, and is made here where none is."""
    return replace(
        made,
        rows=lambda cut: made.rows(cut) if cut.split_list is None else rows(cut),
        count=lambda cut: made.count(cut) if cut.split_list is None else count(cut),
        listed=True,
    )


def _fixed(folds: int) -> Callable[[Cut], int]:
    return lambda cut: folds


MORPH_PROTOCOLS = {
    "subject_exclusive": SUBJECT_EXCLUSIVE,
    # Made to keep persons apart, but 180 of the public list's are in several folds.
    "subject_exclusive_list": FaceProtocol(_fold_column, True, _count_column, listed=True),
    "random_80_20": _either(RANDOM_80_20, _fold_column, _count_column),
    "random_10fold": FaceProtocol(lambda cut: RANDOM_KFOLD.rows(replace(cut, folds=10)), True, _fixed(10)),
    "caucasian": _either(FaceProtocol(_caucasian, True), _caucasian_list, _count_caucasian_list),
    "s1_s2_s3": _either(FaceProtocol(_three_sets, True, _fixed(2)), _three_sets_list, _fixed(2)),
    "morph_sub": _either(
        FaceProtocol(_morph_sub, True, _fixed(len(SUB_SHARES))), _morph_sub_list, _fixed(len(SUB_SHARES))
    ),
    "coral_list": FaceProtocol(_coral_list, True, _fixed(1), listed=True),
}
