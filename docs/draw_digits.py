"""Draw ``pictures/digits.png`` from the checkpoint of the default run: ``python docs/draw_digits.py last.ckpt``.

The upper row has the test digits whose predictions have the least mass beyond 60 degrees from their largest mode. The
lower row has those with about half of their mass there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ldl import Predictor, charts
from ldl.data import RotatedDigits

PICTURE = Path(__file__).parent / "pictures" / "digits.png"
EACH = 3
FAR = 60.0


def second_mode(distribution: np.ndarray, angles: np.ndarray) -> float:
    """Return the mass of a distribution (C,) that lies at least ``FAR`` degrees from its largest mode."""
    away = np.abs(angles - angles[distribution.argmax()])
    return float(distribution[np.minimum(away, 360 - away) >= FAR].sum())


def main(checkpoint: Path) -> None:
    data = RotatedDigits()
    data.setup()
    rows = data.split.test
    inputs = data.inputs(rows, np.zeros_like(rows), train=False)
    found, values = Predictor.from_checkpoint(checkpoint)(inputs.numpy()), np.asarray(data.values)[rows]
    doubt = np.array([second_mode(row, np.array(data.labels.axes[0])) for row in found.distribution])
    # The least and the most doubtful. Nearest to one half, both modes have about the same mass.
    chosen = np.concatenate([np.argsort(doubt, kind="stable")[:EACH], np.argsort(np.abs(doubt - 0.5))[:EACH]])
    digits = inputs[chosen, 0].numpy()
    grey = np.uint8(255 * (1 - (digits - digits.min()) / (digits.max() - digits.min())))
    titles = [f"second mode {doubt[number]:.0%}" for number in chosen]
    print(f"{(doubt >= 0.2).sum()} of {len(doubt)} test digits have 20% of the mass or more in a second mode")
    columns = (part[chosen] for part in (found.distribution, values, found.value))
    charts.faces(PICTURE, grey[..., None].repeat(3, -1), *columns, data.labels, titles)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
