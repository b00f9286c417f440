"""What fits from maps cost, on few rows."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

from benchmarks.boosted_trees.large import FEATURES, LABELS, make, measure


@pytest.mark.parametrize("head", ["BoostedTrees", "StructRF"])
def test_a_fit_from_maps_is_measured(head: str, tmp_path: Path) -> None:
    make(tmp_path, 2000)
    features, target = (np.load(tmp_path / name) for name in ("features.npy", "target.npy"))
    assert features.shape == (2000, FEATURES) and target.shape == (2000, LABELS)
    assert np.allclose(target.sum(1), 1, atol=1e-5) and target.max(1).mean() > 1.5 / LABELS
    found = measure(tmp_path, argparse.Namespace(head=head, rounds=3, depth=3, sampling=0.8, threads=1))
    assert found.first.processor > 0 and found.peak >= found.before > 0 and found.anonymous > 0
