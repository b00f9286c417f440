"""MORPH's file names, published lists and evaluation protocols.

Most published results for MORPH use a protocol with the same persons in the training and test sets. Use those protocols
to compare with such results; ``subject_exclusive`` measures the error for unseen persons.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ldl.collective import process_rank
from ldl.data.images.crops import file_state
from ldl.data.images.records import ImageRecords, SplitProtocol, SplitRequest, TrainTest
from ldl.errors import LDLError, some
from ldl.faces.protocols import RANDOM_80_20, RANDOM_KFOLD, SUBJECT_EXCLUSIVE
from ldl.protocols import Fold, random_split
from ldl.tables.csv_table import CsvTable, read_csv
from ldl.validation.files import check_file, visible

EXAMPLE = "009055_1M54.JPG"
"""Example of a file name: person, number of the person's image, gender and age."""

CAUCASIAN_SIZE = 5492
"""Images of white persons in the published protocol, of about 10,600; the rule of their selection is unknown."""

SUB_SIZES = {"M": 7960, "F": 2570}
"""Images of men and women, for black and white persons each: Morph_Sub's 21,060 images as this module reads the paper.

The LDLF paper says that the subset is balanced, and gives sizes of its parts, but not these counts.
"""

SUB_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Share of Morph_Sub in the training set, by fold."""


class MorphName(NamedTuple):
    """Fields of a file name: numbers of person and image, ``gender`` M or F, and ``age`` in years."""

    person: int
    picture: int
    gender: str
    age: int


def parse_name(file: str) -> MorphName | None:
    """Parse the name of an image, with or without folder and ending; return None for a name of another form."""
    match = re.fullmatch(r"(\d+)_(\d+)([MF])(\d+)", stem(file), re.IGNORECASE | re.ASCII)
    return MorphName(int(match[1]), int(match[2]), match[3].upper(), int(match[4])) if match else None


def stem(file: str) -> str:
    """Return the key that matches lists and images: the lower-case name without folder and ending."""
    base = file.replace("\\", "/").rpartition("/")[2]
    return (base.rpartition(".")[0] or base).lower()


@dataclass(frozen=True)
class SplitList:
    """A published list of images.

    Attributes:
        path: Its file.
        stems: (N,) names of the images; see :func:`stem`.
        folds: (N,) fold of each image, or None without such a column.
        races: (N,) letters such as B and W, or None. Lists that use numbers have none, since their meaning differs.
    """

    path: Path
    stems: list[str]
    folds: np.ndarray | None = None
    races: list[str] | None = None


def read_list(path: Path) -> SplitList:
    """Read a list with one image per line, separated by commas or blanks, with or without header.

    The column of names is found by their form. Ages and genders come from the names, since lists code them differently.

    Raises:
        LDLError: The list is missing, a line has no image name or another number of fields, an image is named twice,
            or a fold is not a number.
    """
    check_file(path, "list", "correct data.split_list")
    table = read_rows(path)
    columns = [name for name in table.header if len(table) and parse_name(table.column(name)[0])]
    if len(columns) != 1:
        raise LDLError(f"{path} needs one column of images such as {EXAMPLE}, it has {len(columns)}: {some(columns)}")
    names = table.column(columns[0])
    for row, name in enumerate(names):
        if not parse_name(name):
            table.refuse(row, columns[0], f"no image such as {EXAMPLE}")
    stems = list(map(stem, names))
    if len(set(stems)) < len(stems):
        raise LDLError(f"{path} names the image {Counter(stems).most_common(1)[0][0]} twice; remove one line")
    folds = races = None
    if "fold" in table.header:
        folds = table.numbers(["fold"])[:, 0].astype(int)
    if "race" in table.header:
        races = [race.upper() for race in table.column("race")]
        races = None if any(map(str.isdecimal, races)) else races
    return SplitList(path, stems, folds, races)


def read_rows(path: Path) -> CsvTable:
    """Read a table with its header in lower case; a file that begins with an image has none. Raises LDLError."""
    table = read_csv(path, has_header=lambda first: not any(map(parse_name, first)), blanks=True)
    return replace(table, header=[name.lower() for name in table.header])


def named_records(folder: Path, files: dict[str, str], races: dict[str, str]) -> ImageRecords:
    """Return records of ``files`` below ``folder``; files and races are by :func:`stem`.

    The order of names makes protocols draw the same images wherever they lie.
    """
    stems = sorted(files)
    names = [name for name in map(parse_name, stems) if name]
    facts = {"gender": np.array([name.gender for name in names])}
    if any(name in races for name in stems):
        facts["race"] = np.array([races.get(name, "") for name in stems])
    return ImageRecords(
        folder,
        [files[name] for name in stems],
        np.array([float(name.age) for name in names]),
        np.array([name.person for name in names], dtype=np.int64),
        facts=facts,
    )


def _match(listed: Sequence[SplitList], request: SplitRequest) -> list[np.ndarray]:
    """Return the rows of each list's images, -1 for missing images that may be left out. Raises LDLError."""
    where = {stem(file): row for row, file in enumerate(request.records.files)}
    for each in listed:
        if missing := [name for name in each.stems if name not in where]:
            absent = f"{len(missing)} of {len(each.stems)} images of {each.path}"
            message = f"{absent} are not there, the first: {missing[0]}"
            if not request.skip_missing:
                raise LDLError(f"{message}; add them, or leave them out with --data.skip_unreadable true")
            if process_rank() == 0:
                print(message, flush=True)
    return [np.array([where.get(name, -1) for name in each.stems], dtype=np.int64) for each in listed]


