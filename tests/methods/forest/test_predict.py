"""Trees of bins and trees of thresholds lead rows to the same leaves."""

from __future__ import annotations

import numpy as np
import torch
from fakes.grown_trees import table

from ldl.collective import Collective
from ldl.methods.forest.binning import make_bins
from ldl.methods.forest.boosted_tree import Grower, Shape
from ldl.methods.forest.boosting import add_coded, code_thresholds
from ldl.methods.forest.flat import join_trees
from ldl.methods.forest.histograms import Newton
from ldl.methods.forest.predict import add_leaves, forest_arrays

CPU = torch.device("cpu")


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
