"""Nodes with more than two classes: against plain references."""

from __future__ import annotations

import numpy as np
import pytest
from edge_patches import grown, halves, pair_codes
from sklearn.cluster import KMeans

from ldl.edges.structured.clusters import many_classes
from ldl.edges.structured.gini import best_split_of_many
from ldl.edges.structured.growing import Rules
from ldl.edges.structured.relabel import draw_pairs
from ldl.methods.forest.draws import stream


def tenths(count: int, seed: int = 0) -> np.ndarray:
    """Segmentations by lines at angles, (N, 256)."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:16, :16] - 7.5
    angle, offset = random.uniform(0, np.pi, (count, 1, 1)), random.normal(0, 3, (count, 1, 1))
    return (x * np.cos(angle) + y * np.sin(angle) > offset).reshape(count, 256).astype(np.uint8)


@pytest.mark.parametrize("classes", [2, 4, 6])
def test_classes_are_k_means_of_the_leading_components(classes: int) -> None:
    segments, rows = tenths(400), np.arange(20, 380, dtype=np.int32)
    pairs, state = np.empty((256, 2), np.int32), stream(1, 0)
    draw_pairs(256, state, pairs)
    labels, counts = np.empty(400, np.uint8), np.zeros(classes, np.int64)
    many_classes(segments, rows, pairs, np.empty((1024, 256), np.float32), state, labels, counts)
    centred = pair_codes(segments[rows], pairs)
    centred -= centred.mean(0)
    places = centred @ np.linalg.svd(centred)[2][:5].T
    best = KMeans(classes, n_init=5, random_state=0).fit(places).inertia_
    own = sum(np.square(places[labels[:360] == k] - places[labels[:360] == k].mean(0)).sum() for k in range(classes))
    # Few rounds from one start are near the best of many, no more.
    assert own < 1.35 * best
    np.testing.assert_array_equal(counts, np.bincount(labels[:360], minlength=classes))


@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_the_split_of_many_classes_is_the_purest(balance: float) -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 30, (6, 200), dtype=np.uint8)
    rows = np.sort(random.choice(200, 80, replace=False)).astype(np.int32)
    labels = ((codes[2, rows] + random.integers(0, 12, 80)) // 14).astype(np.uint8)
    costs = np.maximum(np.bincount(labels, minlength=4), 1) ** -balance

    def gini(side: np.ndarray) -> float:
        mass = np.bincount(labels[side], minlength=4) * costs
        return mass.sum() - (mass**2).sum() / mass.sum()

    scores = {}
    for f in range(6):
        for cut in range(30):
            left = codes[f, rows] <= cut
            if min(left.sum(), (~left).sum()) >= 5:
                scores[f, cut] = gini(left) + gini(~left)
    f, cut = best_split_of_many(codes, rows, labels, costs, 6, 5, np.arange(6), stream(0, 0))
    assert scores[f, cut] == pytest.approx(min(scores.values()), rel=1e-12)


def test_trees_of_many_classes_and_early_leaves() -> None:
    codes, segments = halves(600)
    plain, many, costs, early = (
        grown(codes, segments, Rules(40, 64, 8, 0, 16, 3.0, *more))
        for more in ((), (4,), (2, 1.0), (2, 0.0, True))
    )  # fmt: skip
    for tree in (many, costs, early):
        assert np.diff(tree.start).min() >= 8
        assert not np.array_equal(tree.rows, plain.rows)
    # A node is given up sooner.
    assert len(early.middle) < len(plain.middle)
    planes = grown(codes, segments, Rules(40, 64, 8, 2, 4, 3.0, 4))
    assert planes.feature.shape[1] == 4 and np.diff(planes.start).min() >= 8
