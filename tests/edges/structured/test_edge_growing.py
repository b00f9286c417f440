"""Trees over segmentations: each part against a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from edge_patches import grown, halves, pair_codes, unit_bins
from scipy.optimize import minimize

from ldl.edges.structured.bins import make_bins
from ldl.edges.structured.channels import Places, feature_places
from ldl.edges.structured.gini import best_split
from ldl.edges.structured.growing import Rules
from ldl.edges.structured.hyperplane import best_hyperplane, gain_of_cut, squared_hinge
from ldl.edges.structured.patches import make_scene, sample_patches
from ldl.edges.structured.relabel import draw_pairs, middle_segments, two_classes
from ldl.edges.structured.segments import drop_specks
from ldl.errors import LDLError
from ldl.methods.forest.draws import stream


def gini(labels: np.ndarray) -> float:
    share = np.bincount(labels, minlength=2) / len(labels)
    return len(labels) * (1 - (share**2).sum())


@pytest.mark.parametrize("seed", range(5))
def test_best_split_has_the_lowest_gini_impurity(seed: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, 30, (6, 200), dtype=np.uint8)
    rows = np.sort(random.choice(200, 80, replace=False)).astype(np.int32)
    labels = (codes[2, rows] + random.integers(0, 20, 80) > 25).astype(np.uint8)
    scores = {}
    for f in range(6):
        for cut in range(255):
            left = codes[f, rows] <= cut
            if min(left.sum(), (~left).sum()) >= 5:
                scores[f, cut] = gini(labels[left]) + gini(labels[~left])
    f, cut = best_split(codes, rows, labels, int(labels.sum()), 6, 5, np.arange(6), stream(seed, 0))
    assert scores[f, cut] == pytest.approx(min(scores.values()), rel=1e-12)
    assert scores[f, cut] < gini(labels)


def test_no_split_where_nothing_is_gained() -> None:
    labels = np.tile(np.array([0, 1], np.uint8), 20)
    rows = np.arange(40, dtype=np.int32)
    useless = np.repeat(np.arange(20, dtype=np.uint8), 2)[None]
    assert best_split(useless, rows, labels, 20, 1, 2, np.arange(1), stream(0, 0))[0] == -1
    useful = labels[None] * np.uint8(9)
    assert best_split(useful, rows, labels, 20, 1, 20, np.arange(1), stream(0, 0)) == (0, 0)
    assert best_split(useful, rows, labels, 20, 1, 21, np.arange(1), stream(0, 0))[0] == -1
    assert best_split(useful, rows, labels * 0, 0, 1, 1, np.arange(1), stream(0, 0))[0] == -1


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


def test_equal_segmentations_have_one_class() -> None:
    pairs = np.empty((256, 2), np.int32)
    draw_pairs(256, stream(0, 0), pairs)
    scratch, labels = np.empty((1024, 256), np.float32), np.empty(30, np.uint8)
    equal = np.tile(halves(1)[1], (30, 1))
    assert two_classes(equal, np.arange(30, dtype=np.int32), pairs, scratch, stream(0, 1), labels) == 0


def test_a_large_node_is_parted_by_a_sample() -> None:
    segments = halves(3000)[1]
    pairs = np.empty((256, 2), np.int32)
    draw_pairs(256, stream(0, 0), pairs)
    labels = np.empty(3000, np.uint8)
    ones = two_classes(
        segments, np.arange(3000, dtype=np.int32), pairs, np.empty((1024, 256), np.float32), stream(0, 1), labels
    )
    assert 300 < ones < 2700
    assert ones == labels.sum()


def test_the_middle_is_nearest_to_the_mean_code() -> None:
    segments = halves(100)[1]
    pairs = np.empty((256, 2), np.int32)
    draw_pairs(256, stream(2, 0), pairs)
    rows = np.arange(10, 60, dtype=np.int32)
    codes = pair_codes(segments[rows], pairs)
    away = ((codes - codes.mean(0)) ** 2).sum(1)
    assert middle_segments(segments, rows, pairs) == rows[np.argmin(away)]


@pytest.mark.parametrize("sets", [0, 3])
def test_every_patch_is_in_the_leaf_that_its_features_lead_to(sets: int) -> None:
    codes, segments = halves(600)
    tree = grown(codes, segments, Rules(40, 64, 8, sets, 16, 3.0))
    assert tree.feature.shape[1] == (16 if sets else 1)
    sizes = np.diff(tree.start)
    assert sizes.min() >= 8
    assert len(tree.feature) == 2 * len(tree.middle) - 1
    for leaf in range(len(sizes)):
        own = tree.rows[tree.start[leaf] : tree.start[leaf + 1]]
        assert tree.middle[leaf] in own
        for row in own:
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
        answers[tree.rows[tree.start[leaf] : tree.start[leaf + 1]]] = segments[tree.middle[leaf]]
    lines, found = (values.reshape(600, 16, 16).sum((1, 2)) // 16 for values in (segments, answers))
    assert np.abs(lines % 16 - found % 16).mean() < 1.5


@pytest.mark.parametrize("sets", [0, 2])
def test_depth_and_seed(sets: int) -> None:
    codes, segments = halves(400)
    assert len(grown(codes, segments, Rules(40, 0, 8, sets, 16, 3.0)).feature) == 1
    assert len(grown(codes, segments, Rules(40, 2, 8, sets, 16, 3.0)).middle) <= 4
    one, same, other = (grown(codes, segments, Rules(6, 64, 8, sets, 16, 3.0), seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one, same))
    assert not np.array_equal(one.rows, other.rows)


def test_squared_hinge_is_at_its_minimum() -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.normal(size=(200, 6)), np.ones((200, 1))], axis=1)
    y = np.where(x[:, 0] + 0.5 * x[:, 1] + random.normal(size=200) > 0.8, 1.0, -1.0)
    cost = np.where(y > 0, 3.0, 0.4)

    def objective(w: np.ndarray) -> float:
        loss = np.maximum(0, 1 - y * (x @ w)) ** 2
        return 0.1 * (w[:-1] @ w[:-1]) / 2 + (cost @ loss) / cost.sum() / 2

    fitted = minimize(objective, np.zeros(7), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(squared_hinge(x, y, cost, 0.1), fitted.x, atol=1e-4)


def test_a_hyperplane_does_not_sacrifice_the_rarer_class() -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 256, (8, 1000), dtype=np.uint8)
    score = codes[:4].astype(float).sum(0) + random.normal(0, 40, 1000)
    labels = (score > np.quantile(score, 0.93)).astype(np.uint8)
    feature, weight = np.empty(8, np.int32), np.empty(8, np.float32)
    found, threshold = best_hyperplane(
        codes, np.zeros(8, np.int32), unit_bins().top, np.arange(1000, dtype=np.int32), labels, int(labels.sum()),
        2, 8, 0.1, 0.0, np.arange(8), stream(0, 0), feature, weight,
    )  # fmt: skip
    right = weight @ codes[feature] > threshold
    assert found
    assert right[labels == 1].mean() > 0.9
    assert right[labels == 0].mean() < 0.3


@pytest.mark.parametrize("rare", [0, 1])
def test_a_class_weighs_the_odds_against_it(rare: int) -> None:
    random = np.random.default_rng(rare)
    codes = random.integers(0, 256, (5, 400), dtype=np.uint8)
    score = codes[:3].astype(float).sum(0) + random.normal(0, 60, 400)
    labels = (score > np.quantile(score, 0.9)).astype(np.uint8) ^ (rare == 0)
    ones, feature, weight = int(labels.sum()), np.empty(5, np.int32), np.empty(5, np.float32)
    found, _ = best_hyperplane(
        codes, np.zeros(5, np.int32), unit_bins().top, np.arange(400, dtype=np.int32), labels, ones, 1, 8, 0.1, 0.0,
        np.arange(5), stream(0, 0), feature, weight,
    )  # fmt: skip
    values = unit_bins().top[0][codes[feature]].T.astype(float)
    spread = values.std(0)
    x = np.hstack([(values - values.mean(0)) / spread, np.ones((400, 1))])
    share = ones / 400
    cost = np.where(labels == 1, (1 - share) / share, share / (1 - share))
    assert found
    np.testing.assert_allclose(
        weight, squared_hinge(x, np.where(labels == 1, 1.0, -1.0), cost, 0.1)[:-1] / spread, rtol=1e-4
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_hyperplane_must_gain_more_than_the_cut(seed: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, 200, (8, 500), dtype=np.uint8)
    labels = (codes[0].astype(int) + codes[3] > 250).astype(np.uint8)
    rows, ones, cut = np.arange(500, dtype=np.int32), int(labels.sum()), 120
    gain = gain_of_cut(codes[0], cut, rows, labels, ones)
    mass = np.where(labels == 1, 0.5 / ones, 0.5 / (500 - ones))

    def entropy(side: np.ndarray) -> float:
        share = np.array([mass[side & (labels == k)].sum() for k in (0, 1)])
        part = share[share > 0] / share.sum()
        return float(-(share.sum() * part * np.log(part)).sum())

    left = codes[0] <= cut
    assert gain == pytest.approx(np.log(2) - entropy(left) - entropy(~left), rel=1e-9)

    def tried(least: float) -> tuple[bool, float, np.ndarray]:
        feature, weight = np.zeros(4, np.int32), np.zeros(4, np.float32)
        found, threshold = best_hyperplane(
            codes, np.zeros(8, np.int32), unit_bins().top, rows, labels, ones, 5, 8, 0.1, least, np.arange(8),
            stream(seed, 0), feature, weight,
        )  # fmt: skip
        return found, threshold, weight @ codes[feature]

    found, threshold, sums = tried(gain)
    assert found
    better = sums <= threshold
    assert np.log(2) - entropy(better) - entropy(~better) > gain
    assert not tried(np.log(2))[0]


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


def test_images_smaller_than_a_patch_are_refused() -> None:
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
    places = Places(*(part[:10] for part in feature_places()))
    patches = sample_patches([scene, scene], places, make_bins([scene.maps], 0, 100), 400, random)
    assert patches.codes.shape == (10, 400)
    assert patches.segments.shape == (400, 256)
    assert patches.segments.max() == 1
    # A line less than 8 pixels from the middle of the 16 x 16 pixels crosses them.
    assert (patches.segments.max(1) == 1).sum() >= 200
