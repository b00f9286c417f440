"""The sweeps of Figure 6: errors are those of the fold's test rows, and settings come from the shipped runs."""

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


def test_errors_are_those_of_all_test_rows(people: tuple[TabularValues, torch.Tensor]) -> None:
    data, features = people
    measured = [figure6.errors("CostSensitiveForest", SMALL, data, features, fold) for fold in range(3)]
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
    assert len(errors) == 90 and torch.cat(measured).tolist() == pytest.approx(errors, rel=1e-5)


def test_settings_come_from_the_shipped_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CONFIGS", tmp_path)
    (tmp_path / "runs" / "set").mkdir(parents=True)
    (tmp_path / "runs" / "set" / "dsna.yaml").write_text(
        "model: {head: {class_path: DSNA, init_args: {depth: 7, tau: 2.0}}}\n"
    )
    assert figure6.settings("set", "DSNA") == {**figure6.PAPER, "tau": 2.0}
    assert figure6.settings("set", "CostSensitiveForest") == figure6.PAPER


def test_the_chart_is_drawn(
    people: tuple[TabularValues, torch.Tensor],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(figure6.swept, "__defaults__", ({name: (1, 2) for name in figure6.SWEEPS},))
    monkeypatch.setattr(figure6, "settings", lambda *names: SMALL)
    monkeypatch.setattr(figure6, "load", lambda name: people)
    monkeypatch.setattr(
        sys, "argv", ["x", "--heads", "CostSensitiveForest", "--folds", "1", "--out", str(tmp_path / "f.png")]
    )
    figure6.main()
    assert (tmp_path / "f.png").stat().st_size > 10_000
    assert capsys.readouterr().out.count("CostSensitiveForest") == 3


def test_one_parameter_is_swept_while_the_others_stay() -> None:
    seen = []

    def measured(arguments: dict[str, Any]) -> float:
        seen.append(arguments)
        return float(arguments["depth"])

    found = figure6.swept(figure6.PAPER, measured, {"trees": (1, 50), "depth": (2,)})
    assert found == {"trees": {1: 10.0, 50: 10.0}, "depth": {2: 2.0}}
    assert seen == [{**figure6.PAPER, "trees": 1}, {**figure6.PAPER, "trees": 50}, {**figure6.PAPER, "depth": 2}]