def _lists(request: SplitRequest, *patterns: str) -> list[SplitList]:
    """Read the lists of a folder, one for each glob pattern; without patterns, its only list or the given file."""
    source = request.split_list
    if source is None:
        raise LDLError("this protocol follows a published list; name it in data.split_list")
    if patterns and not source.is_dir():
        raise LDLError(f"data.split_list {source} must be the folder of the lists {', '.join(patterns)}")
    if not source.is_dir():
        return [_read(source, file_state(source))]
    lists = []
    for pattern in patterns or ("*.[tc][xs][tv]",):
        files = visible(source, pattern)
        if len(files) != 1:
            names = ", ".join(path.name for path in files) or "none"
            raise LDLError(f"{source} must hold one list {pattern}, it holds {names}; correct data.split_list")
        lists.append(_read(files[0], file_state(files[0])))
    return lists


@lru_cache(maxsize=8)
def _read(path: Path, state: tuple[int, int]) -> SplitList:
    # A cross-validation needs the same list several times per fold.
    return read_list(path)


def _split(train: np.ndarray, test: np.ndarray) -> TrainTest:
    """Return the rows without missing images. Raises LDLError for an empty set or a shared row."""
    train, test = train[train >= 0], test[test >= 0]
    if not len(train) or not len(test):
        raise LDLError(
            f"{len(train)} training images and {len(test)} test images are there; "
            "the protocol needs both: choose another, or a list of these images"
        )
    if len(both := np.intersect1d(train, test)):
        raise LDLError(f"the lists put {len(both)} images into training and test; correct data.split_list")
    return train, test


def _by_race_and_gender(request: SplitRequest) -> dict[tuple[str, str], np.ndarray]:
    """Return rows by race (B or W) and gender (M or F), in random order."""
    if "race" not in request.records.facts:
        raise LDLError(
            "no file lists the races of these images, which the protocol needs: name a published list in "
            "data.split_list, or add the release's CSV file"
        )
    race, gender = request.records.facts["race"], request.records.facts["gender"]
    rng = np.random.default_rng(request.seed)
    return {(r, g): rng.permutation(np.flatnonzero((race == r) & (gender == g))) for r in "BW" for g in "MF"}


def _listed_folds(request: SplitRequest) -> tuple[SplitList, np.ndarray]:
    (listed,) = _lists(request)
    if listed.folds is None:
        raise LDLError(f"{listed.path} has no column 'fold', which this protocol needs; choose another list")
    return listed, listed.folds


def _listed_fold(request: SplitRequest) -> TrainTest:
    listed, folds = _listed_folds(request)
    tested = folds == np.unique(folds)[request.fold]
    (rows,) = _match([listed], request)
    return _split(rows[~tested], rows[tested])


