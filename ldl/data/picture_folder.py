"""Pictures to predict: a folder, and nothing known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ldl.collective import process_rank
from ldl.data.cache import cache_root
from ldl.data.faces.boxes import read_boxes
from ldl.data.faces.crops import cached_crops
from ldl.data.faces.detection.choice import find_detector
from ldl.data.faces.detection.rows import face_rows
from ldl.data.faces.records import FaceRecords
from ldl.data.loaded import Loaded
from ldl.data.pictures import list_pictures, read_picture
from ldl.data.unlabelled import Unlabelled
from ldl.errors import LDLError
from ldl.options import option, options

FIND = "--data.detector mtcnn finds the faces in them"


@options
class PictureFolder(Unlabelled):
    """All pictures below a folder, for ``--stage predict``; labels and preprocessing come from the checkpoint.

    A picture is taken whole, as a crop of the face that fits into a square, unless ``boxes`` says where the face is,
    or a ``detector`` finds the faces: then every face is a row, cropped as those of training were. Pictures that
    cannot be read, and those without a face, are named and left out. Places are pixels of pictures turned upright.

    Args:
        path: The folder, or a picture.
        boxes: A JSON file of face boxes, as the Facial Age Estimation Benchmark publishes them.
        detector: What finds the faces: ``mtcnn``, or an ONNX file of a detector with the outputs of YuNet or UltraFace.
        cache_dir: Folder for crops; None takes the environment's ``LDL_CACHE``, or ``~/.cache/ldl``.
    """

    path: str = option(kw_only=True)
    boxes: str | None = None
    detector: str | None = None
    cache_dir: str | None = None
    root = None

    def suits(self, input_shape: tuple[int, ...], preprocessing: dict[str, Any]) -> None:
        """Raise LDLError for a task that was not trained on pictures, or on crops that cannot be made."""
        if "crop_size" not in preprocessing:
            raise LDLError("the checkpoint was not trained on pictures; PictureFolder predicts for those that were")
        from ldl.data.faces.transforms import check_crops

        check_crops(preprocessing)

    def load(self) -> Loaded:
        """List the pictures and make their crops. Raises LDLError."""
        from ldl.data.faces.transforms import Pipeline

        labels, self.input_shape, preprocessing = self.trained
        self.pipeline = Pipeline.from_dict(preprocessing.get("transforms", {}))
        records, facts = self._records(preprocessing.get("alignment"))
        crop_size, margin = preprocessing["crop_size"], preprocessing["margin"]
        self.crops = cached_crops(records, crop_size, margin, cache_root(self.cache_dir))
        self.rows = self.crops.readable(len(records))
        facts = {name: fact[self.rows] for name, fact in facts.items()}
        return Loaded(labels, {}, names=[records.files[row] for row in self.rows], facts=facts)

    def _records(self, alignment: str | None) -> tuple[FaceRecords, dict[str, np.ndarray]]:
        """A record a picture, or a face, and what is known of it. Raises LDLError."""
        folder = self.folder
        files = [path.relative_to(folder).as_posix() for path in list_pictures(Path(self.path))]
        if self.detector is not None:
            if self.boxes is not None:
                raise LDLError("data.boxes says where the faces are; leave it out, or data.detector")
            return face_rows(folder, files, find_detector(self.detector), alignment, cache_root(self.cache_dir))
        boxes = {} if self.boxes is None else read_boxes(Path(self.boxes))
        named: dict[str, str] = {}
        for file in files:
            stem = Path(file).stem.lower()
            if stem in boxes and (first := named.setdefault(stem, file)) != file:
                raise LDLError(f"{self.boxes} has one box for {first} and {file}; give pictures names of their own")
        anchors = [boxes.get(Path(file).stem.lower()) for file in files]
        if (whole := sum(anchor is None for anchor in anchors)) and process_rank() == 0:
            print(f"{whole:,} of {len(files):,} pictures are taken whole, as one face each; {FIND}", flush=True)
        return FaceRecords(folder, files, np.full(len(files), np.nan), anchors=anchors), {}

    @property
    def folder(self) -> Path:
        """What the names of the pictures are relative to."""
        path = Path(self.path)
        return path.parent if path.is_file() else path

    def photograph(self, row: int) -> np.ndarray:
        """The whole picture that an instance is from, (H, W, 3) uint8, turned upright. Raises LDLError."""
        return read_picture(self.folder / (self.names or [])[row])

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The pictures ``rows``."""
        return self.pipeline.batch([self.crops[row] for row in self.rows[rows]], seeds)
