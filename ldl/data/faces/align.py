"""Aligned square crops of faces, by a similarity transform of landmarks or of a box."""

from __future__ import annotations

import cv2
import numpy as np

from ldl.errors import LDLError

# Mean positions in the unit square that the inner face of dlib's 68-point mean shape spans: both eyes' centres,
# the tip of the nose, both corners of the mouth. UTKFace's crops were made from that shape with a margin of 0.2.
FACE_POINTS = np.array([[0.2255, 0.216], [0.7548, 0.216], [0.490, 0.516], [0.254, 0.780], [0.726, 0.780]])
LANDMARK_MARGIN = 0.2
BOX_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def similarity(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The (2, 3) matrix of turn, scale and shift that brings ``source`` closest to ``target``, (n, 2) each.

    Least squares without reflection (Umeyama, PAMI 1991). Raises LDLError for points that all coincide.
    """
    source_mean, target_mean = source.mean(0), target.mean(0)
    from_, to = source - source_mean, target - target_mean
    spread = (from_**2).sum()
    if not np.isfinite(spread) or spread < 1e-12:
        raise LDLError(f"landmarks {source.round(1).tolist()} do not place a face; they must be distinct points")
    # In the plane the best turn and scale are one complex number.
    real, imaginary = (from_ * to).sum() / spread, (from_[:, 0] * to[:, 1] - from_[:, 1] * to[:, 0]).sum() / spread
    turn = np.array([[real, -imaginary], [imaginary, real]])
    return np.concatenate([turn, (target_mean - turn @ source_mean)[:, None]], axis=1)


def placement(anchor: np.ndarray | None, width: int, height: int, size: int, margin: float | None) -> np.ndarray:
    """The (2, 3) matrix from pixels of a picture of ``width`` and ``height`` to pixels of its crop of side ``size``.

    ``anchor`` is (5, 2) eyes, nose and mouth corners as in ``FACE_POINTS``; (4, 2) corners of a box, clockwise from the
    face's upper left; or None for the whole picture, which then fits into the crop. ``margin`` is what is added on
    every side, as a share of the face's square; None adds ``LANDMARK_MARGIN`` to landmarks and nothing to boxes, which
    come with the margin of those who drew them. Raises LDLError: neither 5 nor 4 points, or points that do not place a
    face, or a mirrored box.
    """
    if anchor is None:
        side = max(width, height)
        anchor, margin = np.array([width - side, height - side]) / 2 + side * BOX_CORNERS - 0.5, 0.0
    if anchor.shape not in ((5, 2), (4, 2)):
        raise LDLError(f"a face is placed by 5 landmarks or 4 corners of a box, got points of shape {anchor.shape}")
    if len(anchor) == 4 and _area(anchor) <= 0:
        raise LDLError(f"the box {anchor.round(1).tolist()} is mirrored or empty; its corners go clockwise")
    template, usual = (FACE_POINTS, LANDMARK_MARGIN) if len(anchor) == 5 else (BOX_CORNERS, 0.0)
    margin = usual if margin is None else margin
    return similarity(anchor, size * (margin + template) / (1 + 2 * margin) - 0.5)


def _area(corners: np.ndarray) -> float:
    """Area of a polygon, (n, 2); negative where its corners go anticlockwise."""
    x, y = corners.T
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


def crop(picture: np.ndarray, anchor: np.ndarray | None, size: int, margin: float | None) -> np.ndarray:
    """The aligned face of a picture, (size, size, 3) uint8 from (height, width, 3); see :func:`placement`.

    What lies outside the picture repeats its border.
    """
    height, width = picture.shape[:2]
    matrix = placement(anchor, width, height, size, margin)
    shrink = 1 / np.hypot(matrix[0, 0], matrix[1, 0])
    if shrink >= 2:
        # A warp samples a few pixels only: shrink by averaging first, or fine texture turns into noise.
        reduced = (max(1, round(width / int(shrink))), max(1, round(height / int(shrink))))
        picture = cv2.resize(picture, reduced, interpolation=cv2.INTER_AREA)
        scale = np.array([width / reduced[0], height / reduced[1]])
        shifted = matrix[:, 2] + matrix[:, :2] @ (scale * 0.5 - 0.5)
        matrix = np.concatenate([matrix[:, :2] * scale, shifted[:, None]], axis=1)
    return cv2.warpAffine(picture, matrix, (size, size), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
