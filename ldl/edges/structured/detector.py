"""Edge maps from a structured forest (Dollar & Zitnick 2015, Sec. 4): every second pixel's patch votes."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import torch

from ldl.edges.structured.channels import LABEL, PATCH, SHRINK, blur, feature_maps, feature_places, luv
from ldl.edges.structured.forest import EdgeForest
from ldl.edges.structured.neighbours import NeighbourSettings, PatchNeighbours
from ldl.edges.structured.voting import Rings, find_leaves, rings_of, vote
from ldl.errors import LDLError

PAD = PATCH // 2 + LABEL // 2
"""So much around the image that each of its pixels gets the votes of equally many patches."""


@dataclass
class DetectorSettings:
    """How the forest is applied.

    Args:
        votes: Trees that vote at each place; neighbouring places ask different ones, in a checkerboard.
        sharpen: How far boundaries in a vote may move to where the colours change, in pixels, 0 to 3.
        scales: Sizes of the image whose edge maps are averaged.
        gain: What the share of votes is multiplied by before it is cut at 1. A boundary is rarely drawn by more than a
            third of the patches at the same pixel.
        dsna: Let the training patches that the leaves keep vote, with DSNA's weights, not one patch for each leaf.
    """

    votes: int = 4
    sharpen: int = 2
    scales: tuple[float, ...] = (1.0,)
    gain: float = 2.0
    dsna: bool = False

    def check(self, trees: int) -> None:
        """Raise LDLError for a value out of range, or more votes than trees."""
        if not 1 <= self.votes <= trees:
            raise LDLError(f"detector.votes {self.votes} must be in 1..{trees}, the number of trees")
        if not 0 <= self.sharpen <= 3:
            raise LDLError(f"detector.sharpen {self.sharpen} must be in 0..3")
        if not self.scales or not all(0.05 <= scale <= 20 for scale in self.scales):
            raise LDLError(f"detector.scales {list(self.scales)} must be one or more numbers in 0.05..20")
        if not self.gain > 0:
            raise LDLError(f"detector.gain {self.gain} must be positive")


class EdgeDetector:
    """A trained forest, ready for images; how its neighbours are weighted matters where ``settings.dsna`` is set."""

    def __init__(
        self,
        forest: EdgeForest,
        settings: DetectorSettings | None = None,
        neighbours: NeighbourSettings | None = None,
    ) -> None:
        self.forest = forest
        self.settings = settings or DetectorSettings()
        self.settings.check(len(forest.roots))
        self.neighbours, self.segments = None, forest.segments
        if self.settings.dsna:
            self.neighbours = PatchNeighbours(forest, neighbours or NeighbourSettings())
            self.segments = self.neighbours.kept.segments
        self.rings: Rings = rings_of(self.segments, self.settings.sharpen + 1)
        self.places = feature_places()

    def detect(self, image: np.ndarray) -> np.ndarray:
        """How likely each pixel is an edge: (H, W, 3) uint8 RGB to (H, W) float32 in [0, 1], before suppression."""
        height, width = image.shape[:2]
        total = np.zeros((height, width), np.float32)
        for scale in self.settings.scales:
            if scale == 1:
                total += self._detect_once(image)
                continue
            size = max(1, round(width * scale)), max(1, round(height * scale))
            resized = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
            total += cv2.resize(self._detect_once(resized), (width, height), interpolation=cv2.INTER_LINEAR)
        return total / len(self.settings.scales)

    def _detect_once(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        below, beside = PAD + -(height + 2 * PAD) % (2 * SHRINK), PAD + -(width + 2 * PAD) % (2 * SHRINK)
        padded = np.pad(image, ((PAD, below), (PAD, beside), (0, 0)), mode="symmetric")
        tensor = torch.from_numpy(np.ascontiguousarray(padded.transpose(2, 0, 1))).float() / 255
        maps = feature_maps(tensor).numpy()
        leaves = self.find_leaves(maps)
        if self.neighbours:
            voters, weights = self.neighbours.weigh(leaves, maps)
        else:
            voters, weights = leaves, np.full(leaves.shape, np.float32(1 / leaves.shape[2]))
        colour = blur(luv(tensor), 1).permute(1, 2, 0).contiguous().numpy()
        votes = np.zeros(padded.shape[:2], np.float32)
        vote(voters, weights, self.segments, self.rings, colour, self.settings.sharpen, votes)
        each = (LABEL // SHRINK) ** 2
        votes = blur(torch.from_numpy(votes)[None], 1)[0].numpy()[PAD : PAD + height, PAD : PAD + width]
        # DSNA's weights may be negative.
        return np.clip(votes * np.float32(self.settings.gain / each), 0, 1)

    def find_leaves(self, maps: np.ndarray) -> np.ndarray:
        """The leaves that the patch at each cell reaches in the trees it asks, (rows, columns, votes) int32."""
        height, width = maps.shape[1:]
        of = self.forest.feature
        first, second = (where[of, 0] * width + where[of, 1] for where in (self.places.first, self.places.second))
        start = self.places.map[of] * (height * width)
        second = np.where(self.places.second[of, 0] < 0, -1, start + second)
        # A leaf has no features.
        first = np.where(of < 0, -1, start + first)
        side = PATCH // SHRINK
        leaves = np.empty((height - side + 1, width - side + 1, self.settings.votes), np.int32)
        find_leaves(
            maps.ravel(), width, self.forest.roots, first, second, self.forest.weight, self.forest.threshold,
            self.forest.child, leaves,
        )  # fmt: skip
        return leaves
