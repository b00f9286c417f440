"""Quantile bins against brute force, in memory and from maps of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes.grown_trees import table

from ldl.methods import training_rows as mapped
from ldl.methods.forest import binning
from ldl.methods.forest.binning import lists_any, make_bins, make_shares, share_of


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
            for module, name in ((mapped, "READ_BYTES"), (mapped, "SCRATCH_FILE_BYTES"), (binning, "COLUMN_BYTES")):
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
    monkeypatch.setattr(mapped, "SCRATCH_FILE_BYTES", 1000)
    shares = make_shares(bins, 2)
    for number in range(2):
        share = share_of(shares, number)
        assert lists_any(share)
        rows, mine = np.repeat(np.arange(3000), np.diff(share.start)), slice(share.start[0], share.start[-1])
        wanted = np.argwhere(bins.default != bins.codes.T)
        wanted = wanted[np.isin(wanted[:, 1], np.arange(max(1, share.first), share.last))]
        owner = share.owner[mine]
        assert np.array_equal(np.stack([rows, owner], 1), wanted)
        assert np.array_equal(share.listed[mine] - bins.offset[owner], bins.codes[owner, rows])
        assert share.listed.dtype == share.owner.dtype == np.int32
        one = share_of(make_shares(bins, 2, number, number + 1), 0)
        assert one[:2] == share[:2] and np.array_equal(one.listed, share.listed[mine])
    assert isinstance(shares.listed.base, np.memmap) and isinstance(shares.owner.base, np.memmap)
