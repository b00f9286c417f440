"""Segmentations of the square in the middle of a patch."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import distance_transform_edt

from ldl.edges.structured.channels import LABEL


def drop_specks(segments: np.ndarray, least: int = 6) -> np.ndarray:
    """Give the pixels of segments with fewer than ``least`` pixels to the nearest other: (256,) uint8, 0, 1, ..."""
    sizes = np.bincount(segments)
    small = sizes[segments] < least
    if small.any() and not small.all():
        square = small.reshape(LABEL, LABEL)
        nearest = distance_transform_edt(square, return_distances=False, return_indices=True)
        segments = segments.reshape(LABEL, LABEL)[tuple(nearest)].ravel()
    return np.unique(segments, return_inverse=True)[1].ravel().astype(np.uint8)
