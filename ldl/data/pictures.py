"""Reading pictures of any kind as RGB."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from ldl.data.files import check_file
from ldl.errors import LDLError

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")


def read_picture(path: Path) -> np.ndarray:
    """A picture as RGB, (height, width, 3) uint8, turned as its EXIF entry says.

    Grey pictures get three equal channels, 16-bit ones their upper eight bits, transparent ones a white ground.
    Raises LDLError for a missing, damaged or unknown file.
    """
    check_file(path, "picture", "correct its path")
    try:
        with Image.open(path) as opened:
            return upright(opened)
    except (LDLError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        # PIL's own message repeats the path, or the address of a buffer.
        reason = "unknown or damaged format" if "cannot identify" in str(error) else str(error)
        raise LDLError(f"{path} cannot be read as a picture: {' '.join(reason.split())[:160]}") from error


def upright(picture: Image.Image) -> np.ndarray:
    """A picture of PIL as :func:`read_picture` gives it. Raises LDLError for numbers of more than 16 bits."""
    picture = ImageOps.exif_transpose(picture)
    if picture.mode[0] in "IF":
        values = np.asarray(picture)
        low, high = values.min(), values.max()
        if picture.mode == "F" or low < 0 or high > 65535:
            raise LDLError(f"its numbers are {low:g} to {high:g} of mode {picture.mode}; save it with 8 or 16 bits")
        return np.repeat((values >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    if picture.mode in ("LA", "PA", "RGBA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    return np.asarray(picture.convert("RGB"))


def list_pictures(folder: Path) -> list[Path]:
    """A picture, or all that is named as one below a folder, sorted. Raises LDLError where there is none."""
    if folder.is_file() and folder.suffix.lower() in SUFFIXES:
        return [folder]
    if not folder.is_dir():
        raise LDLError(f"no folder at {folder}; give the folder that holds the pictures")
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and not path.is_dir())
    if not found:
        raise LDLError(f"{folder} holds no pictures; files that end in {', '.join(SUFFIXES)} are read")
    return found
