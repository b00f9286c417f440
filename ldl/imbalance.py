"""How common the values of a training set are, and weights that make the rare ones count."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter1d

from ldl.errors import LDLError


def label_density(values: np.ndarray, width: float = 1.0, sigma: float = 0.0) -> np.ndarray:
    """How many training values are near each value, (n,) of float, at least 0.

    Label distribution smoothing (LDS) of Yang et al., "Delving into deep imbalanced regression", ICML 2021: the
    histogram of the values, smoothed by a Gaussian and mirrored at its ends, so that no mass is lost there.

    Args:
        values: (n,) training values, finite.
        width: Width of the histogram's bins, in the values' unit.
        sigma: Standard deviation of the Gaussian, in the values' unit; 0 smooths nothing.

    Raises:
        LDLError: no values or one that is not finite, ``width`` not positive, or ``sigma`` negative.
    """
    values = np.asarray(values, np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise LDLError(
            f"label_density needs a row of finite values, got shape {values.shape}; remove what is not finite"
        )
    if not width > 0 or not sigma >= 0:
        raise LDLError(f"width {width!r} must be positive and sigma {sigma!r} at least 0, in the values' unit")
    bins = np.floor((values - values.min()) / width + 0.5).astype(int)
    counts = np.bincount(bins).astype(np.float64)
    # A narrower Gaussian reaches no other bin, and a very narrow one divides by zero.
    smooth = sigma / width >= 0.125
    return (gaussian_filter1d(counts, sigma / width, mode="reflect") if smooth else counts)[bins]


def inverse_density_weights(
    values: np.ndarray, width: float = 1.0, sigma: float = 0.0, power: float = 1.0
) -> np.ndarray:
    """Weights that fall with the density of a value, (n,), positive, with mean 1.

    Args:
        values: (n,) training values, finite.
        width: See :func:`label_density`.
        sigma: See :func:`label_density`; 0 gives inverse frequencies, more gives LDS.
        power: Exponent of the density: 1 for its inverse, 0.5 for the inverse of its root, 0 for equal weights.

    Raises:
        LDLError: see :func:`label_density`, or ``power`` negative.
    """
    if not power >= 0:
        raise LDLError(f"power {power!r} must be at least 0")
    weights = label_density(values, width, sigma) ** -power
    return weights / weights.mean()
