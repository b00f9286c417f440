"""Edge maps from a structured forest (Dollar & Zitnick 2015, Sec. 4): every second pixel's patch votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import cv2
import numpy as np
import torch

from ldl.edges.structured.channels import (
    CONTRAST_FLOOR,
    LABEL,
    PATCH,
    SHRINK,
    SIDE,
    blur,
    feature_maps,
    feature_places,
    luv,
)
from ldl.edges.structured.forest import EdgeForest
from ldl.edges.structured.neighbours import PatchNeighbours
from ldl.edges.structured.voting import Rings, find_leaves, rings_of, vote

PAD = PATCH // 2 + LABEL // 2
"""So much around the image that each of its pixels gets the votes of equally many patches."""


@dataclass
class EdgeDetector:
    """A trained forest, ready for images; ``votes`` to ``gain`` are options of :class:`ldl.heads.StructuredEdges`.

    Args:
        forest: The forest.
        neighbours: Lets the training patches that the leaves keep vote, not one patch for each leaf.
        threads: Parts of an image that are worked on at once; they change no bit.
    """

    forest: EdgeForest
    votes: int
    sharpen: int
    scales: Sequence[float]
    gain: float
    neighbours: PatchNeighbours | None = None
    threads: int = 1
    floor: float = CONTRAST_FLOOR
    mirror: bool = False
    blend: float = 1.0

    def __post_init__(self) -> None:
        self.segments = self.forest.segments
        if self.neighbours:
            self.segments = self.neighbours.kept.segments
            if self.blend < 1:
                self.segments = np.concatenate([self.segments, self.forest.segments])
        self.rings: Rings = rings_of(self.segments, self.sharpen + 1)
        self.places = feature_places()

    def detect(self, image: np.ndarray) -> np.ndarray:
        """How likely each pixel is an edge: (H, W, 3) uint8 RGB to (H, W) float32 in [0, 1], before suppression."""
        found = self._detect_scales(image)
        if self.mirror:
            found = (found + self._detect_scales(np.ascontiguousarray(image[:, ::-1]))[:, ::-1]) / 2
        return found

    def _detect_scales(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        total = np.zeros((height, width), np.float32)
        for scale in self.scales:
            size = max(1, round(width * scale)), max(1, round(height * scale))
            resized = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
            total += cv2.resize(self._detect_once(resized), (width, height), interpolation=cv2.INTER_LINEAR)
        return total / len(self.scales)

    def _detect_once(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        below, beside = PAD + -(height + 2 * PAD) % (2 * SHRINK), PAD + -(width + 2 * PAD) % (2 * SHRINK)
        padded = np.pad(image, ((PAD, below), (PAD, beside), (0, 0)), mode="symmetric")
        tensor = torch.from_numpy(np.ascontiguousarray(padded.transpose(2, 0, 1))).float() / 255
        maps = feature_maps(tensor, self.floor).numpy()
        leaves = self.find_leaves(maps)
        voters, weights = leaves, np.full(leaves.shape, np.float32(1 / leaves.shape[2]))
        if self.neighbours:
            near, shares = self.neighbours.weigh(leaves, maps)
            if self.blend < 1:
                voters = np.concatenate([near, leaves + np.int32(len(self.neighbours.kept.segments))], -1)
                weights = np.concatenate([np.float32(self.blend) * shares, np.float32(1 - self.blend) * weights], -1)
            else:
                voters, weights = near, shares
        colour = blur(luv(tensor), 1).permute(1, 2, 0).contiguous().numpy()
        votes = np.zeros(padded.shape[:2], np.float32)
        given = voters, weights, self.segments, self.rings, colour, self.sharpen, votes
        self._in_bands(lambda low, high: vote(*given, low, high), len(votes))
        each = (LABEL // SHRINK) ** 2
        votes = blur(torch.from_numpy(votes)[None], 1)[0].numpy()[PAD : PAD + height, PAD : PAD + width]
        # DSNA's weights may be negative.
        return np.clip(votes * np.float32(self.gain / each), 0, 1)

    def find_leaves(self, maps: np.ndarray) -> np.ndarray:
        """The leaves that the patch at each cell reaches in the trees it asks, (rows, columns, votes) int32."""
        height, width = maps.shape[1:]
        of = self.forest.feature
        first, second = (where[of, 0] * width + where[of, 1] for where in (self.places.first, self.places.second))
        start = self.places.map[of] * (height * width)
        second = np.where(self.places.second[of, 0] < 0, -1, start + second)
        # A leaf has no features.
        first = np.where(of < 0, -1, start + first)
        leaves = np.empty((height - SIDE + 1, width - SIDE + 1, self.votes), np.int32)
        given = (
            maps.ravel(), width, self.forest.roots, first, second, self.forest.weight, self.forest.threshold,
            self.forest.child, leaves,
        )  # fmt: skip
        self._in_bands(lambda low, high: find_leaves(*given, low, high), len(leaves))
        return leaves

    def _in_bands(self, work: Callable[[int, int], None], rows: int) -> None:
        cuts = np.linspace(0, rows, self.threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(work, cuts[:-1], cuts[1:]))