def _count_listed_folds(request: SplitRequest) -> int:
    return len(np.unique(_listed_folds(request)[1]))


def _random_80_20(request: SplitRequest) -> TrainTest | Fold:
    return _listed_fold(request) if request.split_list else RANDOM_80_20.rows(request)


def _count_random_80_20(request: SplitRequest) -> int:
    return _count_listed_folds(request) if request.split_list else request.folds


def _caucasian(request: SplitRequest) -> TrainTest:
    if request.split_list:
        patterns = (f"*fold{request.fold}_{subset}.*" for subset in ("train", "test"))
        return _split(*_match(_lists(request, *patterns), request))
    cells = _by_race_and_gender(request)
    white = np.sort(np.concatenate([cells["W", "M"], cells["W", "F"]]))
    drawn = np.sort(np.random.default_rng(request.seed).permutation(white)[:CAUCASIAN_SIZE])
    train, test = random_split(len(drawn), 0.2, request.seed + request.fold)
    return drawn[train], drawn[test]


def _count_caucasian(request: SplitRequest) -> int:
    if request.split_list is None:
        return request.folds
    _lists(request, "*fold0_train.*", "*fold0_test.*")
    return len(visible(request.split_list, "*fold*_test.*"))


def _three_sets(request: SplitRequest) -> TrainTest:
    if request.split_list:
        sets = _match(_lists(request, "*fold0.*", "*fold1.*", "*fold2.*"), request)
    else:
        cells = _by_race_and_gender(request)
        women = min(min(len(cells[race, "F"]) // 2, len(cells[race, "M"]) // 6) for race in "BW")
        if not women:
            counts = ", ".join(f"{race}{gender} {len(rows)}" for (race, gender), rows in cells.items())
            raise LDLError(
                f"S1 and S2 need two images of women and six of men, black and white each; there are {counts}"
            )
        sizes = {"F": women, "M": 3 * women}
        sets = [
            np.concatenate([rows[number * sizes[gender] :][: sizes[gender]] for (_, gender), rows in cells.items()])
            for number in range(2)
        ]
        sets.append(np.setdiff1d(np.arange(len(request.records)), np.concatenate(sets)))
    others = [rows for number, rows in enumerate(sets) if number != request.fold]
    return _split(sets[request.fold], np.concatenate(others))


def _morph_sub(request: SplitRequest) -> TrainTest:
    if request.split_list:
        (rows,) = _match(_lists(request), request)
        subset = np.sort(rows[rows >= 0])
    else:
        cells = _by_race_and_gender(request)
        size = {g: min(SUB_SIZES[g], len(cells["B", g]), len(cells["W", g])) for g in SUB_SIZES}
        subset = np.sort(np.concatenate([rows[: size[gender]] for (_, gender), rows in cells.items()]))
    train, test = random_split(len(subset), 1 - SUB_SHARES[-1], request.seed)
    return _split(subset[train[: round(SUB_SHARES[request.fold] * len(subset))]], subset[test])


def _coral(request: SplitRequest) -> TrainTest:
    train, valid, test = _match(_lists(request, "*train*.csv", "*valid*.csv", "*test*.csv"), request)
    return _split(np.concatenate([train, valid]), test)


def _random_10fold(request: SplitRequest) -> TrainTest | Fold:
    return RANDOM_KFOLD.rows(replace(request, folds=10))


_published = partial(SplitProtocol, leaky=True, published=True)
_listed = partial(_published, listed=True)

MORPH_PROTOCOLS = {
    "subject_exclusive": SUBJECT_EXCLUSIVE,
    # The list was made to keep persons apart, but 180 persons of the public list are in several folds.
    "subject_exclusive_list": _listed(_listed_fold, count=_count_listed_folds),
    "random_80_20": _listed(_random_80_20, count=_count_random_80_20),
    "random_10fold": _published(_random_10fold, count=lambda request: 10),
    "caucasian": _listed(_caucasian, count=_count_caucasian),
    "s1_s2_s3": _listed(_three_sets, count=lambda request: 2),
    "morph_sub": _listed(_morph_sub, count=lambda request: len(SUB_SHARES)),
    "coral_list": _listed(_coral, count=lambda request: 1),
}
