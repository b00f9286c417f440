"""Published data sets of faces and ages: read each in its own layout, and summarise what it holds.

``ldl faces`` writes the result as a list for :class:`ldl.data.FaceFolder`, and prints the summary. No image is decoded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ldl.collective import process_rank
from ldl.data.images.records import ImageRecords, SplitProtocol, SplitRequest
from ldl.data.pictures import describe, list_pictures, same_bytes
from ldl.errors import LDLError
from ldl.faces.lists import read_entries, spelled_as_on_disk, upright_corners
from ldl.protocols import Fold, keep_together, leak
from ldl.tables.csv_table import CsvTable, read_csv
from ldl.tables.entries import to_numbers
from ldl.validation.files import visible

SET_NAMES = {"train": "train", "valid": "val", "test": "test"}
"""Names of the parts in releases, and in lists for ``FaceFolder``."""

MORPH_NAMES = "d800fced373e4b2780edd871103a2f0d77b0a209ebdf9bf0c6b0963d318396df"
"""Digest of the names of MORPH's 55,134 images, as the published lists name them (Shin et al., CVPR 2022)."""


@dataclass(frozen=True)
class Release:
    """A published data set of faces.

    Attributes:
        name: Name of the data set.
        where: Where to get it.
        licence: Its licence.
        layout: Its files, for error messages.
        reader: Lists the images below a folder, given also a published list or None. ``facts`` may hold the ``part``
            (train, val, test) or the ``folder`` (0 to 9). Raises LDLError.
        pictures: Number of published images, or None if unknown.
    """

    name: str
    where: str
    licence: str
    layout: str
    reader: Callable[[Path, Path | None], ImageRecords]
    pictures: int | None = None

    def read(self, folder: Path, listed: Path | None = None) -> ImageRecords:
        """List the images below a folder. Raises LDLError, with the layout of the release."""
        try:
            return self.reader(folder, listed)
        except LDLError as error:
            raise LDLError(f"{error}; {self.name} lies as {self.layout}, and is from {self.where}") from None


@dataclass(frozen=True)
class Tables:
    """Reads the CSV files of a release, one for each part.

    Attributes:
        files: Pattern of their paths in lower case, with the name of the part in place of ``{}``.
        columns: Columns of the image, of its age and, if there is one, of the standard deviation of the age.
        image: File name of an image, with its entry in place of ``{}``.
        by_part: Whether images lie below a folder whose name begins with the part, such as ``train_1``.
        headed: Whether the files name their columns, and have commas between fields and not semicolons.
        person: Pattern of the person at the start of an image's file name, or None.
        box: Columns of the left, upper, right and lower side of the face's box.
    """

    files: str
    columns: tuple[str, ...]
    image: str = "{}"
    by_part: bool = True
    headed: bool = True
    person: str | None = None
    box: tuple[str, ...] = ()

    def __call__(self, folder: Path, listed: Path | None) -> ImageRecords:
        """List the images of all parts. Raises LDLError."""
        paths = _images(folder)
        files: list[str] = []
        parts: list[str] = []
        numbers = []
        for subset, name in SET_NAMES.items():
            if (table := self._table(folder, subset)) is None:
                continue
            stored = {Path(path).name: path for path in paths if not self.by_part or _lies_below(path, subset)}
            images = [self.image.format(image) for image in table.column(self.columns[0])]
            files += [stored.get(Path(image).name, f"{subset}/{image}" if self.by_part else image) for image in images]
            parts += [name] * len(images)
            numbers.append(table.numbers([*self.columns[1:], *self.box]))
        if not files:
            raise LDLError(f"{folder.absolute()} has no table {self.files.format('train')} of this release")
        table_numbers = np.concatenate(numbers)
        sides = table_numbers[:, -4:] if self.box else None
        return ImageRecords(
            folder,
            files,
            table_numbers[:, 0],
            None if self.person is None else np.array([_matched(self.person, Path(file).name)[0] for file in files]),
            None if sides is None else list(upright_corners(sides)),
            table_numbers[:, 1] if len(self.columns) == 3 else None,
            {"part": np.array(parts)},
        )

    def _table(self, folder: Path, subset: str) -> CsvTable | None:
        tables = {path.relative_to(folder).as_posix().lower(): path for path in visible(folder, "**/*.csv")}
        matches = [path for name, path in tables.items() if re.fullmatch(self.files.format(subset), name)]
        if len(matches) > 1:
            raise LDLError(f"{matches[0]} and {matches[1]} are both tables of the part {subset}; remove one of them")
        if not matches:
            return None
        if self.headed:
            return read_csv(matches[0])
        table = read_csv(matches[0], has_header=lambda row: False, mark=";")
        if len(table.header) != len(self.columns):
            raise LDLError(f"{table.path}: line 1 is not {';'.join(self.columns)}")
        return replace(table, header=list(self.columns))


def _lies_below(path: str, subset: str) -> bool:
    return any(above.lower().startswith(subset) for above in Path(path).parts[:-1])


