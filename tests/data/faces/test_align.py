"""Alignment of faces: the similarity transform against a least-squares solver, and where crops put what they show."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.data.faces.align import BOX_CORNERS, FACE_POINTS, crop, placement, similarity
from ldl.errors import LDLError

SEEDS = range(20)


def _least_squares(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Solves for (a, b, x, y) of the rows a x - b y + x = u, b x + a y + y = v."""
    ones, zeros = np.ones(len(source)), np.zeros(len(source))
    x, y = source.T
    rows = np.concatenate([np.stack([x, -y, ones, zeros], 1), np.stack([y, x, zeros, ones], 1)])
    a, b, shift_x, shift_y = np.linalg.lstsq(rows, target.T.ravel(), rcond=None)[0]
    return np.array([[a, -b, shift_x], [b, a, shift_y]])


def _moved(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    turn, scale, shift = rng.uniform(-1, 1), rng.uniform(20, 90), rng.uniform(40, 90, 2)
    matrix = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return points @ matrix.T + shift


@pytest.mark.parametrize("seed", SEEDS)
def test_similarity_is_the_least_squares_solution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, target = rng.normal(size=(2, rng.integers(2, 9), 2))
    np.testing.assert_allclose(similarity(source, target), _least_squares(source, target), atol=1e-9)


@pytest.mark.parametrize("points", [np.ones((5, 2)), np.full((4, 2), np.nan)], ids=["one place", "nan"])
def test_points_that_place_no_face_are_refused(points: np.ndarray) -> None:
    with pytest.raises(LDLError, match="do not place a face"):
        placement(points, 50, 50, 32, None)


def test_another_number_of_points_is_refused() -> None:
    with pytest.raises(LDLError, match=r"5 landmarks or 4 corners of a box, got points of shape \(6, 2\)"):
        placement(np.zeros((6, 2)), 50, 50, 32, None)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("margin", [0.0, 0.2, 0.5])
def test_every_pose_of_a_face_gives_the_same_places(seed: int, margin: float) -> None:
    rng = np.random.default_rng(seed)
    for points in (FACE_POINTS, BOX_CORNERS):
        anchor = _moved(points, rng)
        matrix = placement(anchor, 200, 200, 64, margin)
        expected = 64 * (margin + points) / (1 + 2 * margin) - 0.5
        np.testing.assert_allclose(anchor @ matrix[:, :2].T + matrix[:, 2], expected, atol=1e-6)


def test_default_margin_is_for_landmarks_alone() -> None:
    for points, margin in ((FACE_POINTS, 0.2), (BOX_CORNERS, 0.0)):
        anchor = 50 * points
        np.testing.assert_array_equal(placement(anchor, 60, 60, 32, None), placement(anchor, 60, 60, 32, margin))


@pytest.mark.parametrize("scale", [0.7, 1.0, 3.3, 8.0])
def test_a_turned_face_is_cropped_upright_at_any_size(scale: float) -> None:
    """A dot on each landmark lands where the template has that landmark, also when the picture is shrunk first."""
    rng = np.random.default_rng(1)
    anchor = _moved(FACE_POINTS, rng) * scale + 20 * scale
    side = int(anchor.max() + 40 * scale)
    y, x = np.mgrid[:side, :side]
    width = 2.5 * scale
    picture = np.zeros((side, side, 3), np.uint8)
    for u, v in anchor:
        picture[(x - u) ** 2 + (y - v) ** 2 < width**2] = 255
    face = crop(picture, anchor, 64, 0.2)[:, :, 0].astype(float)
    rows, columns = np.mgrid[:64, :64]
    for u, v in 64 * (0.2 + FACE_POINTS) / 1.4 - 0.5:
        near = face * ((columns - u) ** 2 + (rows - v) ** 2 < 6**2)
        assert near.sum() > 0
        assert (near * columns).sum() / near.sum() == pytest.approx(u, abs=0.35)
        assert (near * rows).sum() / near.sum() == pytest.approx(v, abs=0.35)


def test_fine_texture_of_a_large_picture_becomes_its_mean() -> None:
    board = np.indices((800, 800)).sum(0) % 2 * 255
    face = crop(np.repeat(board[:, :, None], 3, 2).astype(np.uint8), None, 32, None)
    assert np.abs(face.astype(int) - 127).max() <= 2


def test_a_whole_picture_fits_and_its_border_goes_on() -> None:
    picture = np.zeros((40, 20, 3), np.uint8)
    picture[:, :10], picture[:, 10:] = (200, 0, 0), (0, 0, 200)
    face = crop(picture, None, 40, None)
    assert (face[:, :19] == (200, 0, 0)).all() and (face[:, 21:] == (0, 0, 200)).all()
    same = np.random.default_rng(0).integers(0, 255, (24, 24, 3)).astype(np.uint8)
    np.testing.assert_array_equal(crop(same, None, 24, None), same)
