"""Votes: rings and edges of segmentations against loops over their pixels."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.edge_images import random_forest

from ldl.edges.structured.channels import sum_up
from ldl.edges.structured.voting import outlines_of, rings_of, vote


def edges_by_loops(segments: np.ndarray) -> np.ndarray:
    segments = segments.reshape(16, 16)
    edges = np.zeros((16, 16), bool)
    for y in range(16):
        for x in range(16):
            for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                if 0 <= y + dy < 16 and 0 <= x + dx < 16 and segments[y, x] != segments[y + dy, x + dx]:
                    edges[y, x] = True
    return edges


def test_rings_grow_from_the_edges() -> None:
    forest = random_forest()
    rings = rings_of(forest.segments, 3)
    for leaf, segments in enumerate(forest.segments):
        reached = edges_by_loops(segments)
        parts = [rings.pixels[rings.start[leaf, r] : rings.start[leaf, r + 1]] for r in range(3)]
        np.testing.assert_array_equal(np.sort(parts[0]), np.flatnonzero(reached))
        for ring in parts[1:]:
            wider = reached.copy()
            wider[1:] |= reached[:-1]
            wider[:-1] |= reached[1:]
            wider[:, 1:] |= reached[:, :-1]
            wider[:, :-1] |= reached[:, 1:]
            np.testing.assert_array_equal(np.sort(ring), np.flatnonzero(wider & ~reached))
            reached = wider


@pytest.mark.parametrize("sharpen", [0, 2])
def test_votes_are_the_edges_of_the_leaves(sharpen: int) -> None:
    forest = random_forest()
    rings, outlines = rings_of(forest.segments, max(sharpen, 1)), outlines_of(forest.segments, max(sharpen, 1))
    random = np.random.default_rng(1)
    leaves = random.integers(0, len(forest.segments), (5, 7, 4)).astype(np.int32)
    weights = random.normal(size=leaves.shape).astype(np.float32)
    weights[0] = 0
    planes = random.random((3, 60, 60)).astype(np.float32)
    colour = planes.transpose(1, 2, 0)
    votes = np.zeros((60, 60), np.float32)
    for low, high in ((0, 21), (21, 60)):
        vote(leaves, weights, outlines, planes, sum_up(planes), sharpen, votes, low, high)
    wanted = np.zeros((60, 60))
    for index, leaf in np.ndenumerate(leaves):
        row, column, _ = index
        local = forest.segments[leaf].reshape(16, 16).copy()
        window = np.s_[2 * row + 8 : 2 * row + 24, 2 * column + 8 : 2 * column + 24]
        means = [colour[window][local == s].astype(np.float64).mean(0) for s in range(local.max() + 1)]
        for p in rings.pixels[rings.start[leaf, 0] : rings.start[leaf, sharpen]]:
            y, x = divmod(int(p), 16)
            near = [(y, x), (y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
            candidates = [local[pixel] for pixel in near if min(pixel) >= 0 and max(pixel) < 16]
            local[y, x] = min(candidates, key=lambda s: ((means[s] - colour[window][y, x]) ** 2).sum())
        wanted[window] += weights[index] * edges_by_loops(local)
    np.testing.assert_allclose(votes, wanted, atol=1e-5)
