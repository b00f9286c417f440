"""Gradient magnitude: the edge detector that learns nothing."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

GREY = np.array([0.299, 0.587, 0.114])
"""Weights of red, green and blue in the brightness (ITU-R BT.601)."""


def gradient_magnitude(picture: np.ndarray, sigma: float = 2.0) -> np.ndarray:
    """Length of the gradient of the blurred brightness, so scaled that a step of brightness h has strength h.

    Args:
        picture: (H, W, 3) uint8, RGB.
        sigma: Standard deviation of the Gaussian whose derivatives are taken, in pixels.

    Returns:
        (H, W) float64 in 0..1.
    """
    grey = picture @ GREY / 255
    slopes = [gaussian_filter(grey, sigma, order) for order in ((1, 0), (0, 1))]
    return np.minimum(np.hypot(*slopes) * np.sqrt(2 * np.pi) * sigma, 1)
