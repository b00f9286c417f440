"""The recommendation: the best, unless the mean predictor is within one standard error of it over the folds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_rel

from ldl.cells.store import Row
from ldl.comparison.outcome import Outcome
from ldl.comparison.report import table
from ldl.comparison.statistics import against_best


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
        taken = "d" if "d" in near else best
        assert (outcome.best, outcome.recommended) == (best, taken)
        assert outcome.simpler == near[: near.index(taken)]
        if taken != best:
            assert outcome.p == pytest.approx(against_best(folds, "kl"), nan_ok=True)
            assert Outcome(outcome.cells, 0.9).p == pytest.approx(against_best(folds, "kl", 0.9), nan_ok=True)
            assert outcome.p["d"] > ttest_rel(folds["d"], folds[best]).pvalue
            assert outcome.reason.startswith("features are not shown to help: d ") and best in outcome.reason
        else:
            assert outcome.reason.startswith(f"{best} has the lowest mean KL, ")
            assert outcome.reason.endswith(f"standard error of it: {', '.join(outcome.simpler)}") == bool(
                outcome.simpler
            )
        assert math.isnan(outcome.p[best]) and math.isfinite(outcome.p["b" if best != "b" else "a"])
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


def test_a_simpler_one_is_named_and_not_taken() -> None:
    """Half a standard error behind, where chance may well hide more, against a mean predictor far behind."""
    best = np.array([0.2, 0.2, 0.2, 0.2])
    outcome = Outcome({"mean": cells(best + 1), "linear": cells(best + [0.03, -0.02, 0.03, -0.02]), "big": cells(best)})
    assert outcome.within("linear") and outcome.recommended == "big"
    assert outcome.reason == "big has the lowest mean KL, 0.2000; simpler and within one standard error of it: linear"


def test_equal_candidates_and_a_single_fold() -> None:
    assert Outcome({"mean": cells([0.3, 0.4]), "other": cells([0.3, 0.4])}).recommended == "mean"
    assert Outcome({"mean": cells([0.3]), "other": cells([0.2])}).recommended == "other"
