"""StructRF's settings, criterion and times, on small sets."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.structrf import criterion, speed, tuning


def test_tuning(command: Callable[..., str], small_sets: Path) -> None:
    lines = command(tuning, "SJAFFE", "--folds", 1, "--trees", 2).splitlines()
    figures = [float(line.split()[0]) for line in lines]
    assert len(lines) == 36 and figures == sorted(figures, reverse=True)


def test_criterion(command: Callable[..., str], small_sets: Path, page: Callable[[str], Path]) -> None:
    path = page("structrf_criterion")
    command(criterion, "--sets", "SJAFFE", "--search", "random", "--trees", 3, "--inner", 1, "--page", path)
    assert "| SJAFFE | random | 0." in path.read_text() and "3 trees" in path.read_text()


def test_speed_of_one_model(small_sets: Path) -> None:
    options = Namespace(trees=2, depth=4, threads=1, rows=50, singles=2)
    features, target = speed.load("SJAFFE", 50)
    assert features.shape == (50, 5) and np.allclose(target.sum(1), 1, atol=1e-6)
    for kind in speed.MODELS:
        model = speed.Competitor(kind, options, 1, (5, 4))
        model.fit(features, target)
        assert np.abs(model.predict(features) - target).mean() < np.abs(target.mean(0) - target).mean()
