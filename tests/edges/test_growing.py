"""Trees over segmentations: each part against a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.cluster import KMeans

from ldl.edges.structured.channels import Places, feature_places
from ldl.edges.structured.growing import (
    GrowthOptions,
    PatchTree,
    draw_pairs,
    grow,
    many_classes,
    medoid_row,
    two_classes,
)
from ldl.edges.structured.patches import BINS, Bins, drop_specks, make_bins, make_scene, sample_patches
from ldl.edges.structured.splits import best_hyperplane, best_split, best_split_of_many, gain_of_cut, squared_hinge
from ldl.errors import LDLError
from ldl.methods.forest.sampling import stream


def halves(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return segmentations by a line at a random place, and bins (40, N), the first of which gives the place."""
    random = np.random.default_rng(seed)
    place = random.integers(-8, 24, count)
    segments = np.broadcast_to(np.arange(16)[None, None] > place[:, None, None], (count, 16, 16))
    codes = random.integers(0, 256, (40, count), dtype=np.uint8)
    codes[0] = (place + 8) * 7 + random.integers(0, 12, count)
    return codes, segments.reshape(count, 256).astype(np.uint8)


def unit_bins() -> Bins:
    """Return one table whose bins are the integers."""
    edges, none = np.arange(BINS - 1, dtype=np.float32)[None], np.zeros(1, np.float32)
    return Bins(edges, np.arange(BINS, dtype=np.float32)[None], none, none, np.zeros((1, 1), np.uint8))


def grown(codes: np.ndarray, segments: np.ndarray, options: GrowthOptions, seed: int = 0) -> PatchTree:
    return grow(codes, np.zeros(len(codes), np.int32), unit_bins(), segments, options, stream(seed, 0))


def pair_codes(segments: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return (segments[:, pairs[:, 0]] == segments[:, pairs[:, 1]]).astype(np.float64)


@pytest.mark.parametrize("balance", [None, 0.0, 1.0])
def test_the_best_split_has_the_lowest_gini_impurity(balance: float | None) -> None:
    """Two classes without costs, or several classes with costs."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 30, (6, 200), dtype=np.uint8)
    rows = np.sort(random.choice(200, 80, replace=False)).astype(np.int32)
    score = codes[2, rows] + random.integers(0, 12, 80)
    labels = (score // (28 if balance is None else 14)).astype(np.uint8)
    costs = np.maximum(np.bincount(labels, minlength=4), 1.0) ** -(balance or 0.0)

    def gini(side: np.ndarray) -> float:
        mass = np.bincount(labels[side], minlength=4) * costs
        return mass.sum() - (mass**2).sum() / mass.sum()

    impurity = {}
    for f, cut in np.ndindex(6, 30):
        left = codes[f, rows] <= cut
        if min(left.sum(), (~left).sum()) >= 5:
            impurity[f, cut] = gini(left) + gini(~left)
    more = 6, 5, np.arange(6), stream(0, 0)
    if balance is None:
        f, cut = best_split(codes, rows, labels, int(labels.sum()), *more)
    else:
        f, cut = best_split_of_many(codes, rows, labels, costs, *more)
    assert impurity[f, cut] == pytest.approx(min(impurity.values()), rel=1e-12)


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
    own = sum(np.square(places[labels[:360] == k] - places[labels[:360] == k].mean(0)).sum() for k in range(classes))
    # Few rounds from one start come close to the best of many.
    assert own < 1.35 * best
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
        own = tree.rows[tree.start[leaf] : tree.start[leaf + 1]]
        assert tree.medoid[leaf] in own
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
        answers[tree.rows[tree.start[leaf] : tree.start[leaf + 1]]] = segments[tree.medoid[leaf]]
    lines, found = (values.reshape(600, 16, 16).sum((1, 2)) // 16 for values in (segments, answers))
    assert np.abs(lines % 16 - found % 16).mean() < 1.5


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


def test_a_class_weighs_the_odds_against_it() -> None:
    rare, random = 1, np.random.default_rng(1)
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


def test_a_hyperplane_must_gain_more_than_the_cut() -> None:
    random = np.random.default_rng(0)
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
            stream(0, 0), feature, weight,
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
    places = Places(*(part[:10] for part in feature_places()))
    patches = sample_patches([scene, scene], places, make_bins([scene.maps], 0, 100), 400, random)
    assert patches.codes.shape == (10, 400)
    assert patches.segments.shape == (400, 256)
    assert patches.segments.max() == 1
    # A line less than 8 pixels from the middle of the 16 x 16 pixels crosses them.
    assert (patches.segments.max(1) == 1).sum() >= 200
