"""Which patches a tree learns from: half of them near a boundary that an annotator drew, half away from all of his."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.ndimage import distance_transform_edt

from ldl.edges.structured.bins import Bins, bin_patches
from ldl.edges.structured.channels import LABEL, PATCH, SHRINK, SIDE, Places, feature_maps
from ldl.edges.structured.gradients import CONTRAST_FLOOR
from ldl.errors import LDLError
from ldl.methods.forest.compiled import compiled

NEAR = 8
"""A patch is positive whose middle is less than this from a boundary of the annotator, in pixels."""


class Scene(NamedTuple):
    """A training image of H x W pixels, ready to cut patches from: 26 H W bytes and what its A annotators drew.

    Attributes:
        maps: (26, h, w) float32, its feature maps.
        segments: (A, H, W) int32, each annotator's segmentation.
        near: (A, h - 15, w - 15) bool, whether the patch that starts at a cell is positive.
    """

    maps: np.ndarray
    segments: np.ndarray
    near: np.ndarray


class Patches(NamedTuple):
    """What a tree is grown on.

    Attributes:
        codes: (F, N) uint8, the bins of the tree's features.
        segments: (N, 256) uint8, the segmentation in the middle of each patch, numbered from 0 in each.
        places: (N, 3) int32, the scene, and the cell (row, column) at which the patch starts.
    """

    codes: np.ndarray
    segments: np.ndarray
    places: np.ndarray


def make_scene(image: np.ndarray, boundaries: np.ndarray, segments: np.ndarray, floor: float = CONTRAST_FLOOR) -> Scene:
    """A scene from an image (H, W, 3) uint8 and the boundaries and segments (A, H, W) of its annotators.

    Patches lie wholly inside the image. ``floor`` is that of :func:`.channels.feature_maps`. Raises LDLError for an
    image of less than 32 x 32 pixels.
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
            away = distance_transform_edt(~drawn)[PATCH // 2 :: SHRINK, PATCH // 2 :: SHRINK]
            near[number] = away[:rows, :columns] < NEAR
    return Scene(maps, segments, near)


def sample_patches(
    scenes: Sequence[Scene], places: Places, bins: Bins, count: int, random: np.random.Generator
) -> Patches:
    """Draw about ``count`` patches, equally many from every annotator of every scene, without replacement.

    It takes count x (F + 256) bytes, F being the number of ``places``. An annotator whose scene has too few places of a
    kind gives those it has.
    """
    each = count / (2 * sum(len(scene.near) for scene in scenes))
    chosen = [_choose_places(scene.near, each, random) for scene in scenes]
    bounds = np.cumsum([0, *(len(found) for found in chosen)])
    total = bounds[-1]
    codes, segments = np.empty((len(places.map), total), np.uint8), np.empty((total, LABEL * LABEL), np.uint8)
    cells = np.empty((total, 3), np.int32)
    for number, (scene, found) in enumerate(zip(scenes, chosen)):
        own = slice(bounds[number], bounds[number + 1])
        bin_patches(scene.maps, places, bins, found[:, 1:], codes[:, own])
        cut_segments(scene.segments, found, segments[own])
        cells[own, 0], cells[own, 1:] = number, found[:, 1:]
    return Patches(codes, segments, cells)


def _choose_places(near: np.ndarray, each: float, random: np.random.Generator) -> np.ndarray:
    """Annotator, first cell row and first cell column of the patches of a scene, (n, 3) int32."""
    parts = []
    for number, drawn in enumerate(near):
        for kind in (drawn, ~drawn):
            candidates = np.flatnonzero(kind)
            # A share of a patch is drawn by chance, so that few patches are still spread over all scenes.
            wanted = min(int(each) + int(random.random() < each % 1), len(candidates))
            taken = random.choice(candidates, wanted, replace=False)
            parts.append(np.stack([np.full(wanted, number), *np.divmod(taken, drawn.shape[1])], axis=1))
    return np.concatenate(parts).astype(np.int32)


@compiled
def cut_segments(segments: np.ndarray, found: np.ndarray, cut: np.ndarray) -> None:
    """Fill in ``cut``, the segmentations in the middle of patches, (n, 256) uint8, numbered 0, 1, ... as they come.

    ``segments`` are (A, H, W) integers; ``found`` (n, 3) says annotator, first cell row and first cell column.
    """
    seen = np.empty(LABEL * LABEL, segments.dtype)
    for i in range(len(found)):
        top, left = SHRINK * found[i, 1] + (PATCH - LABEL) // 2, SHRINK * found[i, 2] + (PATCH - LABEL) // 2
        known = 0
        for p in range(LABEL * LABEL):
            segment = segments[found[i, 0], top + p // LABEL, left + p % LABEL]
            number = 0
            while number < known and seen[number] != segment:
                number += 1
            if number == known:
                seen[known] = segment
                known += 1
            cut[i, p] = number
