"""Random crops: picture and votes move together, and targets of votes."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.edges.crops import EdgeCrops, learned, vote_share

SHAPE = (60, 80)


def test_tolerance_widens_the_line_of_each_annotator() -> None:
    drawn = np.zeros((2, 9, 9), bool)
    drawn[0, 4], drawn[1, 5] = True, True
    lines = [vote_share(drawn, tolerance)[:, 4].tolist() for tolerance in (0, 1, 2)]
    assert lines[0] == [0, 0, 0, 0, 0.5, 0.5, 0, 0, 0]
    assert lines[1] == [0, 0, 0, 0.5, 1, 1, 0.5, 0, 0]
    assert lines[2] == [0, 0, 0.5, 1, 1, 1, 1, 0.5, 0]


def crops(**changed: object) -> EdgeCrops:
    return EdgeCrops(32, "votes", True, False, None)._replace(**changed)


def lines(rng: np.random.Generator, annotators: int = 3) -> np.ndarray:
    """Return a few straight lines, one pixel thick, of each annotator."""
    drawn = np.zeros((annotators, *SHAPE), bool)
    for single in drawn:
        for _ in range(3):
            ends = rng.uniform(0, SHAPE, (2, 2))
            y, x = np.linspace(*ends, 200).astype(int).T
            single[y, x] = True
    return drawn


def places() -> np.ndarray:
    """Return an image whose first two channels are the position of each pixel, 3 levels per pixel."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    return np.stack([3 * x, 3 * y, np.zeros_like(x)], -1).astype(np.uint8)


@pytest.mark.parametrize("seed", range(2))
def test_right_angles_give_the_pixels_themselves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    image, drawn = rng.integers(0, 256, (*SHAPE, 3), dtype=np.uint8), lines(rng)
    share = vote_share(drawn, 1.0)
    picture, target, keep = crops(rotations=4).take(image, share, drawn, 1.0, rng)
    both = np.concatenate([image, (255 * share).astype(np.uint8)[..., None]], -1)
    crop = np.concatenate([picture, (255 * target).astype(np.uint8)[..., None]], -1)
    windows = np.lib.stride_tricks.sliding_window_view(both, (32, 32, 4))
    turned = [np.rot90(flipped, quarters) for flipped in (crop, crop[:, ::-1]) for quarters in range(4)]
    assert any((windows == one).all((-3, -2, -1)).any() for one in turned) and keep.all()


@pytest.mark.parametrize(("sizes", "reach"), [((1.0, 1.0), 1.0), ((0.7, 1.6), 2.0), ((1.5, 1.5), 0.0)])
def test_votes_lie_where_the_lines_do(sizes: tuple[float, float], reach: float) -> None:
    """Compare each pixel's position in the image, given by its colour, with the distances to all drawn pixels."""
    rng = np.random.default_rng(1)
    for _ in range(6):
        drawn = lines(rng)
        picture, target, _ = crops(rotations=16, sizes=sizes).take(places(), np.empty(SHAPE), drawn, reach, rng)
        x, y = np.moveaxis(picture[..., :2].astype(float) / 3, -1, 0)
        right, down = (np.array([axis[end] - axis[0, 0] for axis in (x, y)]) for end in ((0, -1), (-1, 0)))
        # No shear: a rotation keeps right angles, and lengths.
        assert abs(right @ down) < 0.05 * (right @ right) and right @ right == pytest.approx(down @ down, rel=0.08)
        size = 31 / np.hypot(*right)
        assert sizes[0] - 0.05 < size < max(sizes[1], 32 * 2**0.5 / min(SHAPE)) + 0.05
        share = np.zeros((2, 32, 32))
        for single in drawn:
            at_y, at_x = np.nonzero(single)
            away = size * np.hypot(y[..., None] - at_y, x[..., None] - at_x).min(-1)
            # Rounded colours and the distance between two drawn pixels leave half a pixel of tolerance.
            share += [away <= max(reach, 0.5) - 0.5 * size, away <= max(reach, 0.5) + 0.5 * size]
        at_least, at_most = share / len(drawn)
        assert (target >= at_least - 1e-6).all() and (target <= at_most + 1e-6).all()
        assert target.any()


def test_blended_is_the_mean_of_both_losses() -> None:
    """Compare gradients at a prediction p: p - target for a pixel to learn from."""
    rng = np.random.default_rng(0)
    share = rng.choice([0, 0.2, 0.4, 0.5, 0.8, 1], (400, 500)).astype(np.float32)
    gradient = {}
    for name in ("votes", "consensus", "blended"):
        target, keep = learned(share, name, None, rng)
        gradient[name] = keep * (0.3 - target)
    for value in np.unique(share):
        votes, consensus, blended = (gradients[share == value].mean() for gradients in gradient.values())
        assert blended == pytest.approx((votes + consensus) / 2, abs=2e-3)
