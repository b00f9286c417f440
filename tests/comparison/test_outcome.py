"""The recommendation: the simplest within one standard error of the best, of differences over the folds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_rel

from ldl.comparison.cells import Row
from ldl.comparison.outcome import Outcome
from ldl.comparison.report import table


def cells(values: list[float] | np.ndarray) -> list[Row]:
    return [{"fold": n, "setting": {}, "seconds": 2.0, "measures": {"kl": float(kl)}} for n, kl in enumerate(values)]


def test_the_rule_by_hand() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        folds = {name: rng.normal(1 + 0.1 * number, 0.3, 6) for number, name in enumerate("dcba")}
        outcome = Outcome({name: cells(values) for name, values in folds.items()})
        best = min(folds, key=lambda name: folds[name].mean())
        near = []
        for name, values in folds.items():
            gaps = [mine - its for mine, its in zip(values, folds[best])]
            mean = sum(gaps) / 6
            error = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / 5 / 6)
            near += [name] if mean <= error else []
        assert (outcome.best, outcome.recommended) == (best, near[0])
        if near[0] != best:
            assert outcome.p(near[0]) == pytest.approx(ttest_rel(folds[near[0]], folds[best]).pvalue)
            assert "simplest within one standard error" in outcome.reason and best in outcome.reason
        assert math.isnan(outcome.p(best))
        assert outcome.ranks.sum(1) == pytest.approx(10)


def test_failures_are_out() -> None:
    broken = [*cells([0.1]), {"fold": 1, "error": "no such thing"}]
    outcome = Outcome({"broken": broken, "infinite": cells([0.1, math.inf]), "mean": cells([0.3, 0.4])})
    assert outcome.failed == {
        "broken": "fold 1: no such thing",
        "infinite": "fold 1: the mean KL over the test rows is inf",
    }
    assert outcome.recommended == outcome.best == "mean"
    assert [row[0] for row in table(outcome)] == ["mean", "broken", "infinite"]


def test_equal_candidates_and_a_single_fold() -> None:
    assert Outcome({"mean": cells([0.3, 0.4]), "other": cells([0.3, 0.4])}).recommended == "mean"
    assert Outcome({"mean": cells([0.3]), "other": cells([0.2])}).recommended == "other"
