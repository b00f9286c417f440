"""AgeDB (Moschoglou et al., CVPR workshops 2017): 16,488 pictures of 568 persons."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ldl.data.faces.records import FaceRecords
from ldl.data.faces.releases.release import Release, below
from ldl.errors import LDLError

_NAME = re.compile(r"\d+_(.+)_(\d+)_[mf]", re.IGNORECASE)


def read(folder: Path, listed: Path | None = None) -> FaceRecords:
    """List ``NUMBER_NAME_AGE_GENDER.jpg``; the name is the person. Raises LDLError for another name."""
    files = below(folder)
    names = []
    for file in files:
        if (match := _NAME.fullmatch(Path(file).stem)) is None:
            raise LDLError(f"{folder / file} is not named as AgeDB's 0_MariaCallas_35_f.jpg; mend or remove it")
        names.append(match)
    ages = np.array([float(name[2]) for name in names])
    return FaceRecords(folder, files, ages, np.array([name[1] for name in names]))


AGEDB = Release(
    "AgeDB",
    "https://ibug.doc.ic.ac.uk/resources/agedb/ (by form)",
    "non-commercial research",
    "0_MariaCallas_35_f.jpg (number, person, age, gender), at any depth",
    read,
    16_488,
)
