"""Made tables, and how advice on them is judged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.special import softmax

from benchmarks.tables import recommend
from benchmarks.tables.natures import NATURES, draw_table, stepwise
from ldl.cells.store import Store

Command = Callable[..., str]
SMALL = {
    "mean": {"run": "tabular/meanpredictor", "options": {"data.scaling": "none"}},
    "MaxEnt": {"run": "tabular/maxent", "grid": {"model.head.l2": [0.01, 0.1]}},
}


def test_quick(command: Command, page: Callable[[str], Path], tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """One draw is measured, is not measured twice, and its fresh rows are those of the run that is recommended."""
    config, out = tmp_path / "small.yaml", tmp_path / "out"
    config.write_text(yaml.safe_dump({"choose": {"inner_folds": 1}, "candidates": SMALL}, sort_keys=False))
    arguments = ("--quick", "--config", config, "--natures", "smooth", "--out", out, "--page", page("recommend"))
    assert "against the best on fresh rows" in command(recommend, *arguments)
    assert "LightningCLI" not in str([warning.message for warning in recwarn])
    (cell,) = Store(out / "cells").rows
    assert list(cell["kl"]) == list(cell["fresh_kl"]) == list(SMALL)
    (folder,) = (path for path in out.iterdir() if path.name != "cells")
    found = json.loads((folder / "run" / "comparison.json").read_text())
    assert recommend.outcome_of(cell).recommended == found["recommended"] == "MaxEnt"
    line = recommend.summary("smooth", [cell])
    assert line[:2] == ["smooth", "1"] and line[-2:] == ["MaxEnt 1", "MaxEnt 1"]
    assert "| smooth | 1 | 1 | 1 | 1 | 0.0% | 0.0% | MaxEnt 1 | MaxEnt 1 |" in (tmp_path / "page.md").read_text()
    before = Store(out / "cells").rows
    command(recommend, *arguments)
    assert Store(out / "cells").rows == before
    _, target = draw_table("smooth", 260, 0)
    mean = target[:60].astype(np.float32).mean(0)
    kl = (target[60:] * np.log(target[60:] / mean)).sum(1).mean()
    assert cell["fresh_kl"]["mean"] == pytest.approx(kl, rel=1e-5)


def test_judged_by_hand() -> None:
    """Of 100 rows and 10,000 fresh ones, with deviation 0.2: the standard errors are 0.02 and 0.002."""
    deviations = {name: {other: 0.2 for other in "mab"} for name in "mab"}
    fresh = {"m": 1.0, "a": 0.51, "b": 0.5}
    folds = {"m": [1.0, 1.1], "a": [0.5, 0.7], "b": [0.6, 0.64]}
    cell = {"nature": "smooth", "rows": 100, "fresh": 10_000, "deviations": deviations, "fresh_kl": fresh, "kl": folds}
    found = recommend.judged(cell, "a")
    assert found == {"taken": "a", "best": "b", "lost": pytest.approx(0.02), "good": [True, False]}
    assert recommend.judged(cell, "m")["good"] == [False, False]
    # On noise it is the mean predictor that must not be better.
    assert recommend.judged({**cell, "nature": "noise"}, "a")["lost"] == pytest.approx(-0.49)
    assert recommend.summary("noise", [cell]) == []


@pytest.mark.parametrize("nature", NATURES)
def test_natures(nature: str) -> None:
    features, target = draw_table(nature, 4000, 3)
    again = draw_table(nature, 4000, 3)
    assert (features == again[0]).all() and (target == again[1]).all()
    assert not (draw_table(nature, 4000, 4)[1] == target).any()
    assert target.sum(1) == pytest.approx(1) and target.min() > 0
    logs = np.log(target)
    assert 0.3 < (logs - logs.mean(1, keepdims=True)).std(0).mean() < 2
    # Neighbours have like distributions, where the features tell something.
    order = np.argsort(((features[:, None, :] - features[None, :200]) ** 2).sum(2), axis=0)[1]
    near, far = (float(((logs[:200] - logs[rows]) ** 2).mean()) for rows in (order, np.arange(200, 400)))
    assert (near < 0.9 * far) if nature != "noise" else math.isclose(near, far, rel_tol=0.2)


def test_stepwise_scores_are_constant_between_thresholds() -> None:
    features = np.random.default_rng(0).normal(size=(3000, 10))
    scores = stepwise(features, np.random.default_rng(1))
    moved = stepwise(features + 1e-9, np.random.default_rng(1))
    assert (scores == moved).all() and len(np.unique(scores, axis=0)) <= 8**3
    assert softmax(scores, axis=1).std(0).min() > 0.02
