"""APPA-REAL (Agustsson et al., FG 2017): 7,591 faces with their ages and what some 38 people took each for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ldl.data.csv_table import read_csv
from ldl.data.faces.records import FaceRecords
from ldl.data.faces.releases.release import PARTS, Release


def read(folder: Path, listed: Path | None = None, apparent: bool = True) -> FaceRecords:
    """List the cropped faces of ``gt_avg_train.csv``, ``gt_avg_valid.csv`` and ``gt_avg_test.csv``. Raises LDLError.

    Args:
        folder: That of the three tables.
        listed: Nothing.
        apparent: Take the mean of the guesses, and their standard deviation as the spread; else the true age.
    """
    files: list[str] = []
    ages, sigmas, parts = [], [], []
    for part, ours in PARTS.items():
        table = folder / f"gt_avg_{part}.csv"
        if not table.is_file():
            raise APPA_REAL.absent(folder, f"no {table.name}")
        rows = read_csv(table)
        files += [f"{part}/{name}_face.jpg" for name in rows.column("file_name")]
        numbers = rows.numbers(["apparent_age_avg", "apparent_age_std"] if apparent else ["real_age"])
        ages.append(numbers[:, 0])
        sigmas.append(numbers[:, -1])
        parts += [ours] * len(rows.rows)
    sigma = np.concatenate(sigmas) if apparent else None
    return FaceRecords(folder, files, np.concatenate(ages), sigmas=sigma, facts={"part": np.array(parts)})


APPA_REAL = Release(
    "APPA-REAL, apparent ages",
    "https://chalearnlap.cvc.uab.cat/dataset/26/description/",
    "research",
    "gt_avg_train.csv and train/000000.jpg_face.jpg, also valid and test",
    read,
    7_591,
)
APPA_REAL_TRUE = Release(
    "APPA-REAL, true ages",
    APPA_REAL.where,
    APPA_REAL.licence,
    APPA_REAL.layout,
    partial(read, apparent=False),
    7_591,
)
