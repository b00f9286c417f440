"""Imbalanced values: how common each is, weights that make the rare ones count, and imbalance made on purpose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import brentq

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


def bell_subset(values: np.ndarray, removed: float, seed: int | Sequence[int] = 0, centre: float = 0.0) -> np.ndarray:
    """Rows that stay when a share is removed at random so that the values left are spread like a Gaussian.

    Of every value y at most M exp(-(y - centre)^2 / 2 w^2) rows stay, where M is the number of rows of the most common
    value; w is what leaves the wanted number. It simulates natural imbalance, as in the head pose experiment of Huang,
    Loy & Tang 2016, who do not say how wide their Gaussian is.

    Args:
        values: (n,), of which many are equal, such as the angles of a grid.
        removed: Share that is removed, in [0, 1).
        seed: Of the draw.
        centre: Value that stays whole; the nearest one where it is not there.

    Returns:
        Rising row numbers, round((1 - removed) n) of them.

    Raises:
        LDLError: ``removed`` out of its range, or more than all values but the centre.
    """
    if not 0 <= removed < 1:
        raise LDLError(f"removed {removed!r} must be in [0, 1), a share")
    labels, member, counts = np.unique(values, return_inverse=True, return_counts=True)
    squared = (labels - centre) ** 2
    squared -= squared.min()
    kept = round((1 - removed) * len(member))
    if kept == len(member):
        return np.arange(kept)
    if kept < (least := counts[squared == 0].sum()):
        most = 1 - least / len(member)
        raise LDLError(f"removed {removed:g} leaves no bell: at most {most:.3f}, all values but {centre:g}, can go")

    def quotas(log_width: float) -> np.ndarray:
        return np.minimum(counts, counts.max() * np.exp(-squared / (2 * np.exp(2 * log_width))))

    narrow, wide = 0.5 * np.log(squared[squared > 0].min() / 2000), 0.5 * np.log(squared.max() * 1e8)
    width = brentq(lambda log_width: quotas(log_width).sum() - kept, narrow, wide, xtol=1e-12)
    # Rounding the running sum keeps the total, and no value gets more than it has: sums that differ by a whole number,
    # but for the last bits, must be rounded alike.
    sizes = np.diff(np.floor(np.cumsum(quotas(width)).round(9) + 0.5), prepend=0.0).astype(int)
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(np.flatnonzero(member == label))[:size] for label, size in enumerate(sizes)]
    return np.sort(np.concatenate(chosen))