def _images(folder: Path) -> list[str]:
    beside = (".csv", ".txt", ".mat", ".json")
    return [path.relative_to(folder).as_posix() for path in list_pictures(folder, beside=beside)]


def _matched(pattern: str, file: str) -> re.Match[str]:
    if (match := re.match(pattern, file, re.IGNORECASE | re.ASCII)) is None:
        raise LDLError(f"{file} is not named as an image of this release; rename or remove it")
    return match


def _read_named(pattern: str, folder: Path, listed: Path | None) -> ImageRecords:
    """List images whose paths match ``pattern``, which has the groups ``age`` and ``person``."""
    files = _images(folder)
    matches = [_matched(pattern, file) for file in files]
    ages = np.array([float(match["age"]) for match in matches])
    return ImageRecords(folder, files, ages, np.array([match["person"] for match in matches]))


def _read_benchmark(folder: Path, listed: Path | None) -> ImageRecords:
    """Read a list of the benchmark, such as ``AgeDB.json``, without the images of unknown age (-1)."""
    if listed is None:
        raise LDLError("the benchmark is read from its lists; name one with --list, such as AgeDB.json")
    entries = read_entries(listed, "list of the benchmark", "correct --list")
    for number, entry in enumerate(entries):
        if not _is_complete(entry):
            needed = "img_path, age and folder, and eight numbers where it has aligned_bbox"
            raise LDLError(f"{listed}: entry {number} needs {needed}, got {str(entry)[:100]}")
    aged = [entry for entry in entries if entry["age"] >= 0]
    if len(aged) < len(entries) and process_rank() == 0:
        print(f"left out: {len(entries) - len(aged)} of {len(entries)} images of {listed} have no age")
    persons = [entry.get("name", entry.get("id_num")) for entry in aged]
    sigmas = [entry.get("std_age") for entry in aged]
    boxed = all("aligned_bbox" in entry for entry in aged)
    return ImageRecords(
        folder,
        spelled_as_on_disk(folder, [entry["img_path"].replace("\\", "/") for entry in aged]),
        np.array([float(entry["age"]) for entry in aged]),
        None if None in persons else np.array(list(map(str, persons))),
        [np.array(entry["aligned_bbox"], float).reshape(4, 2) for entry in aged] if boxed else None,
        None if None in sigmas else np.array(sigmas, float),
        {"folder": np.array([int(entry["folder"]) for entry in aged])},
    )


def _is_complete(entry: Any) -> bool:
    try:
        box = entry.get("aligned_bbox", [0] * 8)
        numbers = to_numbers(np.array([entry["age"], entry["folder"], *box], object), "entries are")
        age, folder = numbers[:2]
        complete = isinstance(entry["img_path"], str) and len(box) == 8 and np.isfinite(numbers).all()
        return bool(complete and age >= -1 and folder >= 0 and folder % 1 == 0)
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


_APPA_REAL = (
    "https://chalearnlap.cvc.uab.cat/dataset/26/description/",
    "research",
    "gt_avg_train.csv and train/000000.jpg_face.jpg, also valid and test",
)

RELEASES: dict[str, Release] = {
    # Moschoglou et al., CVPR workshops 2017: 568 persons.
    "agedb": Release(
        "AgeDB",
        "https://ibug.doc.ic.ac.uk/resources/agedb/ (by form)",
        "non-commercial research",
        "0_MariaCallas_35_f.jpg (number, person, age, gender), at any depth",
        partial(_read_named, r"(?:.*/)?\d+_(?P<person>[^/]+)_(?P<age>\d+)_[mf]\.[^./]+$"),
        16_488,
    ),
    # Niu et al., CVPR 2016: about 165,000 faces. Persons are unknown; images with the same number come from one album
    # and count as one person, as in the Facial Age Estimation Benchmark.
    "afad": Release(
        "AFAD",
        "https://afad-dataset.github.io (the parts of AFAD-Full, joined)",
        "academic research",
        "AFAD-Full/15/111/638660-1.jpg (age, 111 men or 112 women)",
        partial(_read_named, r"(?:.*/)?(?P<age>\d+)/11[12]/(?P<person>[^-/]*?)(?:-[^/]*)?\.[^./]+$"),
    ),
    # Agustsson et al., FG 2017: the ages, and the mean and standard deviation of about 38 guesses per face.
    "appa-real": Release(
        "APPA-REAL, apparent ages",
        *_APPA_REAL,
        Tables(r"gt_avg_{}\.csv", ("file_name", "apparent_age_avg", "apparent_age_std"), "{}_face.jpg"),
        7_591,
    ),
    "appa-real-true": Release(
        "APPA-REAL, true ages",
        *_APPA_REAL,
        Tables(r"gt_avg_{}\.csv", ("file_name", "real_age"), "{}_face.jpg"),
        7_591,
    ),
    # The ChaLearn challenges Looking at People: mean and standard deviation of apparent ages.
    "clap2016": Release(
        "ChaLearn LAP 2016",
        "https://chalearnlap.cvc.uab.cat/dataset/19/description/",
        "research",
        "train_gt.csv (image, mean, stdv) and train/000000.jpg or train_1/000000.jpg, also valid and test",
        Tables(r"{}_gt\.csv", ("image", "mean", "stdv")),
        7_591,
    ),
    "lap2015": Release(
        "ChaLearn LAP 2015",
        "https://chalearnlap.cvc.uab.cat/dataset/18/description/",
        "research",
        "Train/Reference.csv (image_1.jpg;20;3.4) and Train/image_1.jpg, also Validation and Test",
        Tables(r".*{}.*\.csv", ("image", "mean", "deviation"), headed=False),
        4_691,
    ),
    # Lin et al., IEEE Access 2021: faces of IMDB-WIKI with corrected ages, by person. As published, persons of the
    # training and validation sets overlap; persons of the test set are in neither.
    "imdb-clean": Release(
        "IMDB-clean",
        "https://github.com/yiminglin-ai/imdb-clean",
        "academic research",
        "imdb_train_new_1024.csv, also valid and test, and imdb-clean-1024/00/nm0000100_rm46373120_1955-1-6_2003.jpg",
        Tables(
            r"imdb_{}_new_1024\.csv",
            ("filename", "age"),
            by_part=False,
            person="nm[0-9]+(?=_)",
            box=("x_min", "y_min", "x_max", "y_max"),
        ),
    ),
    # Paplham & Franc, CVPR 2024: lists of several data sets, with boxes and ten folders.
    "benchmark": Release(
        "Facial Age Estimation Benchmark",
        "https://github.com/paplhjak/Facial-Age-Estimation-Benchmark-Databases (lists only)",
        "MIT (lists)",
        "AgeDB.json and the images that it names",
        _read_benchmark,
    ),
}
"""Releases by the name that ``ldl faces`` takes."""


