"""The sweeps of Figure 6: the error is that of the fold's test rows, and settings come from the shipped runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.common import runs
from benchmarks.dsna import figure6
from ldl.collective import Collective
from ldl.data import TabularValues
from ldl.heads import CostSensitiveForest

SMALL = {"trees": 2, "depth": 3, "min_samples": 5, "features": 1.0}


@pytest.fixture
def people(tmp_path: Path) -> tuple[TabularValues, torch.Tensor]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(90, 4))
    values = np.round(30 + 8 * features[:, 0] + rng.normal(size=90))
    np.savez(tmp_path / "people.npz", features=features, value=values, group=np.arange(90) // 5)
    data = TabularValues(path=str(tmp_path / "people.npz"), folds=3, val_fraction=0, scaling="none")
    data.setup()
    return data, data.scaled


def test_error_is_that_of_all_test_rows_together(people: tuple[TabularValues, torch.Tensor]) -> None:
    data, features = people
    measured = figure6.error("CostSensitiveForest", SMALL, data, features, range(3))
    errors = []
    for fold in range(3):
        data.select_fold(fold)
        head = CostSensitiveForest(**SMALL, seed=fold)
        head.build(4, data.labels)
        train, test = torch.from_numpy(data.split.train), torch.from_numpy(data.split.test)
        value = torch.tensor(data.values, dtype=torch.float32)
        head.fit(features[train], data.columns["target"][train], Collective(), value=value[train])
        predicted = head.point_estimate(features[test])
        assert predicted is not None
        errors += (predicted - value[test]).abs().tolist()
    assert len(errors) == 90 and measured == pytest.approx(np.mean(errors), rel=1e-5)


def test_settings_come_from_the_shipped_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CONFIGS", tmp_path)
    (tmp_path / "runs" / "set").mkdir(parents=True)
    (tmp_path / "runs" / "set" / "dsna.yaml").write_text(
        "model: {head: {class_path: DSNA, init_args: {depth: 7, tau: 2.0}}}\n"
    )
    assert figure6.settings("set", "DSNA") == {"trees": 20, "depth": 7, "min_samples": 5, "tau": 2.0}
    assert figure6.settings("set", "CostSensitiveForest") == figure6.PAPER


def test_the_chart_is_drawn(
    people: tuple[TabularValues, torch.Tensor],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shallow: dict[str, Any] = {"trees": (1, 2), "depth": (1, 2), "min_samples": (5, 9)}
    monkeypatch.setattr(figure6, "SWEEPS", shallow)
    monkeypatch.setattr(figure6, "settings", lambda *names: SMALL)
    monkeypatch.setattr(figure6, "load", lambda name: people)
    monkeypatch.setattr(
        sys, "argv", ["x", "--heads", "CostSensitiveForest", "--folds", "1", "--out", str(tmp_path / "f.png")]
    )
    figure6.main()
    assert (tmp_path / "f.png").stat().st_size > 10_000
    assert capsys.readouterr().out.count("CostSensitiveForest") == 3
