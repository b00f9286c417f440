"""The Asian Face Age Dataset (Niu et al., CVPR 2016): some 165,000 faces, 15 to 75 years old."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ldl.data.faces.records import FaceRecords
from ldl.data.faces.releases.release import Release, below
from ldl.errors import LDLError


def read(folder: Path, listed: Path | None = None) -> FaceRecords:
    """List ``AGE/111/NUMBER-FACE.jpg`` (112: women). Raises LDLError for a picture that lies elsewhere.

    Nobody published who the faces are. Those of one number are of one album of the network that they come from, and
    count as one person, as in the Facial Age Estimation Benchmark.
    """
    files = below(folder)
    ages, persons = [], []
    for file in files:
        above, name = Path(file).parts[-3:-1], Path(file).stem
        if len(above) < 2 or not above[0].isdecimal() or above[1] not in ("111", "112"):
            raise LDLError(f"{folder / file} does not lie as AFAD's 15/111/638660-1.jpg; mend or remove it")
        ages.append(float(above[0]))
        persons.append(name.partition("-")[0])
    return FaceRecords(folder, files, np.array(ages), np.array(persons))


AFAD = Release(
    "AFAD",
    "https://afad-dataset.github.io (the parts of AFAD-Full, joined)",
    "academic research",
    "AFAD-Full/15/111/638660-1.jpg (age, 111 men or 112 women)",
    read,
)
