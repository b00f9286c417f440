"""Names of MORPH's pictures, which say whom they show, and at what age."""

from __future__ import annotations

import re
from typing import NamedTuple

EXAMPLE = "009055_1M54.JPG"
"""How a picture is named: person, number of the person's picture, gender and age."""

_NAME = re.compile(r"(\d+)_(\d+)([MF])(\d+)", re.IGNORECASE)


class MorphName(NamedTuple):
    """What a name says: ``person`` and ``picture`` numbers, ``gender`` M or F, ``age`` in years."""

    person: int
    picture: int
    gender: str
    age: int


def parse_name(file: str) -> MorphName | None:
    """What the name of a picture says, with any folder and ending before and after it; None for another name."""
    match = _NAME.fullmatch(stem(file))
    return MorphName(int(match[1]), int(match[2]), match[3].upper(), int(match[4])) if match else None


def stem(file: str) -> str:
    """The name in lower case without folder and ending, by which lists and pictures are matched."""
    base = file.replace("\\", "/").rpartition("/")[2]
    return (base.rpartition(".")[0] or base).lower()
