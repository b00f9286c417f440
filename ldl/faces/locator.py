"""Locates faces in the images that a model of faces predicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ldl.data.images.records import ImageRecords
from ldl.errors import LDLError
from ldl.faces.detection import face_columns, face_rows
from ldl.faces.detectors import Detector, Face, find_detector
from ldl.faces.lists import box_name, read_boxes


def shows_faces(preprocessing: dict[str, Any] | None) -> bool:
    """Return whether the images of a task, by its preprocessing, show faces; checkpoints that do not state it do."""
    return (preprocessing or {}).get("faces", True) is True


class FaceLocator:
    """The :class:`ldl.data.images.locators.Locator` of faces."""

    hint = "as one face each; --data.detector mtcnn finds the faces in them"

    def shows(self, preprocessing: dict[str, Any]) -> bool:
        """Return whether the images of a task show faces."""
        return shows_faces(preprocessing)

    def find_detector(self, name: str | Path) -> Detector:
        """Return the detector ``mtcnn``. Raises LDLError for another name."""
        return find_detector(name)

    def read_places(self, path: Path, files: Sequence[str]) -> list[np.ndarray | None]:
        """Return the corners (4, 2) of the box of each image, or None; see :func:`ldl.faces.lists.read_boxes`.

        Raises:
            LDLError: The file cannot be read, or it has one box for several images.
        """
        boxes, names = read_boxes(path), [box_name(file) for file in files]
        if twice := [name for name, count in Counter(names).items() if count > 1 and name in boxes]:
            raise LDLError(f"{path} has one box for several images named {twice[0]}; give them other names")
        return [boxes.get(name) for name in names]

    def detect(
        self, folder: Path, files: list[str], detector: Detector, alignment: str | None, cache: Path
    ) -> tuple[ImageRecords, dict[str, np.ndarray]]:
        """Return a record per face and its columns; see :func:`ldl.faces.detection.face_rows`. Raises LDLError."""
        return face_rows(folder, files, detector, alignment, cache)

    def columns(self, objects: Sequence[Sequence[Face]]) -> dict[str, np.ndarray]:
        """Return number, box and confidence of each face; see :func:`ldl.faces.detection.face_columns`."""
        return face_columns(objects)
