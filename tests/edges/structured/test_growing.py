"""Trees over segmentations: each part against a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from ldl.edges.structured.growing import (
    GrowthOptions,
    PatchTree,
    draw_pairs,
    grow,
    many_classes,
    medoid_row,
    two_classes,
)
from ldl.edges.structured.patches import FEATURE_BINS, PatchBins
from ldl.methods.forest.sampling import stream


def halves(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return segmentations by a line at a random place, and bins (40, N), the first of which gives the place."""
    random = np.random.default_rng(seed)
    border = random.integers(-8, 24, count)
    segments = np.broadcast_to(np.arange(16)[None, None] > border[:, None, None], (count, 16, 16))
    codes = random.integers(0, 256, (40, count), dtype=np.uint8)
    codes[0] = (border + 8) * 7 + random.integers(0, 12, count)
    return codes, segments.reshape(count, 256).astype(np.uint8)


def unit_bins() -> PatchBins:
    """Return one table whose bins are the integers."""
    edges, none = np.arange(FEATURE_BINS - 1, dtype=np.float32)[None], np.zeros(1, np.float32)
    return PatchBins(edges, np.arange(FEATURE_BINS, dtype=np.float32)[None], none, none, np.zeros((1, 1), np.uint8))


def grown(codes: np.ndarray, segments: np.ndarray, options: GrowthOptions, seed: int = 0) -> PatchTree:
    return grow(codes, np.zeros(len(codes), np.int32), unit_bins(), segments, options, stream(seed, 0))


def pair_codes(segments: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return (segments[:, pairs[:, 0]] == segments[:, pairs[:, 1]]).astype(np.float64)


def test_classes_are_the_sign_of_the_first_principal_component() -> None:
    segments = halves(300)[1]
    rows = np.arange(50, 250, dtype=np.int32)
    pairs = np.empty((256, 2), np.int32)
    state = stream(1, 0)
    draw_pairs(256, state, pairs)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert pairs.min() >= 0
    assert pairs.max() <= 255
    labels = np.empty(300, np.uint8)
    ones = two_classes(segments, rows, pairs, np.empty((1024, 256), np.float32), state, labels)
    centred = pair_codes(segments[rows], pairs)
    centred -= centred.mean(0)
    component = np.linalg.svd(centred)[2][0]
    scores = centred @ component
    clear = np.abs(scores) > 0.2
    agree = np.mean(labels[:200][clear] == (scores[clear] > 0))
    assert max(agree, 1 - agree) == 1
    assert clear.mean() > 0.9
    assert ones == labels[:200].sum()
    equal = np.tile(segments[:1], (300, 1))
    assert two_classes(equal, rows, pairs, np.empty((1024, 256), np.float32), state, labels) == 0


def test_the_medoid_is_nearest_to_the_mean_code() -> None:
    segments = halves(100)[1]
    pairs = np.empty((256, 2), np.int32)
    draw_pairs(256, stream(2, 0), pairs)
    rows = np.arange(10, 60, dtype=np.int32)
    codes = pair_codes(segments[rows], pairs)
    away = ((codes - codes.mean(0)) ** 2).sum(1)
    assert medoid_row(segments, rows, pairs) == rows[np.argmin(away)]


def slanted(count: int, seed: int = 0) -> np.ndarray:
    """Return segmentations by lines at random angles, (N, 256)."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:16, :16] - 7.5
    angle, offset = random.uniform(0, np.pi, (count, 1, 1)), random.normal(0, 3, (count, 1, 1))
    return (x * np.cos(angle) + y * np.sin(angle) > offset).reshape(count, 256).astype(np.uint8)


@pytest.mark.slow
def test_classes_are_k_means_of_the_leading_components() -> None:
    classes = 6
    segments, rows = slanted(400), np.arange(20, 380, dtype=np.int32)
    pairs, state = np.empty((256, 2), np.int32), stream(1, 0)
    draw_pairs(256, state, pairs)
    labels, counts = np.empty(400, np.uint8), np.zeros(classes, np.int64)
    many_classes(segments, rows, pairs, np.empty((1024, 256), np.float32), state, labels, counts)
    centred = pair_codes(segments[rows], pairs)
    centred -= centred.mean(0)
    places = centred @ np.linalg.svd(centred)[2][:5].T
    best = KMeans(classes, n_init=5, random_state=0).fit(places).inertia_
    spread = sum(np.square(places[labels[:360] == k] - places[labels[:360] == k].mean(0)).sum() for k in range(classes))
    # Few rounds from one start come close to the best of many.
    assert spread < 1.35 * best
    np.testing.assert_array_equal(counts, np.bincount(labels[:360], minlength=classes))


@pytest.mark.parametrize("sets", [0, 3])
def test_every_patch_is_in_the_leaf_that_its_features_lead_to(sets: int) -> None:
    codes, segments = halves(600)
    tree = grown(codes, segments, GrowthOptions(40, 64, 8, sets, 16, 3.0))
    assert tree.feature.shape[1] == (16 if sets else 1)
    sizes = np.diff(tree.start)
    assert sizes.min() >= 8
    assert len(tree.feature) == 2 * len(tree.medoid) - 1
    for leaf in range(len(sizes)):
        members = tree.rows[tree.start[leaf] : tree.start[leaf + 1]]
        assert tree.medoid[leaf] in members
        for row in members:
            node = 0
            while tree.feature[node, 0] >= 0:
                total = np.float32(0)
                for f, weight in zip(tree.feature[node], tree.weight[node]):
                    total += weight * np.float32(codes[f, row])
                node = tree.child[node] + (total > tree.threshold[node])
            assert tree.child[node] == leaf
    if sets:
        return
    # One feature tells where the line is: the answers are near the truth.
    answers = np.empty((600, 256))
    for leaf in range(len(sizes)):
        answers[tree.rows[tree.start[leaf] : tree.start[leaf + 1]]] = segments[tree.medoid[leaf]]
    lines, predicted = (values.reshape(600, 16, 16).sum((1, 2)) // 16 for values in (segments, answers))
    assert np.abs(lines % 16 - predicted % 16).mean() < 1.5


def test_depth_and_seed() -> None:
    codes, segments = halves(400)
    assert len(grown(codes, segments, GrowthOptions(40, 0, 8, 2, 16, 3.0)).feature) == 1
    assert len(grown(codes, segments, GrowthOptions(40, 2, 8, 2, 16, 3.0)).medoid) <= 4
    one, same, other = (grown(codes, segments, GrowthOptions(6, 64, 8, 2, 16, 3.0), seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one, same))
    assert not np.array_equal(one.rows, other.rows)


def test_trees_of_many_classes_and_early_leaves() -> None:
    codes, segments = halves(600)
    plain, many, costs, early = (
        grown(codes, segments, GrowthOptions(40, 64, 8, 0, 16, 3.0, *more))
        for more in ((), (4,), (2, 1.0), (2, 0.0, True))
    )  # fmt: skip
    for tree in (many, costs, early):
        assert np.diff(tree.start).min() >= 8
        assert not np.array_equal(tree.rows, plain.rows)
    # Nodes become leaves sooner.
    assert len(early.medoid) < len(plain.medoid)
    planes = grown(codes, segments, GrowthOptions(40, 64, 8, 2, 4, 3.0, 4))
    assert planes.feature.shape[1] == 4 and np.diff(planes.start).min() >= 8
