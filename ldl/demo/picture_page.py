"""The page of a model of faces: a picture, whole or with the faces that a detector finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ldl import charts
from ldl.data.faces.detection.face import Detector
from ldl.data.pictures import read_picture
from ldl.demo import answer
from ldl.errors import LDLError
from ldl.inference import Predictor
from ldl.reports.photographs import in_words


class PicturePage:
    """What the page does.

    Args:
        predictor: Of a model of crops of pictures.
        folder: Where charts are drawn.
        detector: What finds the faces; None takes pictures whole.
    """

    def __init__(self, predictor: Predictor, folder: Path, detector: Detector | None = None) -> None:
        self.predictor, self.folder, self.detector = predictor, folder, detector

    def of_picture(self, picture: str | None, face: float | None) -> tuple[str, answer.Table, str, answer.Table]:
        """Of the picture in a file: itself with its faces, a row a face, and chart and parts of one face, from 1."""
        if not picture:
            raise LDLError("choose a picture first")
        path, row = Path(picture), answer.chosen(face, "face in the chart") - 1
        found = self.predictor.predict(path, detector=self.detector)
        if not 0 <= row < len(found):
            raise LDLError(f"face {row + 1} must be in 1..{len(found)}, the faces of this picture")
        evidence = self.predictor.evidence(path, row, detector=self.detector)
        pixels = read_picture(path)
        height, width = pixels.shape[:2]
        boxes = np.array([[0, 0, width - 1, height - 1]])
        if self.detector is not None:
            boxes = np.stack([found.facts[side] for side in ("x0", "y0", "x1", "y1")], axis=1)
        texts = [f"{number}: {text}" for number, text in enumerate(in_words(found), start=1)]
        drawn = charts.photograph(answer.fresh(self.folder), pixels, boxes, None, texts, found.labels)
        chart = answer.chart(self.folder, found, row, evidence)
        return str(drawn), answer.answer(found), chart, answer.parts(evidence, found.labels)
