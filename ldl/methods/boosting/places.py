"""Where in a picture the positive instance of a bag lies."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax


def locate(maps: np.ndarray) -> np.ndarray:
    """Expected row and column, (n, 2), of the positive window, from h of all windows (n, rows, columns).

    If windows are positive independently, with odds exp(2 h), and it is known that one alone is, their odds are in
    proportion to the probabilities that it is this one (the model of ISR). The mean place under them has the least
    expected squared error; it lies between windows, and between peaks where there are several.
    """
    share = softmax(2 * maps, axis=(1, 2))
    return np.stack([share.sum(2) @ np.arange(maps.shape[1]), share.sum(1) @ np.arange(maps.shape[2])], 1)
