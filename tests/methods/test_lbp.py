"""Histograms of local binary patterns and their mirror images."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.methods.lbp import mirrored_bins


def changes(code: int, neighbours: int) -> int:
    """How often bits differ around the circle."""
    bits = [code >> bit & 1 for bit in range(neighbours)]
    return sum(bits[bit] != bits[bit - 1] for bit in range(neighbours))


def histogram(picture: np.ndarray, neighbours: int, radius: float) -> np.ndarray:
    """Pixel by pixel and neighbour by neighbour, as it is published."""
    uniform = [code for code in range(2**neighbours) if changes(code, neighbours) <= 2]
    places = {code: place for place, code in enumerate(uniform)}
    counts = np.zeros(len(uniform) + 1)
    edge = int(np.ceil(radius))
    for y in range(edge, len(picture) - edge):
        for x in range(edge, picture.shape[1] - edge):
            code = 0
            for bit in range(neighbours):
                angle = 2 * np.pi * bit / neighbours
                # Rows count downwards, angles against the clock.
                code |= (
                    int(between(picture, y - radius * np.sin(angle), x + radius * np.cos(angle)) > picture[y, x]) << bit
                )
            counts[places.get(code, len(uniform))] += 1
    return counts


def between(picture: np.ndarray, y: float, x: float) -> float:
    y, x = round(y, 9), round(x, 9)
    top, left = int(np.floor(y)), int(np.floor(x))
    down, right = y - top, x - left
    rows = [top, min(top + 1, len(picture) - 1)]
    columns = [left, min(left + 1, picture.shape[1] - 1)]
    return float(np.array([1 - down, down]) @ picture[np.ix_(rows, columns)] @ np.array([1 - right, right]))


@pytest.mark.parametrize(("neighbours", "radius", "bins"), [(4, 1, 15), (8, 1, 59)])
def test_it_is_the_histogram_of_the_mirrored_picture(neighbours: int, radius: float, bins: int) -> None:
    random = np.random.default_rng(neighbours)
    rows = np.arange(30)[:, None] + 2 * np.arange(24) / 3
    picture = np.sin(rows / 3) + 0.4 * random.random((30, 24))
    places = mirrored_bins(bins)
    plain, mirrored = (histogram(each, neighbours, radius) for each in (picture, picture[:, ::-1]))
    np.testing.assert_array_equal(mirrored, plain[places])
    assert plain.sum() == mirrored.sum() and np.abs(mirrored - plain).sum() > 0.2 * plain.sum()


@pytest.mark.parametrize("neighbours", [2, 8, 16, 62])
def test_twice_mirrored_every_bin_is_where_it_was(neighbours: int) -> None:
    places = mirrored_bins(neighbours * (neighbours - 1) + 3)
    every = np.arange(len(places))
    np.testing.assert_array_equal(places[places], every)
    # Darkest, brightest, the rest, and two runs, above and below, of every length that has a middle there.
    lengths = len(range(1 if neighbours % 4 == 0 else 2, neighbours, 2))
    assert (places == every).sum() == 3 + 2 * lengths
    assert list(places[[0, -2, -1]]) == list(every[[0, -2, -1]])


@pytest.mark.parametrize("bins", [0, 9, 58, 60, 64 * 63 + 3])
def test_other_histograms_are_refused(bins: int) -> None:
    with pytest.raises(LDLError, match=rf"^{bins} features are no histogram .* 59 for 8 and 243 for 16"):
        mirrored_bins(bins)
