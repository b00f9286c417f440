"""Pictures of one's own: a CSV file of path and age."""

from __future__ import annotations

from pathlib import Path

from ldl.data.cache import cache_root
from ldl.data.faces.ages import FaceAges
from ldl.data.faces.detection.choice import find_detector
from ldl.data.faces.detection.rows import BOX, one_face_each
from ldl.data.faces.face_list import read_face_list
from ldl.data.faces.protocols import (
    FOLDERS,
    HOLDOUT,
    LEAVE_ONE_PERSON_OUT,
    PARTS,
    STRATIFIED,
    SUBJECT_EXCLUSIVE,
)
from ldl.data.faces.records import FaceRecords
from ldl.errors import LDLError
from ldl.options import options


@options
class FaceFolder(FaceAges):
    """Faces of one's own, listed in a CSV file: ``--data.path faces.csv``.

    Its columns: ``path`` (relative to the file), ``age`` (years), and as far as they are known ``person``,
    ``sigma`` (years; of this picture's label distribution), ``x0, y0, x1, y1`` (the face's box, in pixels; with
    ``x2, y2, x3, y3`` its four corners, clockwise from the upper left), ``part`` (train, val or test) and ``folder``
    (a number). Without boxes the pictures are taken whole, or a ``detector`` finds the face in each: the largest one.
    ``ldl faces`` writes such lists of sets that others hand out.

    Protocols: ``stratified`` (``folds`` folds with the same mix of ages; whole persons where the file has them);
    ``leave_one_person_out``; ``subject_exclusive`` (refused where persons are not known); ``holdout`` (a random tenth);
    ``parts`` (those of the column ``part``); ``folders`` (the five splits of the Facial Age Estimation Benchmark: six
    folders to train on, two for validation, two to test on; of three folders one each).

    Args:
        detector: What finds the faces: ``mtcnn``, or an ONNX file with the outputs of YuNet or UltraFace. Pictures
            without a face are refused, or left out with ``skip_unreadable``.
    """

    protocols = {
        "stratified": STRATIFIED,
        "subject_exclusive": SUBJECT_EXCLUSIVE,
        "leave_one_person_out": LEAVE_ONE_PERSON_OUT,
        "holdout": HOLDOUT,
        "parts": PARTS,
        "folders": FOLDERS,
    }
    age_range = (0, 100)
    unused = ("boxes",)

    detector: str | None = None

    @property
    def title(self) -> str:
        """The name of the list."""
        return Path(self.path or "faces").stem

    def read(self) -> FaceRecords:
        """Read the list. Raises LDLError for a missing file or column, or a field that is no number."""
        if self.path is None:
            raise LDLError("FaceFolder needs --data.path, a CSV file with the columns path and age")
        file = self.locate("")
        records = read_face_list(file, whole=self.alignment == "none")
        if records.anchors is None and self.alignment in ("box", "landmarks") and self.detector is None:
            raise LDLError(
                f"{file} has no columns {', '.join(BOX)}; set data.alignment: none to take pictures whole, "
                "or data.detector: mtcnn to find the faces"
            )
        if self.detector is None:
            return records
        if records.anchors is not None or self.alignment == "none":
            why = (
                f"{file} says where the faces are"
                if records.anchors is not None
                else "data.alignment none takes pictures whole"
            )
            raise LDLError(f"{why}; leave data.detector out, or that")
        detector, cache = find_detector(self.detector), cache_root(self.cache_dir)
        return one_face_each(records, detector, self.alignment, cache, self.skip_unreadable)
