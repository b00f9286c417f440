"""Training patches of a tree, with binned features.

Half of the patches are near a boundary that an annotator drew (positive), and half are not.

Bins store a feature value in one byte, so that a million patches fit in memory. All cells of a map have the same kind
of value, so 26 tables of bins serve 7228 features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.ndimage import distance_transform_edt

from ldl.edges.structured.channels import (
    CHANNELS,
    CONTRAST_FLOOR,
    LABEL,
    PATCH,
    POINTS,
    SHRINK,
    SIDE,
    FeaturePlaces,
    feature_maps,
)
from ldl.errors import LDLError
from ldl.methods.numba_kernels import compiled

FEATURE_BINS = 256
POSITIVE_PIXELS = 8
"""Distance in pixels: a patch is positive if a boundary of the annotator is nearer to its middle."""
_GUESS_STEPS = 4096
"""Even steps along the values of a map; the search for the bin of a value starts at the guess of its step."""


class PatchBins(NamedTuple):
    """Bins of the values of each map, with a start for the search for the bin of a value.

    Attributes:
        edges: (26, 255) float32, rising. Bin k holds the values above edge k - 1 up to edge k.
        top: (26, 256) float32, the largest value of each bin; for the last bin, just above its edge.
        low: (26,) float32, the start of even steps along the values.
        scale: (26,) float32, steps per unit of value.
        guess: (26, 4096) uint8, a bin no higher than the bins of all values in a step.
    """

    edges: np.ndarray
    top: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    guess: np.ndarray


def make_bins(maps: list[np.ndarray], seed: int, draws: int = 200_000) -> PatchBins:
    """Return bins that are about equally full over patches at random places of images with these feature ``maps``.

    Each table is made from about ``draws`` values over all images.
    """
    random = np.random.default_rng(seed)
    samples = []
    count = -(-draws // len(maps))
    for image in maps:
        height, width = image.shape[1:]
        row, column = random.integers(height - SIDE + 1, size=count), random.integers(width - SIDE + 1, size=count)
        first, second = (random.choice(POINTS, (2, count)) for _ in range(2))
        similarity = image[CHANNELS:]
        differences = (
            similarity[:, row + first[0], column + first[1]] - similarity[:, row + second[0], column + second[1]]
        )
        samples.append(np.concatenate([image[:CHANNELS, row, column], differences]))
    shares = np.arange(1, FEATURE_BINS) / FEATURE_BINS
    edges = np.stack([np.quantile(values, shares) for values in np.concatenate(samples, axis=1)]).astype(np.float32)
    low, width = np.ascontiguousarray(edges[:, 0]), np.maximum(edges[:, -1] - edges[:, 0], np.float32(1e-6))
    # One step back, because a value close to the border of two steps may be rounded into the next.
    starts = low[:, None] + (np.arange(_GUESS_STEPS) - 1) * (width / _GUESS_STEPS)[:, None]
    guess = np.stack([np.searchsorted(table, start) for table, start in zip(edges, starts)]).astype(np.uint8)
    guess[:, 0] = 0
    top = np.concatenate([edges, np.nextafter(edges[:, -1:], np.float32(np.inf))], axis=1)
    return PatchBins(edges, top, low, (_GUESS_STEPS / width).astype(np.float32), guess)


@compiled
def bin_patches(maps: np.ndarray, places: FeaturePlaces, bins: PatchBins, cells: np.ndarray, codes: np.ndarray) -> None:
    """Fill ``codes`` (F, n) uint8: F features of the n patches of maps (26, h, w) that start at ``cells`` (n, 2).

    A code is the number of edges below the value, so value <= edges[k] is code <= k.
    """
    for f in range(len(codes)):
        m = places.map[f]
        values, edges, guess, low, scale = maps[m], bins.edges[m], bins.guess[m], bins.low[m], bins.scale[m]
        y, x, other_y, other_x = places.first[f, 0], places.first[f, 1], places.second[f, 0], places.second[f, 1]
        for i in range(len(cells)):
            row, column = cells[i, 0], cells[i, 1]
            value = values[row + y, column + x]
            if other_y >= 0:
                value -= values[row + other_y, column + other_x]
            step = (value - low) * scale
            code = np.int64(guess[int(min(max(step, np.float32(0)), np.float32(_GUESS_STEPS - 1)))])
            while code < FEATURE_BINS - 1 and edges[code] < value:
                code += 1
            codes[f, i] = code


class Scene(NamedTuple):
    """A training image of H x W pixels with A annotators, ready to cut patches from; it takes 26 H W bytes.

    Attributes:
        maps: (26, h, w) float32, its feature maps.
        segments: (A, H, W) int32, each annotator's segmentation.
        near: (A, h - 15, w - 15) bool, whether the patch that starts at a cell is positive.
    """

    maps: np.ndarray
    segments: np.ndarray
    near: np.ndarray


class Patches(NamedTuple):
    """The N training patches of a tree.

    Attributes:
        codes: (F, N) uint8, the bins of the tree's features.
        segments: (N, 256) uint8, the segmentation in the middle of each patch, numbered from 0 in each.
        places: (N, 3) int32, the scene, and the cell (row, column) at which the patch starts.
    """

    codes: np.ndarray
    segments: np.ndarray
    places: np.ndarray


def make_scene(image: np.ndarray, boundaries: np.ndarray, segments: np.ndarray, floor: float = CONTRAST_FLOOR) -> Scene:
    """Build a scene from an image (H, W, 3) uint8 and the boundaries and segments (A, H, W) of its annotators.

    ``floor`` is an argument of :func:`.channels.feature_maps`. Patches lie completely inside the image, so an image of
    less than 32 x 32 pixels raises LDLError.
    """
    if min(image.shape[:2]) < PATCH:
        raise LDLError(
            f"StructuredEdges learns from patches of {PATCH} x {PATCH} pixels, and an image has {image.shape[0]} x "
            f"{image.shape[1]}; leave it out, or enlarge it"
        )
    height, width = (size - size % (2 * SHRINK) for size in image.shape[:2])
    maps = feature_maps(np.ascontiguousarray(image[:height, :width]), floor=floor)
    rows, columns = (size - SIDE + 1 for size in maps.shape[1:])
    near = np.zeros((len(boundaries), rows, columns), np.bool_)
    for number, drawn in enumerate(boundaries):
        if drawn.any():
            distance = distance_transform_edt(~drawn)[PATCH // 2 :: SHRINK, PATCH // 2 :: SHRINK]
            near[number] = distance[:rows, :columns] < POSITIVE_PIXELS
    return Scene(maps, segments, near)


def sample_patches(
    scenes: Sequence[Scene], places: FeaturePlaces, bins: PatchBins, count: int, random: np.random.Generator
) -> Patches:
    """Draw about ``count`` patches without replacement, the same number from every annotator of every scene.

    An annotator with too few patches of one kind contributes all of that kind. The result takes count x (F + 256)
    bytes for F ``places``.
    """
    per_kind = count / (2 * sum(len(scene.near) for scene in scenes))
    chosen = [_choose_places(scene.near, per_kind, random) for scene in scenes]
    bounds = np.cumsum([0, *(len(cells_of_scene) for cells_of_scene in chosen)])
    total = bounds[-1]
    codes, segments = np.empty((len(places.map), total), np.uint8), np.empty((total, LABEL * LABEL), np.uint8)
    cells = np.empty((total, 3), np.int32)
    for number, (scene, cells_of_scene) in enumerate(zip(scenes, chosen)):
        inside = slice(bounds[number], bounds[number + 1])
        bin_patches(scene.maps, places, bins, cells_of_scene[:, 1:], codes[:, inside])
        cut_segments(scene.segments, cells_of_scene, segments[inside])
        cells[inside, 0], cells[inside, 1:] = number, cells_of_scene[:, 1:]
    return Patches(codes, segments, cells)


def _choose_places(near: np.ndarray, per_kind: float, random: np.random.Generator) -> np.ndarray:
    """Draw about ``per_kind`` positive and as many negative patches for each annotator of a scene.

    Returns the annotator, first cell row and first cell column of each patch, (n, 3) int32.
    """
    parts = []
    for number, drawn in enumerate(near):
        for eligible in (drawn, ~drawn):
            candidates = np.flatnonzero(eligible)
            # The fractional part is drawn at random, so that few patches are still spread over all scenes.
            wanted = min(int(per_kind) + int(random.random() < per_kind % 1), len(candidates))
            taken = random.choice(candidates, wanted, replace=False)
            parts.append(np.stack([np.full(wanted, number), *np.divmod(taken, drawn.shape[1])], axis=1))
    return np.concatenate(parts).astype(np.int32)


@compiled
def cut_segments(segments: np.ndarray, places: np.ndarray, cut: np.ndarray) -> None:
    """Fill ``cut`` (n, 256) uint8 with the segmentations in the middle of patches, numbered 0, 1, ... in reading order.

    ``segments`` are (A, H, W) integers; ``places`` (n, 3) has annotator, first cell row and first cell column.
    """
    seen = np.empty(LABEL * LABEL, segments.dtype)
    for i in range(len(places)):
        top, left = SHRINK * places[i, 1] + (PATCH - LABEL) // 2, SHRINK * places[i, 2] + (PATCH - LABEL) // 2
        distinct = 0
        for p in range(LABEL * LABEL):
            segment = segments[places[i, 0], top + p // LABEL, left + p % LABEL]
            number = 0
            while number < distinct and seen[number] != segment:
                number += 1
            if number == distinct:
                seen[distinct] = segment
                distinct += 1
            cut[i, p] = number


def drop_specks(segments: np.ndarray, least: int = 6) -> np.ndarray:
    """Assign the pixels of segments of fewer than ``least`` pixels to the nearest larger segment.

    Returns the segment of each pixel, (256,) uint8, numbered from 0 without gaps.
    """
    sizes = np.bincount(segments)
    small = sizes[segments] < least
    if small.any() and not small.all():
        square = small.reshape(LABEL, LABEL)
        nearest = distance_transform_edt(square, return_distances=False, return_indices=True)
        segments = segments.reshape(LABEL, LABEL)[tuple(nearest)].ravel()
    return np.unique(segments, return_inverse=True)[1].ravel().astype(np.uint8)
