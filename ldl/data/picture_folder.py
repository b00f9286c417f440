"""Images of a folder or a list without labels, for prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ldl.collective import process_rank
from ldl.data.base import Loaded
from ldl.data.cache import cache_root
from ldl.data.images.crops import cached_crops, readable
from ldl.data.images.locators import find_locator
from ldl.data.images.records import ImageRecords
from ldl.data.pictures import list_pictures, read_picture
from ldl.data.unlabelled import Unlabelled
from ldl.errors import LDLError
from ldl.moved import old_names
from ldl.options import option, options
from ldl.tables import open_named


@options
class PictureFolder(Unlabelled):
    """All images of a folder or list, for ``--stage predict``; labels and preprocessing come from the checkpoint.

    An image is used whole, as a crop of the face that fits into a square. With ``boxes`` or a ``detector``, every face
    is a row, cropped as in training. Images that cannot be read, and images without a face, are listed and left out.
    Places are pixels of images in upright orientation.

    Args:
        path: The folder, an image, or a .csv or Parquet file that lists images, relative to its folder.
        boxes: A JSON file of face boxes, as the Facial Age Estimation Benchmark publishes them.
        detector: Face detector, ``mtcnn``.
        cache_dir: Folder for crops; None takes the environment's ``LDL_CACHE``, or ``~/.cache/ldl``.
        path_column: Column of the image files in a list; None takes ``path``, ``image`` or another usual name.

    Examples:
        >>> import albumentations as A
        >>> from PIL import Image
        >>> from ldl import LabelSpace
        >>> from ldl.data import PictureFolder
        >>> Image.new("RGB", (40, 40)).save("a.png")
        >>> data = PictureFolder(".")
        >>> trained = {"crop_size": 32, "margin": 0.0, "transforms": A.to_dict(A.Compose([]))}
        >>> data.follow(LabelSpace.nominal(["no", "yes"]), (3, 32, 32), trained)  # as a trained task describes itself
        >>> data.setup()
        1 of 1 images are used whole, as one face each; --data.detector mtcnn finds the faces in them
        cropping 1 images to 32x32 into .../crops
        >>> data.names
        ['a.png']
    """

    path: str = option(kw_only=True, role="path")
    boxes: str | None = option(default=None, is_path=True)
    detector: str | None = option(default=None, role="fold", is_path=True)
    cache_dir: str | None = option(default=None, role="place", is_path=True)
    path_column: str | None = option(default=None, role="fold")
    root = None

    def suits(self, input_shape: tuple[int, ...], preprocessing: dict[str, Any]) -> None:
        """Raise LDLError for a task that was not trained on images, or on crops that cannot be made."""
        if "crop_size" not in preprocessing:
            raise LDLError("the checkpoint was not trained on images; PictureFolder needs a model of images")
        from ldl.data.images.transforms import check_crops

        check_crops(preprocessing)

    def load(self) -> Loaded:
        """List the images and crop the faces. Raises LDLError."""
        from ldl.data.images.transforms import Pipeline

        labels, self.input_shape, preprocessing = self.trained
        self.pipeline = Pipeline.from_dict(preprocessing.get("transforms", {}), preprocessing.get("channels", 3))
        records, facts = self._records(preprocessing)
        crop_size, margin = preprocessing["crop_size"], preprocessing["margin"]
        self.crops = cached_crops(records, crop_size, margin, cache_root(self.cache_dir))
        self.rows = readable(self.crops.failed, len(records))
        facts = {name: fact[self.rows] for name, fact in facts.items()}
        return Loaded(labels, {}, names=[records.files[row] for row in self.rows], facts=facts)

    def _records(self, preprocessing: dict[str, Any]) -> tuple[ImageRecords, dict[str, np.ndarray]]:
        """Return a record for each image or face, and further columns of predictions. Raises LDLError."""
        folder, files, locator = self.folder, self._files(), find_locator(preprocessing)
        if self.detector is not None:
            if self.boxes is not None:
                raise LDLError("data.boxes and data.detector both locate the faces; leave out one of them")
            detector = locator.find_detector(self.detector)
            return locator.detect(folder, files, detector, preprocessing.get("alignment"), cache_root(self.cache_dir))
        anchors = [None] * len(files) if self.boxes is None else locator.read_places(Path(self.boxes), files)
        whole = sum(anchor is None for anchor in anchors)
        if whole and locator.shows(preprocessing) and process_rank() == 0:
            print(f"{whole:,} of {len(files):,} images are used whole, {locator.hint}", flush=True)
        return ImageRecords(folder, files, np.full(len(files), np.nan), anchors=anchors), {}

    def _files(self) -> list[str]:
        source = Path(self.path)
        if source.is_file() and (table := open_named(source)) is not None:
            from ldl.data.images.listed import listed_files

            return listed_files(table, self.path_column)[1]
        return [path.relative_to(self.folder).as_posix() for path in list_pictures(source)]

    @property
    def folder(self) -> Path:
        """Folder that the names of the images are relative to."""
        path = Path(self.path)
        return path.parent if path.is_file() else path

    def photograph(self, row: int) -> np.ndarray:
        """Return the whole image of an instance, (H, W, 3) uint8, in upright orientation. Raises LDLError."""
        return read_picture(self.folder / (self.names or [])[row])

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the preprocessed images ``rows``."""
        return self.pipeline.batch([self.crops[row] for row in self.rows[rows]], seeds)


__getattr__ = old_names(__name__)
