"""Photographs made of real ones: faces of FG-NET pasted apart, turned by EXIF, and a landscape of BSDS500."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from fakes.tasks import saved
from ldl.backbones import Identity
from ldl.data.images.transforms import Pipeline
from ldl.data.pictures import read_picture
from ldl.faces.ages import read_points
from ldl.heads import Softmax
from ldl.labels import LabelSpace
from ldl.task import Task

FACES = (("001A40", 300), ("003A58", 220), ("016A16", 360))
"""Pictures of FG-NET, and the width that each is pasted with, in pixels."""


def photographs(data: Path, folder: Path) -> dict[str, np.ndarray]:
    """Write ``three.jpg``, ``turned.jpg`` and ``landscape.jpg`` into a folder.

    Returns the boxes around the landmarks of the faces of each, (n, 4) from left to right, in pixels of the picture
    turned upright. Skips the test where the real data are not there.
    """
    landscape = data / "BSDS500" / "data" / "images" / "test" / "100007.jpg"
    if not (data / "FGNET" / "images").is_dir() or not landscape.is_file():
        pytest.skip("FGNET or BSDS500 is not below LDL_DATA")
    folder.mkdir(parents=True, exist_ok=True)
    canvas, found, left = np.full((560, 1040, 3), 90, np.uint8), [], 20
    for number, (name, width) in enumerate(FACES):
        picture, box = _face(data / "FGNET", name, width)
        top = 20 + 30 * number
        canvas[top : top + len(picture), left : left + width] = picture
        found.append(box + np.tile([left, top], 2))
        left += width + 40
    Image.fromarray(canvas).save(folder / "three.jpg", quality=95)
    picture, box = _face(data / "FGNET", "016A16", 360)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: what it wrote is seen a quarter turn to the right
    Image.fromarray(np.rot90(picture)).save(folder / "turned.jpg", quality=95, exif=exif)
    Image.fromarray(read_picture(landscape)).save(folder / "landscape.jpg")
    return {"three.jpg": np.stack(found), "turned.jpg": box[None], "landscape.jpg": np.zeros((0, 4))}


def _face(folder: Path, name: str, width: int) -> tuple[np.ndarray, np.ndarray]:
    """A picture of this width, and the box around its 68 landmarks: from the brows to the chin."""
    picture = read_picture(folder / "images" / f"{name}.JPG")
    scale = width / picture.shape[1]
    small = cv2.resize(picture, (width, round(len(picture) * scale)), interpolation=cv2.INTER_AREA)
    points = read_points(folder / "points" / f"{name.lower()}.pts")
    return small, np.concatenate([points.min(0), points.max(0)]) * scale


def drawn_model(path: Path, alignment: str | None = "landmarks", side: int = 32) -> Path:
    """A checkpoint of a network on crops of this side whose weights are drawn, not learned."""
    torch.manual_seed(0)
    task = Task(Softmax(), Identity(flatten=True))
    task.build(LabelSpace.ordinal(range(70), "years"), (3, side, side))
    crop = {"crop_size": side, "margin": None, "transforms": Pipeline([]).to_dict()}
    task.preprocessing = crop | ({} if alignment is None else {"alignment": alignment})
    return saved(task, path)
