"""Apparent ages of the ChaLearn challenges Looking at People, of 2015 and 2016, with the spread of the votes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ldl.data.csv_table import CsvTable, read_csv
from ldl.data.faces.records import FaceRecords
from ldl.data.faces.releases.release import PARTS, Release, below
from ldl.errors import LDLError


def read_2016(folder: Path, listed: Path | None = None) -> FaceRecords:
    """List ``train_gt.csv``, ``valid_gt.csv`` and ``test_gt.csv`` (image, mean, stdv). Raises LDLError."""
    there, tables = below(folder), {part: folder / f"{part}_gt.csv" for part in PARTS}
    found = {part: read_csv(table) for part, table in tables.items() if table.is_file()}
    if not found:
        raise CLAP2016.absent(folder, "no train_gt.csv")
    read = {part: (table.column("image"), table.numbers(["mean", "stdv"])) for part, table in found.items()}
    return _join(folder, there, read)


def read_2015(folder: Path, listed: Path | None = None) -> FaceRecords:
    """List tables of ``image;mean;deviation`` without a header, of which path or name tells the part.

    A part without a table is left out. Raises LDLError for two tables of one part, or none at all.
    """
    there, read = below(folder), {}
    for file in sorted(folder.rglob("*.csv")):
        told = [part for part in PARTS if part in file.relative_to(folder).as_posix().lower()]
        if len(told) != 1 or told[0] in read:
            raise LDLError(f"{file}: of which part it is must be clear, and no other: train, valid or test in its path")
        read[told[0]] = _semicolons(file)
    if not read:
        raise LAP2015.absent(folder, "no .csv")
    return _join(folder, there, read)


def _semicolons(file: Path) -> tuple[list[str], np.ndarray]:
    table = read_csv(file, has_header=lambda row: False)
    rows = [[field.strip() for field in ",".join(row).split(";")] for row in table.rows]
    for number, row in enumerate(rows):
        if len(row) != 3:
            raise LDLError(f"{table.where(number)} has {len(row)} fields between semicolons, not image;mean;deviation")
    parted = CsvTable(file, ["image", "mean", "deviation"], rows, table.lines)
    return parted.column("image"), parted.numbers(["mean", "deviation"])


def _join(folder: Path, there: list[str], read: dict[str, tuple[list[str], np.ndarray]]) -> FaceRecords:
    """Pictures of a part lie at any depth below a folder that begins with its name, such as ``train_1``."""
    files: list[str] = []
    for part, (names, _) in read.items():
        lying = {
            Path(file).name: file
            for file in there
            if any(above.lower().startswith(part) for above in Path(file).parts[:-1])
        }
        files += [lying.get(name, f"{part}/{name}") for name in names]
    numbers = np.concatenate([table for _, table in read.values()])
    parts = np.repeat([PARTS[part] for part in read], [len(names) for names, _ in read.values()])
    return FaceRecords(folder, files, numbers[:, 0], sigmas=numbers[:, 1], facts={"part": parts})


CLAP2016 = Release(
    "ChaLearn LAP 2016",
    "https://chalearnlap.cvc.uab.cat/dataset/19/description/",
    "research",
    "train_gt.csv (image, mean, stdv) and train/000000.jpg or train_1/000000.jpg, also valid and test",
    read_2016,
    7_591,
)
LAP2015 = Release(
    "ChaLearn LAP 2015",
    "https://chalearnlap.cvc.uab.cat/dataset/18/description/",
    "research",
    "Train/Reference.csv (image_1.jpg;20;3.4) and Train/image_1.jpg, also Validation and Test",
    read_2015,
    4_691,
)