def summarize_faces(
    records: ImageRecords, protocols: Mapping[str, SplitProtocol], folds: int = 5, split_list: Path | None = None
) -> list[str]:
    """Return lines about images, persons and values, and one line per protocol with its folds, sizes and leakage."""
    exists = np.array([path.is_file() for path in records.paths()])
    missing = "" if exists.all() else f"; the first that is not: {records.files[int(np.argmin(exists))]}"
    lines = [f"images     {len(records)} named, {int(exists.sum())} of them there{missing}"]
    if records.groups is None:
        lines.append("persons    unknown: no protocol can keep them apart, and group leakage cannot be counted")
    else:
        counts = np.unique(records.groups, return_counts=True)[1]
        lines.append(f"persons    {len(counts)}, of {counts.min()} to {counts.max()} images")
    copies = same_bytes(records.paths())
    lines.append(f"copies     {describe(copies, records.files, records.values) or 'none: no image is there twice'}")
    if records.values.ndim == 1:
        ages = records.values
        lines.append(f"values     {ages.min():g} to {ages.max():g}, mean {ages.mean():.1f}")
    lines += [f"{name:10} {_counts(column)}" for name, column in records.facts.items()]
    lines += [f"names      {names_digest(records.files)}", ""]
    sizes = f"{'folds':>6}{'train':>16}{'validation':>16}{'test':>16}"
    lines.append(f"{'protocol':24}{sizes}   tested persons, copies in training")
    for name, protocol in protocols.items():
        followed = split_list if protocol.listed else None
        try:
            lines.append(f"{name:24}{_protocol_line(protocol, SplitRequest(records, folds, 0, 0, followed), copies)}")
        except LDLError as error:
            lines.append(f"{name:24}{'-':>6}   {error}")
    return lines


def names_digest(files: list[str]) -> str:
    """Return the SHA-256 of the sorted lower-case file names without folders and endings, one per line."""
    names = sorted(Path(file).stem.lower() for file in files)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _counts(column: np.ndarray) -> str:
    names, counts = np.unique(column, return_counts=True)
    shown = ", ".join(f"{name} {count}" for name, count in zip(names[:12], counts))
    return shown + (f", and {len(names) - 12} others" if len(names) > 12 else "")


def _protocol_line(protocol: SplitProtocol, request: SplitRequest, copies: np.ndarray) -> str:
    records, splits = request.records, []
    for fold in range(protocol.count(request)):
        rows = protocol.rows(replace(request, fold=fold))
        split = rows if isinstance(rows, Fold) else Fold(rows[0], np.arange(0), rows[1])
        splits.append(split if protocol.published else keep_together(split, protocol.units(copies, records.groups)))
    line = f"{len(splits):>6}"
    for name in ("train", "val", "test"):
        sizes = [len(getattr(split, name)) for split in splits]
        low, high = min(sizes), max(sizes)
        span = str(low) if low == high else f"{low}-{high}"
        line += f"{span:>16}"
    return f"{line}   {_mean_leak(splits, records.groups)}, {_mean_leak(splits, copies)}"


def _mean_leak(splits: list[Fold], groups: np.ndarray | None) -> str:
    return "unknown" if groups is None else f"{np.mean([leak(split, groups) for split in splits]):.1%}"
