"""Rotated and resized crops: pixels, lines and votes stay where they belong; what is learned of the votes."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.data.edges.crops import Crops
from ldl.data.edges.votes import learned, vote_share

SHAPE = (60, 80)


def crops(**changed: object) -> Crops:
    return Crops(32, "votes", True, False, None)._replace(**changed)


def lines(rng: np.random.Generator, annotators: int = 3) -> np.ndarray:
    """A few straight lines, one pixel thick, of each annotator."""
    drawn = np.zeros((annotators, *SHAPE), bool)
    for single in drawn:
        for _ in range(3):
            ends = rng.uniform(0, SHAPE, (2, 2))
            y, x = np.linspace(*ends, 200).astype(int).T
            single[y, x] = True
    return drawn


def places() -> np.ndarray:
    """An image whose first two channels say where each pixel is, 3 levels a pixel."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    return np.stack([3 * x, 3 * y, np.zeros_like(x)], -1).astype(np.uint8)


@pytest.mark.parametrize("seed", range(4))
def test_right_angles_give_the_pixels_themselves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    image, drawn = rng.integers(0, 256, (*SHAPE, 3), dtype=np.uint8), lines(rng)
    share = vote_share(drawn, 1.0)
    picture, target, keep = crops(rotations=4).take(image, share, drawn, 1.0, rng)
    both = np.concatenate([image, (255 * share).astype(np.uint8)[..., None]], -1)
    found = np.concatenate([picture, (255 * target).astype(np.uint8)[..., None]], -1)
    windows = np.lib.stride_tricks.sliding_window_view(both, (32, 32, 4))
    turned = [np.rot90(flipped, quarters) for flipped in (found, found[:, ::-1]) for quarters in range(4)]
    assert any((windows == one).all((-3, -2, -1)).any() for one in turned) and keep.all()


@pytest.mark.parametrize(("sizes", "reach"), [((1.0, 1.0), 1.0), ((0.7, 1.6), 2.0), ((1.5, 1.5), 0.0)])
def test_votes_lie_where_the_lines_do(sizes: tuple[float, float], reach: float) -> None:
    """Each pixel's place in the image, read off its colour, against the distances to all drawn pixels."""
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
            # Half a pixel of the image is what rounded colours and the distance between two drawn pixels leave open.
            share += [away <= max(reach, 0.5) - 0.5 * size, away <= max(reach, 0.5) + 0.5 * size]
        at_least, at_most = share / len(drawn)
        assert (target >= at_least - 1e-6).all() and (target <= at_most + 1e-6).all()
        assert target.any()


def test_lines_stay_as_thin_and_whole_as_they_were_drawn() -> None:
    """Against the exact distance to a straight line, also where a resized one would break or thicken."""
    drawn, size, found = np.zeros((1, *SHAPE), bool), 1.5, 0
    drawn[0, :, 40] = True
    for seed in range(16):
        rng = np.random.default_rng(seed)
        picture, target, _ = crops(rotations=16, sizes=(size, size)).take(places(), np.empty(SHAPE), drawn, 1.0, rng)
        away = size * abs(picture[..., 0] / 3 - 40)
        assert target[away <= 0.7].all() and not target[away >= 1.3].any()
        found += int((away <= 0.7).sum())
    assert found > 100


def test_one_annotator_a_draw_is_the_votes_on_average() -> None:
    rng = np.random.default_rng(0)
    drawn = lines(rng, 4)
    drawn[1:, :, :40] = False
    for rotations in (1, 4):
        still = crops(side=60, flips=False, target="sampled", rotations=rotations)
        many = [still.take(places(), vote_share(drawn, 1.0), drawn, 1.0, rng) for _ in range(200)]
        assert all(set(np.unique(target)) <= {0.0, 1.0} for _, target, _ in many)
        windows = np.lib.stride_tricks.sliding_window_view(vote_share(drawn, 1.0), (60, 60))
        assert np.mean([target for _, target, _ in many]) == pytest.approx(windows.mean(), rel=0.1)


def test_blended_is_the_mean_of_both_losses() -> None:
    """By their gradients at a prediction p: of a pixel that is learned from, p - target."""
    rng = np.random.default_rng(0)
    share = rng.choice([0, 0.2, 0.4, 0.5, 0.8, 1], (400, 500)).astype(np.float32)
    gradient = {}
    for name in ("votes", "consensus", "blended"):
        target, keep = learned(share, name, None, rng)
        gradient[name] = keep * (0.3 - target)
    for value in np.unique(share):
        votes, consensus, blended = (part[share == value].mean() for part in gradient.values())
        assert blended == pytest.approx((votes + consensus) / 2, abs=2e-3)
