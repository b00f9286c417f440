"""Pictures to predict: a folder, and nothing known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ldl.data.base import LDLDataModule
from ldl.data.cache import cache_root
from ldl.data.faces.boxes import read_boxes
from ldl.data.faces.crops import cached_crops
from ldl.data.faces.records import FaceRecords
from ldl.data.loaded import Loaded
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.protocols import Fold


@options
class PictureFolder(LDLDataModule):
    """All pictures below a folder, for ``--stage predict``; labels and preprocessing come from the checkpoint.

    A picture is taken whole, as a crop of the face that fits into a square, unless ``boxes`` says where the face
    is. Pictures that cannot be read are named and left out.

    Args:
        path: The folder.
        boxes: A JSON file of face boxes, as the Facial Age Estimation Benchmark publishes them.
        cache_dir: Folder for crops; None takes the environment's ``LDL_CACHE``, or ``~/.cache/ldl``.
    """

    path: str = option(kw_only=True)
    boxes: str | None = None
    cache_dir: str | None = None
    root = None
    folds, fold, fold_seed, val_fraction = 0, 0, 0, 0.0

    protocol = "none"
    _trained = None  # type: tuple[LabelSpace, tuple[int, ...], dict[str, Any]] | None

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take labels and preprocessing of a trained task. Raises LDLError where it was not trained on pictures."""
        if preprocessing is None or "crop_size" not in preprocessing or input_shape is None:
            raise LDLError("the checkpoint was not trained on pictures; PictureFolder predicts for those that were")
        size, margin = preprocessing.get("crop_size"), preprocessing.get("margin")
        if not (type(size) is int and 8 <= size <= 4096 and (margin is None or 0 <= margin <= 2)):
            raise LDLError(f"the checkpoint's crops of {size!r} pixels with a margin of {margin!r} cannot be made")
        self._trained = (labels, input_shape, preprocessing)

    def load(self) -> Loaded:
        """List the pictures and make their crops. Raises LDLError."""
        from ldl.data.faces.transforms import Pipeline

        if self._trained is None:
            raise LDLError("PictureFolder has no labels to train on or test with; use it with --stage predict")
        labels, self.input_shape, preprocessing = self._trained
        self.pipeline = Pipeline.from_dict(preprocessing.get("transforms", {}))
        folder = Path(self.path)
        files = [path.relative_to(folder).as_posix() for path in list_pictures(folder)]
        boxes = {} if self.boxes is None else read_boxes(Path(self.boxes))
        anchors = [boxes.get(Path(file).stem.lower()) for file in files]
        records = FaceRecords(folder, files, np.full(len(files), np.nan), anchors=anchors)
        crop_size, margin = preprocessing["crop_size"], preprocessing["margin"]
        self.crops = cached_crops(records, crop_size, margin, cache_root(self.cache_dir))
        self.rows = self.crops.readable(len(files))
        return Loaded(labels, {}, names=[files[row] for row in self.rows])

    def cut(self) -> Fold:
        """All pictures are to be predicted."""
        nothing = np.arange(0)
        return Fold(nothing, nothing, np.arange(self.size))

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The pictures ``rows``."""
        return self.pipeline.batch([self.crops[row] for row in self.rows[rows]], seeds)
