"""Patches: drawn from images, without specks, and binned by the edges of their bins."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.edge_images import picture

from ldl.edges.structured.channels import (
    PATCH_FEATURES,
    FeaturePlaces,
    feature_maps,
    feature_places,
)
from ldl.edges.structured.patches import bin_patches, drop_specks, make_bins, make_scene, sample_patches
from ldl.errors import LDLError


def test_codes_are_the_number_of_edges_below() -> None:
    maps = feature_maps(picture(64, 72))
    bins = make_bins([maps, maps[:, ::-1].copy()], seed=0, draws=3000)
    edges = bins.edges
    assert edges.shape == (26, 255)
    assert (np.diff(edges, axis=1) >= 0).all()
    random = np.random.default_rng(1)
    chosen = FeaturePlaces(*(column[random.choice(PATCH_FEATURES, 100, replace=False)] for column in feature_places()))
    cells = np.stack([random.integers(0, 17, 20), random.integers(0, 21, 20)], axis=1).astype(np.int32)
    codes = np.empty((100, 20), np.uint8)
    bin_patches(maps, chosen, bins, cells, codes)
    for f in range(100):
        for i, (row, column) in enumerate(cells):
            where, other = chosen.first[f] + (row, column), chosen.second[f] + (row, column)
            value = maps[chosen.map[f]][tuple(where)]
            if chosen.second[f, 0] >= 0:
                value = value - maps[chosen.map[f]][tuple(other)]
            assert codes[f, i] == np.sum(edges[chosen.map[f]] < value)
    # Quantiles: bins are about equally full.
    assert np.bincount(codes.ravel() // 64, minlength=4).min() > 0.1 * codes.size


def test_specks_go_to_the_nearest_segment() -> None:
    segments = np.zeros((16, 16), np.uint8)
    segments[:, 8:] = 1
    segments[0, :5] = 2
    segments[10:12, 12:15] = 3
    cleaned = drop_specks(segments.ravel()).reshape(16, 16)
    assert (cleaned[0, :5] == 0).all()
    assert len(np.unique(cleaned)) == 3
    assert cleaned.max() == 2
    assert (cleaned == cleaned[10, 12]).sum() == 6


def test_images_smaller_than_a_patch_are_named() -> None:
    drawn = np.zeros((1, 31, 40), np.int32)
    with pytest.raises(LDLError, match="patches of 32 x 32 pixels, and an image has 31 x 40; leave it out"):
        make_scene(np.zeros((31, 40, 3), np.uint8), drawn > 0, drawn)


def test_half_of_the_patches_lie_near_a_boundary_of_their_annotator() -> None:
    random = np.random.default_rng(0)
    segments = np.zeros((2, 96, 96), np.int32)
    segments[0, :, 50:] = 1
    segments[1, 30:, :] = 700
    boundaries = np.zeros((2, 96, 96), np.bool_)
    boundaries[0, :, 50] = boundaries[1, 30] = True
    image = random.integers(0, 256, (96, 96, 3), dtype=np.uint8)
    scene = make_scene(image, boundaries, segments)
    assert scene.near.shape == (2, 33, 33)
    column = 16 + 2 * np.arange(33)
    np.testing.assert_array_equal(scene.near[0], np.tile(np.abs(column - 50) < 8, (33, 1)))
    places = FeaturePlaces(*(array[:10] for array in feature_places()))
    patches = sample_patches([scene, scene], places, make_bins([scene.maps], 0, 100), 400, random)
    assert patches.codes.shape == (10, 400)
    assert patches.segments.shape == (400, 256)
    assert patches.segments.max() == 1
    # A line less than 8 pixels from the middle of the 16 x 16 pixels crosses them.
    assert (patches.segments.max(1) == 1).sum() >= 200
