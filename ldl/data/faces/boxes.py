"""Face boxes from a JSON file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ldl.data.files import read_text
from ldl.errors import LDLError


def read_boxes(path: Path) -> dict[str, np.ndarray]:
    """Corners (4, 2) of every face, clockwise from its upper left, by lower-case file name without ending.

    The file is a list of entries with ``img_path`` and ``aligned_bbox``, eight numbers x0 y0 ... x3 y3, as the
    Facial Age Estimation Benchmark (Paplham & Franc, CVPR 2024) publishes them. Raises LDLError for a missing file,
    an entry of another form, or two boxes for one name.
    """
    text = read_text(path, "file of boxes", "correct data.boxes")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LDLError(f"{path} cannot be read as JSON: {error}") from None
    boxes: dict[str, np.ndarray] = {}
    paths: dict[str, str] = {}
    for number, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        try:
            name = Path(entry["img_path"]).stem.lower()
            box = np.array(entry["aligned_bbox"], dtype=float).reshape(4, 2)
        except (KeyError, TypeError, ValueError):
            raise LDLError(
                f"{path}: entry {number} needs img_path and aligned_bbox of eight numbers, got {str(entry)[:100]}"
            ) from None
        if name in boxes and not np.array_equal(boxes[name], box):
            raise LDLError(
                f"{path}: {paths[name]} and {entry['img_path']} have the same name and different boxes; give pictures "
                "names of their own, and one box each"
            )
        boxes[name], paths[name] = box, entry["img_path"]
    return boxes
