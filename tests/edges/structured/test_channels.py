"""Channels and features of patches, against loops in float64."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.edge_images import picture

from ldl.edges.structured.channels import (
    CHANNELS,
    PATCH_FEATURES,
    POINTS,
    VALUES,
    blur,
    feature_maps,
    feature_places,
    in_bands,
    luv,
    make_channels,
    sum_up,
)


def luv_by_formulas(image: np.ndarray) -> np.ndarray:
    """Convert (H, W, 3) in 0..255 to (3, H, W) float64."""
    matrix = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
    x, y, z = matrix @ (image.reshape(-1, 3).T / 255)
    light = np.where(y > (6 / 29) ** 3, 1.16 * np.cbrt(y) - 0.16, (29 / 3) ** 3 / 100 * y)
    chromatic = []
    for xyz in ((x, y, z), matrix.sum(1)):
        total = np.maximum(xyz[0] + 15 * xyz[1] + 3 * xyz[2], 1e-12)
        chromatic.append((4 * xyz[0] / total, 9 * xyz[1] / total))
    (u, v), (white_u, white_v) = chromatic
    return np.stack([light, 13 * light * (u - white_u), 13 * light * (v - white_v)]).reshape(3, *image.shape[:2])


def blur_by_loops(values: np.ndarray, radius: int) -> np.ndarray:
    kernel = np.array([radius + 1 - abs(k) for k in range(-radius, radius + 1)], np.float64) / (radius + 1) ** 2
    height, width = values.shape
    result = np.zeros((height, width))
    for y in range(height):
        for x in range(width):
            for dy in range(-radius, radius + 1):
                for dx in range(-radius, radius + 1):
                    near = values[min(max(y + dy, 0), height - 1), min(max(x + dx, 0), width - 1)]
                    result[y, x] += kernel[dy + radius] * kernel[dx + radius] * near
    return result


def gradients_by_loops(colour: np.ndarray, floor: float = 0.01) -> np.ndarray:
    _, height, width = colour.shape
    gradients = np.zeros((2, height, width))
    for y in range(height):
        for x in range(width):
            across = (colour[:, y, min(x + 1, width - 1)] - colour[:, y, max(x - 1, 0)]) / 2
            down = (colour[:, min(y + 1, height - 1), x] - colour[:, max(y - 1, 0), x]) / 2
            strongest = np.argmax(across**2 + down**2)
            gradients[:, y, x] = np.hypot(across, down)[strongest], np.arctan2(down, across)[strongest] % np.pi
    magnitude = gradients[0] / (blur_by_loops(gradients[0], 4) + floor)
    result = np.zeros((5, height, width))
    result[0] = magnitude
    for y in range(height):
        for x in range(width):
            orientation = gradients[1, y, x] / (np.pi / 4)
            low = int(orientation)
            result[1 + low % 4, y, x] += magnitude[y, x] * (low + 1 - orientation)
            result[1 + (low + 1) % 4, y, x] += magnitude[y, x] * (orientation - low)
    return result


def halve(values: np.ndarray) -> np.ndarray:
    return (values[:, ::2, ::2] + values[:, 1::2, ::2] + values[:, ::2, 1::2] + values[:, 1::2, 1::2]) / 4


@pytest.mark.parametrize("radius", [0, 2])
def test_blur(radius: int) -> None:
    values = np.random.default_rng(radius).random((2, 7, 11))
    for one, blurred in zip(values, blur(values, radius)):
        np.testing.assert_allclose(blurred, blur_by_loops(one, radius), atol=1e-6)


def test_channels_and_maps() -> None:
    image = picture(12, 20)
    colour = luv_by_formulas(image)
    converted = luv(image)
    np.testing.assert_allclose(converted, colour, atol=2e-6)
    fine, coarse = gradients_by_loops(colour), gradients_by_loops(halve(colour))
    wanted = np.concatenate([halve(colour), halve(fine), coarse])
    channels = make_channels(converted)
    assert channels.shape == (CHANNELS, 6, 10) and channels.dtype == np.float32
    np.testing.assert_allclose(channels, wanted, atol=1e-5)
    np.testing.assert_allclose(
        make_channels(converted, floor=0.1)[8:], gradients_by_loops(halve(colour), 0.1), atol=1e-5
    )
    maps = np.stack([blur_by_loops(channel, radius) for radius in (1, 4) for channel in wanted])
    np.testing.assert_allclose(feature_maps(image), maps, atol=1e-5)
    np.testing.assert_allclose(sum_up(converted)[3, 4], converted[:, :3, :4].astype(np.float64).sum((1, 2)), rtol=1e-12)


def test_threads_change_no_bit_of_the_maps() -> None:
    image = picture(28, 36, seed=1)
    with in_bands(3) as bands:
        np.testing.assert_array_equal(feature_maps(image, bands), feature_maps(image))


def test_luv_of_known_colours() -> None:
    # Lindbloom's calculator, sRGB primaries taken as linear (gamma 1), D65: L, u, v.
    colours = np.array([[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 0, 255]], np.uint8)
    wanted = [[100, 0, 0], [0, 0, 0], [53.24, 175.01, 37.75], [32.30, -9.40, -130.34]]
    converted = luv(colours[None])[:, 0].T * 100
    np.testing.assert_allclose(converted, wanted, atol=0.06)


def test_features_are_values_and_differences_of_a_patch() -> None:
    places = feature_places()
    assert PATCH_FEATURES == 7228 == len(places.map)
    assert VALUES == 3328
    assert len(POINTS) == 5
    assert min(POINTS) == 15 - max(POINTS)
    assert set(map(tuple, places.second[:VALUES])) == {(-1, -1)}
    values = {(c, y, x) for c, (y, x) in zip(places.map[:VALUES], map(tuple, places.first[:VALUES]))}
    assert values == {(c, y, x) for c in range(13) for y in range(16) for x in range(16)}
    pairs = [
        (c, frozenset([tuple(a), tuple(b)]))
        for c, a, b in zip(places.map[VALUES:], places.first[VALUES:].tolist(), places.second[VALUES:].tolist())
    ]
    assert len(set(pairs)) == 13 * 300
    assert all(len(pair) == 2 and {y for y, _ in pair} <= set(POINTS) for _, pair in pairs)
    assert {c for c, _ in pairs} == set(range(13, 26))
