"""Photographs of which every face is a row: one chart each."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from ldl import charts
from ldl.labels import LabelSpace

MOST_DRAWN = 1000
"""Pictures that get a chart each: a thousand take some minutes."""


@runtime_checkable
class Photographs(Protocol):
    """Data whose rows are cut out of larger pictures.

    Attributes:
        names: The picture of every row.
        facts: Where faces were searched for, ``face`` and the box ``x0, y0, x1, y1`` of every row, in pixels.
    """

    names: list[str] | None
    facts: dict[str, np.ndarray]

    def photograph(self, row: int) -> np.ndarray:
        """The whole picture of a row, (H, W, 3) uint8."""


def draw_photographs(folder: Path, data: Photographs, rows: dict[str, np.ndarray], labels: LabelSpace) -> None:
    """One chart a picture, with a box a face, up to ``MOST_DRAWN``; ``rows`` are those of ``Report``."""
    names = np.array(data.names)[rows["index"]]
    boxes = np.stack([data.facts[side][rows["index"]] for side in ("x0", "y0", "x1", "y1")], axis=1)
    texts = [f"{face}: {text}" for face, text in zip(data.facts["face"][rows["index"]], texts_of(rows, labels))]
    pictures = list(dict.fromkeys(names.tolist()))
    if len(pictures) > MOST_DRAWN:
        print(f"charts/pictures: the first {MOST_DRAWN} of {len(pictures):,} pictures; predictions.csv has all")
    for name in pictures[:MOST_DRAWN]:
        mine = np.flatnonzero(names == name)
        charts.photograph(
            folder / f"{name}.png",
            data.photograph(int(rows["index"][mine[0]])),
            boxes[mine],
            rows["prediction"][mine],
            [texts[row] for row in mine],
            labels,
        )


def texts_of(rows: dict[str, np.ndarray], labels: LabelSpace) -> list[str]:
    """The value of every row in a few letters, or its likeliest label where labels have no values."""
    if "predicted_value" not in rows:
        return [f"{labels.names[row.argmax()]} ({row.max():.0%})" for row in rows["prediction"]]
    return [", ".join(f"{part:.1f}" for part in np.atleast_1d(value)) for value in rows["predicted_value"]]
