"""What locates the objects of new images, such as faces. Domains register it; predictions ask it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ldl.data.images.records import ImageRecords
from ldl.errors import LDLError
from ldl.plugins import LOCATORS, load_registered


class Detector(Protocol):
    """Detects the objects of an image, such as :class:`ldl.faces.detectors.Face`.

    Attributes:
        name: Name for messages.
        key: Cache key, different for other detectors and other weights.
    """

    name: str
    key: str

    def __call__(self, picture: np.ndarray) -> list[Any]:
        """Return the objects of an image (H, W, 3) uint8 RGB, from left to right. Raises LDLError."""


class Locator(Protocol):
    """Locates the objects of images, so that each is cropped as in training.

    Attributes:
        hint: How images without a place are used, and what locates the objects in them; the end of a message.
    """

    hint: str

    def shows(self, preprocessing: dict[str, Any]) -> bool:
        """Return whether the images of a task, by its preprocessing, show these objects."""

    def find_detector(self, name: str | Path) -> Detector:
        """Return a detector by its name. Raises LDLError."""

    def read_places(self, path: Path, files: Sequence[str]) -> list[np.ndarray | None]:
        """Return from a file the points that locate the object in each image, or None. Raises LDLError."""

    def detect(
        self, folder: Path, files: list[str], detector: Detector, alignment: str | None, cache: Path
    ) -> tuple[ImageRecords, dict[str, np.ndarray]]:
        """Return a record per detected object, and further columns of predictions.

        Args:
            folder: Folder that ``files`` are relative to.
            files: The images.
            detector: The detector.
            alignment: How the objects of the training set were located.
            cache: Root of the cache.

        Raises:
            LDLError: No image can be read, or none shows an object.
        """

    def columns(self, objects: Sequence[Sequence[Any]]) -> dict[str, np.ndarray]:
        """Return the further columns of predictions on the detected objects of each image."""


def find_locator(preprocessing: dict[str, Any]) -> Locator:
    """Return what locates the objects that the images of a task show; for images of no such object the first one.

    Raises:
        LDLError: No package locates objects.
    """
    locators = _locators()
    if not locators:
        raise LDLError("no installed package locates objects in images; use whole images, or install ldl again")
    return next((locator for locator in locators if locator.shows(preprocessing)), locators[0])


def shows_objects(preprocessing: dict[str, Any]) -> bool:
    """Return whether the images of a task show objects that a registered locator locates."""
    return any(locator.shows(preprocessing) for locator in _locators())


def _locators() -> list[Locator]:
    return [locator() for locator in load_registered(LOCATORS).values()]
