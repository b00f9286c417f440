"""Edge maps from a structured forest (Dollar & Zitnick 2015, Sec. 4): every second pixel's patch votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ldl.edges.structured.bands import Bands, in_bands, whole
from ldl.edges.structured.blur import blur, blur_rows
from ldl.edges.structured.channels import LABEL, PATCH, SHRINK, SIDE, blur_channels, luv, make_channels
from ldl.edges.structured.colour import sum_up
from ldl.edges.structured.forest import EdgeForest
from ldl.edges.structured.gradients import CONTRAST_FLOOR
from ldl.edges.structured.leaves import find_leaves, pack
from ldl.edges.structured.neighbours import PatchNeighbours
from ldl.edges.structured.outlines import outlines_of
from ldl.edges.structured.voting import vote

PAD = PATCH // 2 + LABEL // 2
"""So much around the image that each of its pixels gets the votes of equally many patches."""


@dataclass
class EdgeDetector:
    """A trained forest, ready for images; what is not listed are options of :class:`ldl.heads.StructuredEdges`.

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

    def __post_init__(self) -> None:
        self.nodes = pack(self.forest, merge=self.neighbours is None)
        segments = self.neighbours.kept.segments if self.neighbours else self.forest.segments
        self.outlines = outlines_of(segments, max(self.sharpen, 1))

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
        padded = cv2.copyMakeBorder(image, PAD, below, PAD, beside, cv2.BORDER_REFLECT)
        with in_bands(self.threads) as bands:
            colour = luv(padded, bands)
            maps = blur_channels(make_channels(colour, bands, self.floor), bands)
            leaves = self.find_leaves(maps, bands)
            if self.neighbours:
                voters, weights = self.neighbours.weigh(leaves, maps)
            else:
                voters, weights = leaves, np.full(leaves.shape, np.float32(1 / leaves.shape[2]))
            votes = self._vote(voters, weights, colour, bands)
        each = (LABEL // SHRINK) ** 2
        votes = blur(votes[None], 1)[0, PAD : PAD + height, PAD : PAD + width]
        # DSNA's weights may be negative.
        return np.clip(votes * np.float32(self.gain / each), 0, 1)

    def find_leaves(self, maps: np.ndarray, bands: Bands = whole) -> np.ndarray:
        """The leaves that the patch at each cell reaches in the trees it asks, (rows, columns, votes) int32.

        Without ``neighbours`` a leaf without an edge may stand for those beside it in the tree, without one as well.
        """
        rows, columns = (size - SIDE + 1 for size in maps.shape[1:])
        leaves = np.empty((rows, columns, self.votes), np.int32)
        bands(lambda low, high: find_leaves(maps, self.nodes, leaves, low, high), rows)
        return leaves

    def _vote(self, voters: np.ndarray, weights: np.ndarray, colour: np.ndarray, bands: Bands) -> np.ndarray:
        """What the segmentations at each cell give to each pixel of CIE-LUV (3, H, W)."""
        smooth, votes = np.empty_like(colour), np.zeros(colour.shape[1:], np.float32)
        bands(lambda low, high: blur_rows(colour, 1, smooth, low, high), len(votes))
        given = voters, weights, self.outlines, smooth, sum_up(smooth), self.sharpen, votes
        bands(lambda low, high: vote(*given, low, high), len(votes))
        return votes
