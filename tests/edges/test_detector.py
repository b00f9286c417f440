"""Detection: leaves and votes against plain references, and the properties of an edge map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ldl.collective import Collective
from ldl.edges.structured.channels import FEATURES, feature_maps, feature_places, sum_up
from ldl.edges.structured.detector import EdgeDetector
from ldl.edges.structured.forest import EdgeForest, EdgeTree, join_edges
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


def random_forest(trees: int = 8, depth: int = 4, terms: int = 1, seed: int = 0) -> EdgeForest:
    """Full trees with random splits and blocky segmentations."""
    random = np.random.default_rng(seed)
    inner, leaves = 2**depth - 1, 2**depth
    grown = []
    for _ in range(trees):
        feature = np.full((inner + leaves, terms), -1, np.int32)
        feature[:inner] = random.integers(0, FEATURES, (inner, terms))
        threshold = np.where(random.random(inner) < 0.5, 0.1, 0.0)
        child = np.concatenate([2 * np.arange(inner) + 1, np.arange(leaves)]).astype(np.int32)
        blocks = random.integers(0, 3, (leaves, 3, 3))
        segments = np.kron(blocks, np.ones((6, 6), int))[:, :16, :16].reshape(leaves, 256)
        numbered = np.stack([np.unique(one, return_inverse=True)[1] for one in segments]).astype(np.uint8)
        threshold = np.concatenate([threshold, np.zeros(leaves)]).astype(np.float32)
        weight = np.ones((len(feature), terms), np.float32)
        if terms > 1:
            weight[:] = random.normal(size=weight.shape)
        grown.append(EdgeTree(feature, weight, threshold, child, numbered))
    return join_edges(grown, terms, None, torch.device("cpu"), Collective())


def detector(forest: EdgeForest, **options: Any) -> EdgeDetector:
    return EdgeDetector(forest, **{"votes": 4, "sharpen": 2, "scales": (1.0,), "gain": 2.0, **options})


def picture(height: int, width: int) -> np.ndarray:
    random = np.random.default_rng(height)
    blocks = random.integers(0, 256, (height // 12 + 1, width // 12 + 1, 3), dtype=np.uint8)
    return blocks.repeat(12, 0).repeat(12, 1)[:height, :width]


@pytest.mark.slow
@pytest.mark.parametrize("terms", [1, 5])
def test_leaves_are_those_that_the_features_lead_to(terms: int) -> None:
    forest, places = random_forest(terms=terms), feature_places()
    # Wider than a strip.
    maps = feature_maps(picture(44, 184))
    leaves = detector(forest).find_leaves(maps)
    assert leaves.shape == (7, 77, 4)
    for row in range(7):
        for column in range(77):
            for v in range(4):
                node = forest.roots[4 * ((row + column) % 2) + v]
                while forest.feature[node, 0] >= 0:
                    total = np.float32(0)
                    for f, weight in zip(forest.feature[node], forest.weight[node]):
                        plane = maps[places.map[f], row : row + 16, column : column + 16]
                        value = plane[tuple(places.first[f])]
                        if places.second[f, 0] >= 0:
                            value = value - plane[tuple(places.second[f])]
                        total += weight * value
                    node = forest.child[node] + int(total > forest.threshold[node])
                assert leaves[row, column, v] == forest.child[node]


def test_all_trees_vote_and_none_twice_at_a_place() -> None:
    leaves = detector(random_forest(8, depth=0), votes=4).find_leaves(np.zeros((26, 20, 20), np.float32))
    assert set(leaves.ravel()) == set(range(8))
    assert all(len(set(place)) == 4 for place in leaves.reshape(-1, 4))


def test_rings_grow_from_the_edges() -> None:
    forest = random_forest()
    rings = rings_of(forest.segments, 3)
    for leaf, segments in enumerate(forest.segments):
        reached = edges_by_loops(segments)
        parts = [rings.pixels[rings.start[leaf, r] : rings.start[leaf, r + 1]] for r in range(3)]
        np.testing.assert_array_equal(np.sort(parts[0]), np.flatnonzero(reached))
        for part in parts[1:]:
            wider = reached.copy()
            wider[1:] |= reached[:-1]
            wider[:-1] |= reached[1:]
            wider[:, 1:] |= reached[:, :-1]
            wider[:, :-1] |= reached[:, 1:]
            np.testing.assert_array_equal(np.sort(part), np.flatnonzero(wider & ~reached))
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
    for place, leaf in np.ndenumerate(leaves):
        row, column, _ = place
        local = forest.segments[leaf].reshape(16, 16).copy()
        window = np.s_[2 * row + 8 : 2 * row + 24, 2 * column + 8 : 2 * column + 24]
        means = [colour[window][local == s].astype(np.float64).mean(0) for s in range(local.max() + 1)]
        for p in rings.pixels[rings.start[leaf, 0] : rings.start[leaf, sharpen]]:
            y, x = divmod(int(p), 16)
            near = [(y, x), (y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
            candidates = [local[pixel] for pixel in near if min(pixel) >= 0 and max(pixel) < 16]
            local[y, x] = min(candidates, key=lambda s: ((means[s] - colour[window][y, x]) ** 2).sum())
        wanted[window] += weights[place] * edges_by_loops(local)
    np.testing.assert_allclose(votes, wanted, atol=1e-5)


def test_mirror_images_are_averaged() -> None:
    forest, image = random_forest(), picture(48, 60)
    whole = detector(forest, mirror=True, scales=(0.5, 1.0)).detect(image)
    plain = detector(forest, scales=(0.5, 1.0))
    two = [plain.detect(image), plain.detect(np.ascontiguousarray(image[:, ::-1]))[:, ::-1]]
    np.testing.assert_allclose(whole, np.mean(two, axis=0), atol=1e-6)
    assert np.abs(two[0] - two[1]).max() > 0.05


def test_every_pixel_has_equally_many_voters() -> None:
    segments = np.indices((16, 16)).sum(0).ravel() % 2  # every pixel is an edge
    leaf = np.full((1, 1), -1, np.int32), np.ones((1, 1), np.float32), np.zeros(1, np.float32), np.zeros(1, np.int32)
    forest = EdgeForest(np.zeros(1, np.int32), *leaf, segments[None].astype(np.uint8))
    plain = detector(forest, votes=1, sharpen=0, gain=0.5)
    for size in ((33, 47), (1, 1)):
        np.testing.assert_allclose(plain.detect(np.zeros((*size, 3), np.uint8)), 0.5, atol=1e-6)


def test_edges_of_an_image_and_its_sizes() -> None:
    edges = detector(random_forest(), scales=(0.5, 1.0, 2.0)).detect(picture(49, 66))
    assert edges.shape == (49, 66)
    assert edges.dtype == np.float32
    assert 0 <= edges.min() < edges.max() <= 1
    single = [detector(random_forest(), scales=(s,)).detect(picture(49, 66)) for s in (0.5, 1, 2)]
    np.testing.assert_allclose(edges, np.mean(single, axis=0), atol=1e-6)


def test_threads_change_no_bit() -> None:
    forest = random_forest()
    one, several = (detector(forest, threads=number).detect(picture(49, 66)) for number in (1, 90))
    np.testing.assert_array_equal(one, several)
