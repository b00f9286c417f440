"""Random thresholds of boosted trees against all that were drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes.boosting_reference import gain, goes_left, problem

from ldl.collective import Collective
from ldl.methods.forest.binning import make_bins, make_shares
from ldl.methods.forest.boosted_tree import Grower, Shape
from ldl.methods.forest.histograms import LEAST_GAIN, Newton
from ldl.methods.forest.random_thresholds import LANES, RowCoder

CPU = torch.device("cpu")


def share_of(draws: int, place: int) -> float:
    """The first number in [0, 1) of a stream's own stream, in Python's whole numbers (splitmix64)."""
    most = 2**64 - 1
    z = ((draws ^ ((place + 1) * 0xD1342543DE82EF95 & most)) + 0x9E3779B97F4A7C15) & most
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & most
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & most
    return ((z ^ (z >> 31)) >> 11) / 2**53


def test_random_thresholds_are_the_best_of_those_drawn() -> None:
    """Held against brute force, with a bin for each value, so that bins are ranks of values."""
    splits, ways = 0, np.zeros(3, int)
    for seed in range(50):
        rows, derivatives, sampled, features, shape = problem(seed)
        rules = shape.newton._replace(random=True)
        shape = Shape(shape.depth, None, shape.learning_rate, rules)
        tree = Grower(make_bins(rows), 1, Collective(), CPU).grow(derivatives, sampled.copy(), features, shape, seed)
        nodes = [(0, 0, sampled)]
        for number, depth, own in nodes:
            best = 0.0
            for f in features:
                values, all_ = rows[own, f], np.unique(rows[~np.isnan(rows[:, f]), f])
                missing, there = np.isnan(values), np.unique(values[~np.isnan(values)])
                if not len(there):
                    continue
                low, high = np.searchsorted(all_, there[[0, -1]])
                last = all_[low + int(share_of(seed, int(number * rows.shape[1] + f)) * (high - low))]
                below = values <= last
                tries = [~missing] if missing.any() else []
                tries += [below, below | missing] if low < high else []
                best = max([best, *(gain(derivatives[own].astype(np.float64), each, rules) for each in tries)])
            if tree.feature[number] < 0:
                assert best <= LEAST_GAIN + 1e-5 or depth == shape.depth or len(own) < 2 * rules.min_leaf
                continue
            assert tree.gain[number] == pytest.approx(best, rel=1e-4, abs=1e-5)
            left, values = goes_left(tree, number, rows[own]), rows[own, tree.feature[number]]
            assert gain(derivatives[own].astype(np.float64), left, rules) == pytest.approx(best, rel=1e-4, abs=1e-5)
            missing = np.isnan(values)
            if np.isfinite(tree.threshold[number]):
                middle = (values[left & ~missing].max() + values[~left & ~missing].min()) / 2
                assert tree.threshold[number] == pytest.approx(middle, rel=1e-5)
            if not missing.any():
                assert bool(tree.missing_left[number]) == (2 * left.sum() >= len(own))
            ways += [np.isinf(tree.threshold[number]), missing.any() and tree.missing_left[number], missing.any()]
            splits += 1
            child = int(tree.child[number])
            nodes += [(child, depth + 1, own[left]), (child + 1, depth + 1, own[~left])]
    assert splits > 45 and ways.min() > 0


@pytest.mark.parametrize("threads", [1, 3])
def test_random_thresholds_of_what_rows_list_are_those_of_all_codes(threads: int) -> None:
    """Sparse features, some of which mostly miss values, beside others: the sparse ones read both ways."""
    random = np.random.default_rng(5)
    rows = random.normal(size=(400, 24)).astype(np.float32)
    rows[:, 6:] = np.where(random.random((400, 18)) < 0.9, np.float32(0.2), np.round(rows[:, 6:], 1))
    rows[:, 18:] = np.where(rows[:, 18:] == np.float32(0.2), np.nan, rows[:, 18:])
    rows[:, 12:18] = np.where(random.random((400, 6)) < 0.04, np.nan, rows[:, 12:18])
    derivatives = np.concatenate([random.normal(size=(400, 3)), random.random((400, 3))], 1).astype(np.float32)
    listed = make_bins(rows)
    assert (listed.default[6:] >= 0).all() and (listed.default[:6] < 0).all()
    every = listed._replace(default=np.full(24, -1, np.int32))
    shape = Shape(6, None, 0.3, Newton(1.0, 2, 0.1, random=True))
    splits = 0
    for draws in range(10):
        features = np.sort(random.permutation(24)[:16])
        own = np.sort(random.permutation(400)[:300]).astype(np.int32)
        trees = [
            Grower(bins, threads, Collective(), CPU).grow(derivatives, own.copy(), features, shape, draws)
            for bins in (listed, every)
        ]
        for name in ("feature", "threshold", "missing_left", "child"):
            np.testing.assert_array_equal(getattr(trees[0], name), getattr(trees[1], name))
        np.testing.assert_allclose(trees[0].gain, trees[1].gain, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(trees[0].values, trees[1].values, rtol=1e-5)
        splits += np.isin(trees[0].feature, np.arange(6, 24)).sum()
    assert splits > 30


def test_row_codes_are_the_bins_of_the_features_that_are_tried() -> None:
    """Those with missing values come first, sparse ones are left out, and other features overwrite the memory."""
    random = np.random.default_rng(2)
    rows = random.normal(size=(1500, 50)).astype(np.float32)
    rows[:, 1::5][random.random((1500, 10)) < 0.2] = np.nan
    rows[:, 2::5] = np.where(random.random((1500, 10)) < 0.8, np.float32(0), rows[:, 2::5])
    bins = make_bins(rows)
    coder = RowCoder(bins, make_shares(bins, 3))
    for features in (np.arange(50), np.arange(3, 50, 2), np.arange(3, 50, 2)):
        codes = coder.code(features)
        dense = bins.default[features] < 0
        assert np.array_equal(codes.column >= 0, dense) and not (codes.start % LANES).any()
        assert np.array_equal(codes.codes[:, codes.column[dense]].T, bins.codes[features[dense]])
        assert np.array_equal(codes.filled[codes.column[dense]], bins.filled[features[dense]])
        for f, column in zip(features[dense], codes.column[dense]):
            share = np.searchsorted(codes.start, column, "right") - 1
            assert coder.shares.cuts[share] <= f < coder.shares.cuts[share + 1]
            if np.isnan(rows[:, f]).any():
                assert column < codes.start[share] + codes.missing[share]
    assert coder.code(features) is codes
