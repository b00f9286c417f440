"""Sums of derivatives in histograms."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.binning import make_bins, make_shares, share_of
from ldl.methods.forest.histograms import Histogram, accumulate, total


def test_many_equal_derivatives_do_not_get_lost() -> None:
    """In one float32 sum of 1,400,000 times 0.16 the last additions are rounded to 1/64: 0.15625."""
    rows = 3_000_000
    bins = make_bins((np.arange(rows) % 15 // 7).astype(np.float32)[:, None])
    derivatives = np.full((rows, 2), 0.16, np.float32)
    everything = np.arange(rows, dtype=np.int32)
    sums = total(derivatives, everything)
    histogram = Histogram(np.empty((bins.offset[-1], 2), np.float32), np.zeros(bins.offset[-1], np.int32))
    accumulate(bins, share_of(make_shares(bins, 1), 0), np.arange(1), derivatives, everything, sums, histogram)
    assert histogram.rows.tolist() == [1_400_000, 1_400_000, 200_000]
    np.testing.assert_allclose(histogram.sums / histogram.rows[:, None], 0.16, rtol=2e-3)
