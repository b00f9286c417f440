"""Non-maximum suppression and thinning against plain references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates

from ldl.edges.benchmark.thinning import SMOOTHING, TOLERANCE, normals, suppress, thin
from ldl.edges.structured.channels import blur


def ridge(angle: float, size: int = 61) -> np.ndarray:
    """Return a straight soft line through the middle, whose normal has this angle to the x axis."""
    y, x = np.indices((size, size)) - size // 2
    return np.exp(-((x * np.cos(angle) + y * np.sin(angle)) ** 2) / 8).astype(np.float32)


@pytest.mark.parametrize("degrees", [0, 20, 135])
def test_a_line_becomes_thin_and_its_normal_is_found(degrees: int) -> None:
    angle = np.deg2rad(degrees)
    edges = ridge(angle)
    normal = normals(edges)[:, 30, 30]
    assert normal @ normal == pytest.approx(1, abs=1e-6)
    assert abs(normal[1] * np.cos(angle) - normal[0] * np.sin(angle)) < 0.02
    thin = suppress(edges, border=0)
    y, x = np.indices(edges.shape) - 30
    away = np.abs(x * np.cos(angle) + y * np.sin(angle))
    inside = np.maximum(np.abs(x), np.abs(y)) < 24
    assert away[(thin > 0.05) & inside].max() <= 1
    assert thin[30, 30] == edges[30, 30]
    along = np.arange(-20, 21)
    on_line = np.rint([30 + along * np.cos(angle), 30 - along * np.sin(angle)]).astype(int)
    assert (thin[on_line[0], on_line[1]] > 0).mean() > 0.9


@pytest.mark.parametrize("smoothing", [SMOOTHING, 1])
def test_normals_are_where_the_map_curves_most(smoothing: int) -> None:
    edges = gaussian_filter(np.random.default_rng(1).random((25, 31)), 2).astype(np.float32)
    smooth = blur(edges[None], smoothing)[0].astype(np.float64)
    dy, dx = np.gradient(smooth)
    (dyy, dyx), dxx = np.gradient(dy), np.gradient(dx)[1]
    hessian = np.stack([np.stack([dxx, dyx], -1), np.stack([dyx, dyy], -1)], -1)
    values, axes = np.linalg.eigh(hessian)
    largest = np.abs(values).argmax(-1)[..., None, None]
    wanted = np.take_along_axis(axes, largest, -1)[..., 0]
    clear = np.abs(np.abs(values[..., 0]) - np.abs(values[..., 1])) > 1e-5
    dx, dy = normals(edges, smoothing)
    sine = dx * wanted[..., 1] - dy * wanted[..., 0]
    assert clear.mean() > 0.8 and np.abs(sine[clear]).max() < 0.02


@pytest.mark.parametrize("smoothing", [SMOOTHING, 0])
def test_pixels_are_compared_across_the_edge(smoothing: int) -> None:
    edges = gaussian_filter(np.random.default_rng(0).random((30, 40)), 1.5).astype(np.float32)
    dx, dy = normals(edges, smoothing).astype(np.float64)
    y, x = np.indices(edges.shape)
    across = [
        map_coordinates(edges.astype(np.float64), [y + s * dy, x + s * dx], order=1, mode="nearest") for s in (-1, 1)
    ]
    margin = edges * TOLERANCE - np.maximum(*across)
    thin = suppress(edges, border=0, smoothing=smoothing)
    clear = np.abs(margin) > 1e-5
    np.testing.assert_array_equal((thin > 0)[clear], (margin > 0)[clear])
    np.testing.assert_array_equal(thin[thin > 0], edges[thin > 0])


def test_the_frame_is_lowered() -> None:
    edges = np.ones((20, 30), np.float32)
    thin = suppress(edges)
    np.testing.assert_allclose(thin[10], np.minimum(np.minimum(np.arange(30), np.arange(30)[::-1]) / 5, 1))
    np.testing.assert_allclose(thin[:, 15], np.minimum(np.minimum(np.arange(20), np.arange(20)[::-1]) / 5, 1))
    assert suppress(edges, border=0).min() == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2)])
def test_tiny_maps(shape: tuple[int, int]) -> None:
    assert suppress(np.ones(shape), border=0).min() == 1
    assert suppress(np.zeros(shape)).max() == 0


def reference_thin(mask: np.ndarray) -> np.ndarray:
    """Thin pixel by pixel (Guo & Hall 1989): both halves of a pass, until a pass removes nothing."""
    image = np.pad(mask, 1).astype(int)
    while True:
        before = image.copy()
        for half in range(2):
            removed = np.zeros_like(image)
            for y, x in np.argwhere(image):
                p2, p3, p4, p5 = image[y - 1, x], image[y - 1, x + 1], image[y, x + 1], image[y + 1, x + 1]
                p6, p7, p8, p9 = image[y + 1, x], image[y + 1, x - 1], image[y, x - 1], image[y - 1, x - 1]
                crossings = (
                    ((1 - p2) & (p3 | p4)) + ((1 - p4) & (p5 | p6)) + ((1 - p6) & (p7 | p8)) + ((1 - p8) & (p9 | p2))
                )
                first = (p9 | p2) + (p3 | p4) + (p5 | p6) + (p7 | p8)
                pairs = min(first, (p2 | p3) + (p4 | p5) + (p6 | p7) + (p8 | p9))
                blocked = (p2 | p3 | (1 - p5)) & p4 if half == 0 else (p6 | p7 | (1 - p9)) & p8
                removed[y, x] = crossings == 1 and 2 <= pairs <= 3 and not blocked
            image &= 1 - removed
        if (image == before).all():
            return image[1:-1, 1:-1].astype(bool)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_thinning_is_guo_and_halls(share: float) -> None:
    rng = np.random.default_rng(int(100 * share))
    for _ in range(2):
        mask = rng.random((17, 23)) < share
        np.testing.assert_array_equal(thin(mask), reference_thin(mask))
        np.testing.assert_array_equal(thin(np.asfortranarray(mask)), reference_thin(mask))
