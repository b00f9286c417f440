"""Quantile bins, and what is told by them alone: against brute force, in memory and from maps of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.collective import Collective
from ldl.methods import training_rows as mapped
from ldl.methods.forest import binning
from ldl.methods.forest.binning import make_bins, make_shares
from ldl.methods.forest.boosted_tree import Grower, Shape
from ldl.methods.forest.boosting import add_coded, code_thresholds
from ldl.methods.forest.flat import join_trees
from ldl.methods.forest.histograms import Histogram, Newton, accumulate, total
from ldl.methods.forest.predict import add_leaves, forest_arrays
from ldl.methods.forest.sampling import MANY, bootstrap, stream, subset
from ldl.methods.numba_kernels import next_share

CPU = torch.device("cpu")


def table(rows: int, seed: int) -> np.ndarray:
    """Columns of many values, of few, of one, with and without missing ones."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 6)).astype(np.float32)
    features[:, 1] = np.round(3 * features[:, 1])
    features[:, 2] = np.round(40 * features[:, 2]) / 40
    features[random.random(rows) < 0.1, 3] = np.nan
    features[:, 4], features[:, 5] = np.nan, 1
    return features


def by_hand(column: np.ndarray, bins: int) -> np.ndarray:
    """A bin is closed once it holds its share of the rows that no earlier bin has."""
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    of_value, code, held, left = np.zeros(len(values), int), 0, 0, counts.sum()
    for i, count in enumerate(counts):
        if i and (len(values) <= bins or held * (bins - code) >= left):
            code, left, held = code + 1, left - held, 0
        of_value[i], held = code, held + count
    known = of_value[np.searchsorted(values, column).clip(max=max(len(values) - 1, 0))] if len(values) else 0
    return np.where(np.isnan(column), of_value.max(initial=-1) + 1, known)


@pytest.mark.parametrize("bins", [20, 255])
def test_bins_are_those_of_brute_force_wherever_the_table_lies(
    bins: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = table(3000, bins)
    rows = np.flatnonzero(np.random.default_rng(0).random(3000) < 0.7).astype(np.int32)
    for chosen, own in ((None, features), (rows, features[rows])):
        binned = make_bins(features, bins, chosen)
        for f in range(6):
            codes = binned.codes[f]
            assert np.array_equal(codes, by_hand(own[:, f], bins)), f
            assert binned.offset[f + 1] - binned.offset[f] == len(np.unique(codes))
            for code in range(binned.filled[f]):
                values = own[codes == code, f]
                assert (values.min(), values.max()) == (binned.low[f, code], binned.high[f, code])
        with monkeypatch.context() as patch:
            patch.setenv("LDL_CACHE", str(tmp_path / "cache"))
            np.save(tmp_path / "features.npy", features)
            for module, name in ((mapped, "BLOCK"), (mapped, "LARGE"), (binning, "COLUMNS")):
                patch.setattr(module, name, 5000)
            other = make_bins(np.load(tmp_path / "features.npy", mmap_mode="c"), bins, chosen, threads=2)
            assert isinstance(other.codes.base, np.memmap) and not any((tmp_path / "cache/scratch").iterdir())
        assert all(np.array_equal(one, two) for one, two in zip(binned, other))


def test_what_rows_list_of_sparse_features_lies_in_scratch_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(3000, 5)).astype(np.float32)
    features[:, 1:] *= random.random((3000, 4)) < 0.3
    bins = make_bins(features)
    monkeypatch.setenv("LDL_CACHE", str(tmp_path))
    monkeypatch.setattr(mapped, "LARGE", 1000)
    for share in make_shares(bins, 2):
        rows = np.repeat(np.arange(3000), np.diff(share.start))
        wanted = np.argwhere(bins.default != bins.codes.T)
        wanted = wanted[np.isin(wanted[:, 1], np.arange(max(1, share.first), share.last))]
        assert np.array_equal(np.stack([rows, share.owner], 1), wanted)
        assert np.array_equal(share.listed - bins.offset[share.owner], bins.codes[share.owner, rows])
        assert share.listed.dtype == share.owner.dtype == np.int32
        assert isinstance(share.listed.base, np.memmap) and isinstance(share.owner.base, np.memmap)


def test_rows_end_by_their_bins_where_their_values_lead() -> None:
    torn = 0
    for seed in range(15):
        random = np.random.default_rng(seed)
        features = table(400, seed)
        rows = np.sort(random.choice(400, 250, replace=False)).astype(np.int32)
        # Nodes of few rows have bins between those of both sides, in which only other rows are.
        bins = make_bins(features, 40, rows)
        derivatives = random.random((250, 6)).astype(np.float32) - np.float32([0.5] * 3 + [0] * 3)
        own = np.sort(random.choice(250, 60, replace=False)).astype(np.int32)
        grower = Grower(bins, 1, Collective(), CPU)
        tree = grower.grow(derivatives, own, np.arange(6), Shape(8, None, 1.0, Newton(1.0, 1, 0.0)))
        below, split_bin = code_thresholds(tree, bins)
        torn += int((split_bin >= 0).sum())
        found, wanted = np.zeros((2, 250, 3), np.float32)
        for first, last in ((0, 90), (90, 250)):
            add_coded(bins, features, rows, tree, below, split_bin, found, 0, first, last)
        forest = join_trees([tree], 3, CPU, Collective(), missing=True)
        add_leaves(features[rows], *forest_arrays(forest), wanted)
        assert np.array_equal(found, wanted), seed
    assert torn > 30


def test_many_equal_derivatives_do_not_get_lost() -> None:
    """In one float32 sum of 1,400,000 times 0.16 the last additions are rounded to 1/64: 0.15625."""
    rows = 3_000_000
    bins = make_bins((np.arange(rows) % 15 // 7).astype(np.float32)[:, None])
    derivatives = np.full((rows, 2), 0.16, np.float32)
    everything = np.arange(rows, dtype=np.int32)
    sums = total(derivatives, everything)
    histogram = Histogram(np.empty((bins.offset[-1], 2), np.float32), np.zeros(bins.offset[-1], np.int32))
    accumulate(bins, make_shares(bins, 1)[0], np.arange(1), derivatives, everything, sums, histogram)
    assert histogram.rows.tolist() == [1_400_000, 1_400_000, 200_000]
    np.testing.assert_allclose(histogram.sums / histogram.rows[:, None], 0.16, rtol=2e-3)


def test_large_samples_are_as_random_as_small_ones() -> None:
    picked = subset(MANY, 0.25, 3, 7)
    assert len(picked) == MANY // 4 and picked.dtype == np.int32 and (np.diff(picked) > 0).all()
    # Of 64 stretches each has about a quarter, and gaps are geometric: chi-squared and share of neighbours.
    held = np.bincount(picked // (MANY // 64), minlength=64)
    assert 30 < ((held - MANY / 256) ** 2 / (MANY / 256 * 0.75)).sum() < 110
    assert np.mean(np.diff(picked) == 1) == pytest.approx(0.25, abs=0.005)
    assert not np.array_equal(picked, subset(MANY, 0.25, 3, 8))
    state = stream(3, 7)
    grows_by = np.array([next_share(state) < 0.25 for _ in range(64)])
    assert not np.array_equal(np.isin(np.arange(64), picked), grows_by)
    drawn, counts = bootstrap(2 * MANY, 0.9, True, 1, 2)
    at_once = np.bincount(np.random.default_rng([1, 2]).integers(2 * MANY, size=round(1.8 * MANY)), minlength=2 * MANY)
    assert np.array_equal(drawn, np.flatnonzero(at_once)) and np.array_equal(counts, at_once[drawn])
