"""Small trees in the layout of BSDS500, maps of edges, and random forests of segmentations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from scipy.io import savemat

from ldl.collective import Collective
from ldl.edges.benchmark.ground_truth import GREY_STEPS, write_edge_map
from ldl.edges.structured.channels import PATCH_FEATURES
from ldl.edges.structured.forest import EdgeForest, EdgeTree, join_edges


def write_truth(path: Path, boundaries: list[np.ndarray], segments: list[np.ndarray] | None = None) -> Path:
    """A ground truth file: a row of cells, each a structure of two maps."""
    cells = np.empty((1, len(boundaries)), object)
    for number, drawn in enumerate(boundaries):
        numbered = np.ones(drawn.shape) if segments is None else segments[number]
        cells[0, number] = {"Segmentation": numbered.astype(np.uint16), "Boundaries": drawn.astype(np.uint8)}
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"groundTruth": cells}, do_compression=True)
    return path


def scene(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """A bright disc on dark ground; three annotators draw its rim, each a little differently, the last only half."""
    height, width = shape
    y, x = np.mgrid[:height, :width]
    centre, radius = rng.uniform(0.4, 0.6, 2) * shape, 0.3 * min(shape)
    distance = np.hypot(y - centre[0], x - centre[1])
    picture = np.where(distance[..., None] < radius, [200, 180, 60], [40, 60, 90]) + rng.normal(0, 5, (*shape, 3))
    segments = [1 + (distance < radius + shift) for shift in (0, 0.7, -0.7)]
    boundaries = [inner & ~_eroded(inner) for inner in (number == 2 for number in segments)]
    boundaries[2] &= x < centre[1]
    return picture.clip(0, 255).astype(np.uint8), boundaries, segments


def bsds(root: Path, parts: dict[str, int] | None = None, shape: tuple[int, int] = (48, 64)) -> Path:
    """``images/PART/NAME.jpg`` and ``groundTruth/PART/NAME.mat``; every second image stands upright."""
    rng = np.random.default_rng(0)
    number = 1000
    for part, count in (parts or {"train": 3, "val": 2, "test": 2}).items():
        for turn in range(count):
            number += 1
            picture, boundaries, segments = scene(rng, shape if turn % 2 == 0 else shape[::-1])
            folder = root / "images" / part
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / f"{number}.jpg")
            write_truth(root / "groundTruth" / part / f"{number}.mat", boundaries, segments)
    return root


def _eroded(mask: np.ndarray) -> np.ndarray:
    padded = np.pad(mask, 1)
    return padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]


def random_forest(trees: int = 8, depth: int = 4, terms: int = 1, seed: int = 0) -> EdgeForest:
    """Full trees with random splits and blocky segmentations."""
    random = np.random.default_rng(seed)
    inner, leaves = 2**depth - 1, 2**depth
    grown = []
    for _ in range(trees):
        feature = np.full((inner + leaves, terms), -1, np.int32)
        feature[:inner] = random.integers(0, PATCH_FEATURES, (inner, terms))
        threshold = np.where(random.random(inner) < 0.5, 0.1, 0.0)
        child = np.concatenate([2 * np.arange(inner) + 1, np.arange(leaves)]).astype(np.int32)
        blocks = random.integers(0, 3, (leaves, 3, 3))
        segments = np.kron(blocks, np.ones((6, 6), int))[:, :16, :16].reshape(leaves, 256)
        numbered = np.stack([np.unique(one, return_inverse=True)[1] for one in segments]).astype(np.uint8)
        threshold = np.concatenate([threshold, np.zeros(leaves)]).astype(np.float32)
        weight = np.ones((len(feature), terms), np.float32)
        if terms > 1:
            weight[:] = random.normal(size=weight.shape)
        grown.append(EdgeTree(feature, weight, threshold, child, numbered))
    return join_edges(grown, terms, None, torch.device("cpu"), Collective())


def write_probability(path: Path, probability: np.ndarray) -> None:
    """Write (H, W) in 0..1 with 16 bits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.round(GREY_STEPS * probability).astype(np.uint16)).save(path)


def upright_lines(profile: dict[int, float]) -> np.ndarray:
    """A map (20, 20) whose every row has these strengths by column."""
    return np.tile([profile.get(x, 0.0) for x in range(20)], (20, 1))


def maps_and_truth(root: Path) -> tuple[Path, Path]:
    """Folders of the maps and the ground truth of two images with three annotators; the maps draw the first's lines."""
    rng = np.random.default_rng(0)
    for name, shape in (("1", (40, 52)), ("2", (52, 40))):
        _, boundaries, segments = scene(rng, shape)
        write_truth(root / "gt" / f"{name}.mat", boundaries, segments)
        write_edge_map(root / "pred" / f"{name}.png", boundaries[0] * 0.8)
    return root / "pred", root / "gt"


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return noise with a part of one colour."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    pixels[: height // 3, : width // 2] = seed, 0, 0
    return pixels
