"""Turn images into model inputs: cropped and transformed as in training, detected faces, or whole images."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ldl.data.images.listed import listed_files
from ldl.data.images.locators import Detector, find_locator
from ldl.data.pictures import list_pictures, read_picture, upright
from ldl.errors import LDLError, naming
from ldl.inference.inputs import Inputs
from ldl.tables import open_named
from ldl.tables.entries import as_array

Points = Sequence[np.ndarray | None] | None
"""The points that locate the object in each image, or None."""
ImageSource = Path | np.ndarray | Image.Image


def crops_of(
    images: Any, preprocessing: dict[str, Any], places: Points = None, detector: Detector | None = None
) -> Inputs:
    """Return crops of images, or whole images without ``places``, or with a detector the crops of all detected faces.

    Args:
        images: One image or several; see :func:`list_sources`.
        preprocessing: Crops in the checkpoint: ``crop_size``, ``margin``, ``alignment`` and ``transforms``.
        places: For every image the points that locate the face, (5, 2) or (4, 2), in pixels, or None; see
            ``ldl.data.images.crops.placement``.
        detector: Face detector.

    Raises:
        LDLError: There are no images, a crop cannot be made, or no image shows a face.
    """
    from ldl.data.images.crops import crop
    from ldl.data.images.transforms import Pipeline, check_crops

    sources, names = list_sources(images)
    if places is not None and len(places) != len(sources):
        raise LDLError(f"{len(sources)} images but places of {len(places)} faces; give one, or None, per image")
    (size, margin), alignment = check_crops(preprocessing), preprocessing.get("alignment")
    pipeline = Pipeline.from_dict(preprocessing["transforms"], preprocessing.get("channels", 3))

    def named(number: int) -> str:
        return names[number] if names else f"image {number}"

    if detector is None:
        if places is None and alignment in ("landmarks", "box"):
            warnings.warn(
                f"the model was trained on faces placed by their {alignment}, and these images are used whole; give "
                "the places of the faces, faces=, or a detector that finds them, detector='mtcnn'",
                stacklevel=5,
            )

        def crop_of(row: int) -> np.ndarray:
            with naming(named(row)):
                return crop(read(sources[row]), None if places is None else places[row], size, margin)

        return Inputs(len(sources), lambda rows: pipeline.batch([crop_of(row) for row in rows], rows), names)
    detected, crops = [], []
    for number, source in enumerate(sources):
        # A photograph is read once, and only its crops are kept.
        image = read(source)
        with naming(named(number)):
            detected.append(detector(image))
            crops += [crop(image, face.anchor(alignment), size, margin) for face in detected[-1]]
    if not crops:
        raise LDLError(f"{detector.name} finds no face in any of {len(sources)} images; leave the detector out")
    picture_of = np.repeat(np.arange(len(sources)), [len(objects) for objects in detected])
    facts = {"picture": picture_of, **find_locator(preprocessing).columns(detected)}
    names = None if names is None else [names[number] for number in picture_of]
    return Inputs(len(crops), lambda rows: pipeline.batch([crops[row] for row in rows], rows), names, facts)


def whole(images: Any) -> Inputs:
    """Return whole images, (B, 3, H, W) uint8, of one size per batch. Raises LDLError."""
    sources, names = list_sources(images)
    return Inputs(len(sources), partial(_stacked, sources), names)


def _stacked(sources: Sequence[ImageSource], rows: np.ndarray) -> Tensor:
    images = [read(sources[row]) for row in rows]
    check_one_size(images)
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)


def check_one_size(images: Sequence[np.ndarray]) -> None:
    """Raise LDLError for images or maps (H, W, ...) of several sizes."""
    if len(sizes := {image.shape[:2] for image in images}) > 1:
        shown = " and ".join("x".join(map(str, size)) for size in sorted(sizes)[:2])
        raise LDLError(f"images of several sizes, such as {shown}, do not fit into one array; predict them one by one")


def list_sources(images: Any) -> tuple[Sequence[ImageSource], list[str] | None]:
    """Return the given images, and their names if all are files.

    Accepts a file, a PIL image or an array (H, W, 3) or (H, W) uint8, or a list of these; a folder of images; a .csv or
    Parquet file that lists images, relative to its folder; an array (N, H, W, 3), or a tensor (N, 3, H, W) or
    (3, H, W), uint8. Raises LDLError if there are no images.
    """
    if isinstance(images, str | Path):
        path = Path(images)
        if path.is_file() and (table := open_named(path)) is not None:
            names = listed_files(table, None)[1]
            return [path.parent / name for name in names], names
        if not path.is_dir():
            return [path], [path.name]
        paths = list_pictures(path)
        return paths, [file.relative_to(path).as_posix() for file in paths]
    if isinstance(images, Tensor):
        if images.ndim not in (3, 4) or images.shape[-3] not in (1, 3):
            raise LDLError(f"a tensor of images is (N, 3, H, W), not {tuple(images.shape)}")
        images = np.moveaxis(as_array(images), -3, -1)
    if isinstance(images, Image.Image) or (isinstance(images, np.ndarray) and images.ndim < 4):
        images = [images]
    if not isinstance(images, Sequence | np.ndarray) or not len(images):
        raise LDLError(f"no images in a {type(images).__name__}; give files, arrays (H, W, 3) uint8 or PIL images")
    sources = [Path(each) if isinstance(each, str) else each for each in images]
    files = [source for source in sources if isinstance(source, Path)]
    return sources, [str(file) for file in files] if len(files) == len(sources) else None


def read(source: ImageSource) -> np.ndarray:
    """Return one image as RGB, (H, W, 3) uint8. Raises LDLError."""
    if isinstance(source, Path):
        return read_picture(source)
    if isinstance(source, Image.Image):
        return upright(source)
    array = as_array(source)
    if array.ndim == 2:
        array = np.repeat(array[..., None], 3, axis=2)
    if array.ndim != 3 or array.shape[-1] != 3 or 0 in array.shape:
        raise LDLError(f"an image is an array (H, W, 3), not {array.shape}; give channels last")
    if array.dtype != np.uint8:
        raise LDLError(f"an image is uint8, 0 to 255, not {array.dtype}; convert it")
    return array
