"""FG-NET (Lanitis et al. 2002): 1,002 pictures of 82 persons from childhood on."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ldl.data.faces.ages import FaceAges
from ldl.data.faces.boxes import read_boxes
from ldl.data.faces.protocols import LEAVE_ONE_PERSON_OUT, SUBJECT_EXCLUSIVE
from ldl.data.faces.records import FaceRecords
from ldl.data.files import read_text
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError

# Centres of the eye on the left and on the right of the picture, tip of the nose, corners of the mouth.
FGNET_POINTS = (31, 36, 67, 48, 54)
_NAME = re.compile(r"(\d{3})a(\d{2})[a-z]?", re.IGNORECASE)


class FGNET(FaceAges):
    """FG-NET as it is released: ``images/001A02.JPG`` (person, age, maybe a letter) and ``points/001a02.pts``.

    Faces are placed by five of the 68 landmarks, or with ``alignment: box`` by ``face_boxes.json`` or ``boxes``.

    Protocols: ``leave_one_person_out`` (82 folds); ``subject_exclusive`` (``folds`` folds of whole persons).
    """

    protocols = {"leave_one_person_out": LEAVE_ONE_PERSON_OUT, "subject_exclusive": SUBJECT_EXCLUSIVE}
    age_range = (0, 69)

    def read(self) -> FaceRecords:
        """List ``images``. Raises LDLError for a name of another form, missing landmarks or boxes, or no set."""
        folder = self.locate("FGNET")
        if not (folder / "images").is_dir():
            raise self.absent("FGNET")
        files = [path.relative_to(folder).as_posix() for path in list_pictures(folder / "images")]
        matches = [_NAME.fullmatch(Path(file).stem) for file in files]
        for file, match in zip(files, matches):
            if match is None:
                raise LDLError(f"{folder / file} is no name of FG-NET, such as 001A02.JPG: person, A, age")
        persons, ages = (np.array([int(match[field]) for match in matches if match]) for field in (1, 2))
        return FaceRecords(folder, files, ages.astype(float), persons, self._anchors(folder, files))

    def _anchors(self, folder: Path, files: list[str]) -> list[np.ndarray] | None:
        if self.boxes and self.alignment != "box":
            raise LDLError(f"data.boxes {self.boxes} needs data.alignment: box; set it, or leave boxes out")
        if self.alignment == "none":
            return None
        stems = [Path(file).stem.lower() for file in files]
        if self.alignment == "box":
            source = self.find(self.boxes) if self.boxes else folder / "face_boxes.json"
            boxes = read_boxes(source)
            if missing := [file for file, stem in zip(files, stems) if stem not in boxes]:
                raise LDLError(f"{source} has no box of {missing[0]} ({len(missing)} such pictures)")
            return [boxes[stem] for stem in stems]
        return [read_points(folder / "points" / f"{stem}.pts")[list(FGNET_POINTS)] for stem in stems]


def read_points(path: Path) -> np.ndarray:
    """The landmarks of a ``.pts`` file, (68, 2), in pixels with the origin at the upper left.

    Raises LDLError: no such file, not as many pairs of numbers between braces as ``n_points`` says, or not 68.
    """
    text = read_text(path, "landmarks", "give --data.alignment box or none to do without")
    try:
        header, _, rest = text.partition("{")
        points = np.array(rest.partition("}")[0].split(), dtype=float).reshape(-1, 2)
        count = int(header.partition("n_points:")[2].split()[0])
    except (ValueError, IndexError) as error:
        raise LDLError(f"{path} cannot be read as landmarks: {' '.join(str(error).split())}") from None
    if len(points) != count or not np.isfinite(points).all():
        raise LDLError(f"{path} has {len(points)} finite points, but says n_points: {count}")
    if count != 68:
        raise LDLError(f"{path} has {count} points; FG-NET's landmarks are 68")
    return points
