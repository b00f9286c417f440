"""Names and boxes of Pointing'04: what the release says of each picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ldl.data.files import check_file
from ldl.errors import LDLError

PITCHES = (-90, -60, -30, -15, 0, 15, 30, 60, 90)
YAWS = tuple(range(-90, 91, 15))
POSES = [(pitch, yaw) for pitch in PITCHES for yaw in YAWS if abs(pitch) < 90 or yaw == 0]
"""The 93 poses (pitch, yaw) in degrees, the release's tilt and pan: who looks straight up or down is not turned."""

_NAME = re.compile(r"person(?:ne)?(\d{2})([12])(\d{2})([+-]\d+)([+-]\d+)", re.IGNORECASE)


class PoseName(NamedTuple):
    """What a name such as ``personne01146+0+0`` says: person 01, series 1, number 46, tilt +0, pan +0."""

    person: int
    series: int
    number: int
    pitch: int
    yaw: int


def parse_name(path: Path) -> PoseName:
    """The fields of a picture's name. Raises LDLError for another form, or angles that are no pose of the release."""
    match = _NAME.fullmatch(path.stem)
    if match is None:
        raise LDLError(
            f"{path} is no name of Pointing'04, such as personne01146+0+0.jpg (person, series, number, tilt, pan); "
            "rename or remove it"
        )
    name = PoseName(*map(int, match.groups()))
    if (name.pitch, name.yaw) not in POSES:
        raise LDLError(
            f"{path} has tilt {name.pitch} and pan {name.yaw}, none of the 93 poses: tilts "
            f"{', '.join(map(str, PITCHES))}; pans every 15 from -90 to 90, but only 0 at tilts -90 and 90"
        )
    return name


def read_box(picture: Path) -> np.ndarray:
    """Corners (4, 2) of the face, clockwise from its upper left, from the ``.txt`` beside a picture.

    The file holds the picture's name, the word Face, and four numbers: the centre's x and y, width and height.
    Raises LDLError: no such file, another form, a box without area, or the name of another picture.
    """
    path = check_file(picture.with_suffix(".txt"), f"box of {picture.name}", "add it, or set data.alignment: none")
    try:
        fields = path.read_text(encoding="latin-1").split()
    except OSError as error:
        raise LDLError(f"{path} cannot be read: {error.strerror}") from None
    try:
        named, word, *numbers = fields
        x, y, width, height = map(float, numbers)
    except ValueError:
        word, (x, y, width, height) = "", np.full(4, np.nan)
    if word.lower() != "face" or not np.isfinite([x, y]).all() or not (0 < width < np.inf and 0 < height < np.inf):
        raise LDLError(
            f"{path} must hold the picture's name, Face, centre x, centre y, width and height, "
            f"got {' '.join(fields)[:80]!r}"
        )
    says, is_ = _NAME.fullmatch(Path(named).stem), _NAME.fullmatch(picture.stem)
    if says is None or is_ is None or says.groups() != is_.groups():
        raise LDLError(f"{path} is the box of {named[:80]}; give {picture.name} its own")
    half = np.array([width, height]) / 2
    return np.array([x, y]) + half * [[-1, -1], [1, -1], [1, 1], [-1, 1]]
