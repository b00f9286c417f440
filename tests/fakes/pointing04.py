"""A small tree of made-up pictures in exactly the layout of Pointing'04."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from ldl.faces.pointing04 import POSES

WIDTH, HEIGHT = 48, 40


def pointing04(root: Path, persons: int = 15) -> Path:
    """``Pointing04`` below ``root``: per person two series of 93 pictures, a box beside each, and ``Front``.

    The face is a bright oval where the box says, whose dark nose is turned as the pose is. As in the release, some
    names begin with ``personne``, others with ``person``, and ``Front`` repeats frontal pictures.
    """
    folder = root / "Pointing04"
    for person in range(1, persons + 1):
        for series in (1, 2):
            for number, (pitch, yaw) in enumerate(POSES):
                stem = f"person{'ne' if person % 3 else ''}{person:02d}{series}{number:02d}{pitch:+d}{yaw:+d}"
                pixels, box = _picture(np.random.default_rng([person, series, number]), pitch, yaw)
                _write(folder / f"Person{person:02d}" / f"{stem}.jpg", pixels, box)
                if pitch == yaw == 0:
                    _write(folder / "Front" / f"{stem}.jpg", pixels, box)
    return root


def _picture(rng: np.random.Generator, pitch: int, yaw: int) -> tuple[np.ndarray, tuple[int, int, int, int]]:
    x, y = WIDTH // 2 + int(rng.integers(-4, 5)), HEIGHT // 2 + int(rng.integers(-3, 4))
    pixels = rng.integers(40, 60, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    cv2.ellipse(pixels, (x, y), (11, 13), 0, 0, 360, (200, 180, 170), -1)
    nose = (x + round(9 * np.sin(np.radians(yaw))), y - round(11 * np.sin(np.radians(pitch))))
    cv2.circle(pixels, nose, 2, (20, 20, 20), -1)
    return pixels, (x, y, 24, 28)


def _write(path: Path, pixels: np.ndarray, box: tuple[int, int, int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), pixels)
    path.with_suffix(".txt").write_text("\n".join([path.name, "", "Face", *map(str, box), ""]))
