"""Small trees of made-up images with votes: lists of one's own, and FER+ and CIFAR-10H as released."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from fakes.face_releases import write_lines
from ldl.data.images.sets import CLASSES, EMOTIONS, FOLDERS, NO_EMOTION

GEOMETRY = ("diameter_mm", "volume_mm3", "area_mm2", "perimeter_mm", "slices", "height_mm", "compactness")
RATINGS = ("subtlety", "internal_structure", "calcification", "sphericity", "margin", "lobulation", "spiculation")
RATINGS += ("texture", "malignancy")
PARTS = ("train", "Training", "valid", "TEST")


def image(path: Path, brightness: float, number: int = 0, size: tuple[int, int] = (24, 32)) -> None:
    """A PNG of this brightness, 0 to 1, with a little noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(number).integers(0, 50, (*size, 3))
    assert cv2.imwrite(str(path), (noise + 200 * brightness).astype(np.uint8))


def votes(count: int = 24) -> list[tuple[str, int, int]]:
    """File, votes for ``bright`` and votes for ``dark`` of every image."""
    rng = np.random.default_rng(0)
    shares, numbers = rng.uniform(size=count), rng.integers(2, 9, count)
    found = rng.binomial(numbers, shares)
    return [(f"images/{row}.png", int(a), int(n - a)) for row, (a, n) in enumerate(zip(found, numbers))]


def voted(root: Path, count: int = 24) -> Path:
    """``images/``, their votes in ``counts.csv``, ``long.csv``, ``matrix.csv`` and ``split.csv``, and ``values.csv``.

    ``long.csv`` names the person of each image, two images each, and ``split.csv`` the part of a split too.
    """
    counts = votes(count)
    for row, (file, bright, dark) in enumerate(counts):
        image(root / file, bright / (bright + dark), row)
    write_lines(root / "counts.csv", ["path,label:bright,label:dark", *(f"{f},{a},{b}" for f, a, b in counts)])
    ballots = [
        (f, r, "bright" if r < a else "dark", row // 2) for row, (f, a, b) in enumerate(counts) for r in range(a + b)
    ]
    write_lines(root / "long.csv", ["path,rater,label,person", *(f"{f},r{r},{v},p{p}" for f, r, v, p in ballots)])
    rows = [[("bright" if r < a else "dark") if r < a + b else "" for r in range(8)] for _, a, b in counts]
    lines = [",".join([file, *row]) for (file, _, _), row in zip(counts, rows)]
    write_lines(root / "matrix.csv", ["path," + ",".join(f"r{r}" for r in range(8)), *lines])
    split = [f"{f},{a},{b},{PARTS[row % 4]},p{row // 2}" for row, (f, a, b) in enumerate(counts)]
    write_lines(root / "split.csv", ["path,label:bright,label:dark,split,person", *split])
    write_lines(
        root / "values.csv", ["path,value,person", *(f"{f},{a},p{row // 2}" for row, (f, a, _) in enumerate(counts))]
    )
    return root


def classes(root: Path, each: int = 8) -> Path:
    """A folder with the sub-folders ``bright`` and ``dark``."""
    for number in range(2 * each):
        image(root / ("dark", "bright")[number % 2] / f"{number}.png", number % 2, number)
    return root


def ferplus(root: Path, each: int = 8) -> Path:
    """``ferplus`` as released: in each part an image of each emotion, one of no face, and one that is absent."""
    lines, number = [], 0
    for usage, (_, folder) in FOLDERS.items():
        for place, label in enumerate((*EMOTIONS[:each], "NF", "neutral")):
            counts = dict.fromkeys((*EMOTIONS, *NO_EMOTION), 0) | {"unknown": 1, label: 7, "happiness": 2}
            name = f"fer{number:07d}.png"
            if place < each + 1:
                image(root / "ferplus" / folder / name, place / 10, number, (48, 48))
            lines.append(f"{usage},{name},{','.join(map(str, counts.values()))}")
            number += 1
    lines.append("Training,," + ",".join("0" * 9) + ",10")
    header = ["Usage", "Image name", *EMOTIONS, *NO_EMOTION]
    write_lines(root / "ferplus" / "fer2013new.csv", [",".join(header), *lines])
    return root


def cifar10h(root: Path, count: int = 40) -> Path:
    """``cifar10h`` with ``counts.csv`` and ``images``."""
    rng = np.random.default_rng(1)
    lines = []
    for row in range(count):
        image(root / "cifar10h" / "images" / f"{row:05d}.jpg", row % 10 / 10, row, (32, 32))
        counts = rng.multinomial(50, np.eye(10)[row % 10] * 0.5 + 0.05)
        lines.append(f"images/{row:05d}.jpg,{','.join(map(str, counts))},{CLASSES[row % 10]}")
    write_lines(root / "cifar10h" / "counts.csv", [f"path,{','.join(CLASSES)},true", *lines])
    return root


def lidc(root: Path, patients: int = 12) -> Path:
    """``lidc`` with ``nodules.csv`` and ``readings.csv``: two nodules of each patient, with one to four readings."""
    rng = np.random.default_rng(2)
    nodules, readings = [], []
    for row in range(2 * patients):
        patient, count, size = f"LIDC-IDRI-{row // 2:04d}", 1 + row % 4, 4 + 2 * (row % 10)
        geometry = ",".join(f"{size + rng.normal():.3f}" for _ in GEOMETRY)
        nodules.append(f"nodule{row:04d},{patient},{count},{geometry}")
        for reading in range(count):
            rated = np.clip(round(size / 5 + rng.normal()), 1, 5)
            reader = f"{patient}-reading{row}-{reading}"
            readings.append(f"nodule{row:04d},{patient},{reader},{'3,' * 8}{rated:.0f}")
    write_lines(root / "lidc" / "nodules.csv", ["item,patient,readings," + ",".join(GEOMETRY), *nodules])
    write_lines(root / "lidc" / "readings.csv", ["item,patient,reading," + ",".join(RATINGS), *readings])
    return root
