"""Detection: leaves against a plain reference, and the properties of an edge map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.edge_images import random_forest

from ldl.edges.structured.channels import feature_maps, feature_places
from ldl.edges.structured.detector import EdgeDetector
from ldl.edges.structured.forest import EdgeForest


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
