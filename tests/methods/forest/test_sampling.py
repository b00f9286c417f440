"""Samples of rows."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.methods.forest.sampling import MOST_PERMUTED_ROWS, bootstrap, stream, subset
from ldl.methods.numba_kernels import next_share


def test_large_samples_are_as_random_as_small_ones() -> None:
    picked = subset(MOST_PERMUTED_ROWS, 0.25, 3, 7)
    assert len(picked) == MOST_PERMUTED_ROWS // 4 and picked.dtype == np.int32 and (np.diff(picked) > 0).all()
    # Of 64 stretches each has about a quarter, and gaps are geometric: chi-squared and share of neighbours.
    held = np.bincount(picked // (MOST_PERMUTED_ROWS // 64), minlength=64)
    assert 30 < ((held - MOST_PERMUTED_ROWS / 256) ** 2 / (MOST_PERMUTED_ROWS / 256 * 0.75)).sum() < 110
    assert np.mean(np.diff(picked) == 1) == pytest.approx(0.25, abs=0.005)
    assert not np.array_equal(picked, subset(MOST_PERMUTED_ROWS, 0.25, 3, 8))
    state = stream(3, 7)
    grows_by = np.array([next_share(state) < 0.25 for _ in range(64)])
    assert not np.array_equal(np.isin(np.arange(64), picked), grows_by)
    drawn, counts = bootstrap(2 * MOST_PERMUTED_ROWS, 0.9, True, 1, 2)
    at_once = np.bincount(
        np.random.default_rng([1, 2]).integers(2 * MOST_PERMUTED_ROWS, size=round(1.8 * MOST_PERMUTED_ROWS)),
        minlength=2 * MOST_PERMUTED_ROWS,
    )
    assert np.array_equal(drawn, np.flatnonzero(at_once)) and np.array_equal(counts, at_once[drawn])
