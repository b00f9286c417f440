"""Predictions at every pixel as planes of one number, and as PNG files of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from torch import Tensor

from ldl.charts.maps import label_colors
from ldl.labels import LabelSpace

_DEEP = 65535


def plane_names(labels: LabelSpace) -> list[str]:
    """What the planes of a map are called: nothing where there is one, the axes of a grid where there are two."""
    return [""] if labels.ndim < 2 else list(labels.axis_names or ("0", "1"))


def planes(distribution: Tensor, value: Tensor | None, labels: LabelSpace) -> list[np.ndarray]:
    """The planes, (H, W) each, of a map of distributions (H, W, C).

    Of labels with values they are the ``value`` along each axis, (H, W) or (H, W, 2), where None decodes the
    distributions; of two others the probability of the second; else the number of the likeliest.
    """
    if labels.has_values:
        value = labels.decode(distribution) if value is None else value
        found = [value] if labels.ndim == 1 else list(value.unbind(-1))
    else:
        found = [distribution[..., 1] if len(labels) == 2 else distribution.argmax(-1)]
    return [(plane.double() if plane.is_floating_point() else plane).cpu().numpy() for plane in found]


def write_plane(path: Path, plane: np.ndarray, labels: LabelSpace, axis: int = 0) -> None:
    """Write a plane as PNG, whose ``Description`` says what its numbers are.

    Values are grey of 16 bits from the first label's to the last one's; the probability of the second of two labels is
    grey of 8 bits; the number of the likeliest label is a colour of a palette, or grey of 16 bits from 257 labels on.
    """
    if labels.has_values:
        low, high = labels.axes[axis][0], labels.axes[axis][-1]
        scaled = (plane - low) / max(high - low, 1e-300)
        picture = Image.fromarray(np.round(_DEEP * scaled.clip(0, 1)).astype(np.uint16))
        text = f"0 is {low:g} {labels.unit}".rstrip() + f", {_DEEP} is {high:g} {labels.unit}".rstrip()
    elif len(labels) == 2:
        picture = Image.fromarray(np.round(255 * plane).astype(np.uint8))
        text = f"255 is {labels.names[1]} for certain, 0 is {labels.names[0]}"
    else:
        small = len(labels) <= 256
        picture = Image.fromarray(plane.astype(np.uint8 if small else np.uint16))
        if small:
            picture.putpalette(label_colors(len(labels)).tobytes())
        text = ", ".join(f"{number} is {name}" for number, name in enumerate(labels.names))
    about = PngInfo()
    about.add_itxt("Description", text)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, pnginfo=about)


def read_plane(path: Path, labels: LabelSpace, axis: int = 0) -> np.ndarray:
    """The plane of a file of :func:`write_plane`, (H, W), as exact as the file is."""
    with Image.open(path) as picture:
        plane = np.asarray(picture)
    if labels.has_values:
        low, high = labels.axes[axis][0], labels.axes[axis][-1]
        return low + (high - low) * (plane / _DEEP)
    return plane / 255 if len(labels) == 2 else plane
