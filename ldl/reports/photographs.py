"""Photographs of which every face is a row: one chart each."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from ldl import charts
from ldl.inference.predictions import Predictions
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal

MOST_DRAWN = 1000
"""Pictures that get a chart each: a thousand take some minutes."""
LEVEL = 0.9
"""Of the intervals that are written beside faces."""


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


def draw_photographs(
    folder: Path,
    data: Photographs,
    rows: dict[str, np.ndarray],
    labels: LabelSpace,
    calibration: Conformal | None = None,
) -> None:
    """One chart a picture, with a box a face, up to ``MOST_DRAWN``; ``rows`` are those of ``Report``."""
    names = np.array(data.names)[rows["index"]]
    boxes = np.stack([data.facts[side][rows["index"]] for side in ("x0", "y0", "x1", "y1")], axis=1)
    found = Predictions(rows["prediction"], rows.get("predicted_value"), labels, calibration=calibration)
    texts = [f"{face}: {text}" for face, text in zip(data.facts["face"][rows["index"]], in_words(found))]
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


def in_words(found: Predictions) -> list[str]:
    """Of every row the value, with its interval of 90%; or the likeliest label where labels have no values."""
    if found.value is None:
        return [f"{found.labels.names[row.argmax()]} ({row.max():.0%})" for row in found.distribution]
    values, ends = found.value.reshape(len(found), -1), found.interval(LEVEL).reshape(len(found), -1, 2)
    return [
        ", ".join(f"{value:.3g} ({low:.3g} to {high:.3g})" for value, (low, high) in zip(*each))
        for each in zip(values, ends)
    ]
