"""The speed of boosted trees beside XGBoost, on small data; and that the settings which are compared are equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.boosted_trees import models, speed


def test_a_small_run_writes_its_block(command: Callable[..., str], page: Callable[[str], Path]) -> None:
    pytest.importorskip("xgboost", reason="xgboost is not installed")
    path = page("boosted_trees_speed")
    text = command(speed, "--quick", "--threads", 1, "--page", path)
    written = path.read_text()
    assert text.strip() in written
    for name in models.MODELS:
        assert written.count(f"\n| {name} | ") == 1
    assert "| 2 labels | " in written and "| 4 labels | " in written and f"Beside {models.THEIRS_SOFT}: " in written


def test_trees_of_one_label_are_xgboosts() -> None:
    """A few values a feature, so that both have the same bins."""
    pytest.importorskip("xgboost", reason="xgboost is not installed")
    rng = np.random.default_rng(0)
    features = rng.integers(0, 20, (300, 4)).astype(np.float32)
    target = np.exp(rng.normal(size=(300, 3)) + features[:, :3] / 5).astype(np.float32)
    target /= target.sum(1, keepdims=True)
    setting = models.Setting(rounds=10, depth=3, threads=1)
    names = models.OURS_LABEL, models.THEIRS, models.THEIRS_SOFT
    ours, repeated, soft = (models.fit(name, models.Rows(features, target), setting)(features) for name in names)
    assert np.abs(ours - repeated).max() < 0.01
    np.testing.assert_allclose(soft, repeated, atol=2e-3)


def test_made_rows_are_learnable() -> None:
    features, target = models.made(600, 6, 4)
    assert np.allclose(target.sum(1), 1, atol=1e-5) and features.shape == (600, 6)
    predict = models.fit(models.OURS, (features[:500], target[:500]), models.Setting(rounds=30, depth=3, threads=1))
    error = np.abs(predict(features[500:]) - target[500:]).mean()
    assert error < 0.75 * np.abs(target[:500].mean(0) - target[500:]).mean()
