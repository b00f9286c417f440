"""Tests over folds as in the literature, ranks with critical differences, and the recommendation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_rel

from ldl.jobs.store import Result
from ldl.search.compare import table
from ldl.search.statistics import (
    Outcome,
    against_best,
    best_rank,
    critical_difference,
    difference_interval,
    draw_ranks,
    holm,
    mean_and_std,
    p_value,
    spread,
    standard_error,
    verdict,
)


def test_mean_and_standard_deviation() -> None:
    mean, std = mean_and_std([1, 2, 4])
    assert mean == pytest.approx(7 / 3) and std == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert math.isnan(mean_and_std([1])[1])
    assert [spread(values, 2) for values in ([1, 2], [1], [])] == ["1.50 ± 0.71", "1.00", ""]


def by_hand(ours: np.ndarray, other: np.ndarray, ratio: float) -> float:
    """Nadeau & Bengio 2003: t = mean / sqrt((1/J + n2/n1) variance), J - 1 degrees of freedom."""
    gaps = [float(a) - float(b) for a, b in zip(ours, other)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1)
    return 2 * float(student.cdf(-abs(mean) / math.sqrt((1 / len(gaps) + ratio) * variance), len(gaps) - 1))


def test_p_values_are_those_of_the_corrected_test() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        folds = int(rng.integers(2, 12))
        ours, other = rng.normal(1, 0.3, (2, folds))
        assert p_value(ours, other, 0) == pytest.approx(ttest_rel(ours, other).pvalue, rel=1e-9)
        assert p_value(ours, other, 0.3) == pytest.approx(by_hand(ours, other, 0.3), rel=1e-9)
        assert p_value(ours, other) == pytest.approx(by_hand(ours, other, 1 / (folds - 1)), rel=1e-9)
        assert p_value(ours, other) == pytest.approx(p_value(other + 3, ours + 3), rel=1e-9)
        assert ttest_rel(ours, other).pvalue < p_value(ours, other, 0.1) < p_value(ours, other, 0.5) < 1


def test_the_interval_of_a_difference_ends_where_the_test_turns() -> None:
    rng = np.random.default_rng(0)
    for folds, ratio, confidence in ((2, None, 0.95), (5, None, 0.95), (10, 0.3, 0.8), (4, 0, 0.9)):
        ours, other = rng.normal(1, 0.3, (2, folds))
        ends = difference_interval(ours, other, ratio, confidence)
        assert sum(ends) / 2 == pytest.approx((ours - other).mean())
        assert [p_value(ours - end, other, ratio) for end in ends] == pytest.approx([1 - confidence] * 2)
    assert np.isnan(difference_interval(ours[:1], other[:1])).all()


def test_what_is_equal_or_single_has_no_test() -> None:
    ours, other = np.array([0.1, 0.2, 0.4, 0.1]), np.array([0.2, 0.2, 0.5, 0.3])
    assert p_value(ours, other, 0) == pytest.approx(0.0917, abs=1e-4)  # t = -sqrt(6), three degrees of freedom
    assert p_value(ours, ours) == 1 and p_value(ours, ours + 0.1) == 0 and math.isnan(p_value(ours[:1], other[:1]))
    assert standard_error(ours) == pytest.approx(np.std(ours, ddof=1) / 2) and math.isnan(standard_error(ours[:1]))


def test_verdicts() -> None:
    ours, noise = np.array([0.1, 0.12, 0.11, 0.13]), np.array([0.001, -0.001, 0.002, 0.0])
    assert verdict(ours, ours + 0.05 + noise, "kl") == "win"
    assert verdict(ours, ours + 0.05 + noise, "cosine") == "loss"
    assert verdict(ours, ours + 1e-9, "kl") == "tie"
    # t is 2.74 of independent folds, where 2.35 is enough, and 1.79 corrected.
    near = ours + 5 * noise + 0.0063
    assert verdict(ours, near, "kl", 0) == "win" and verdict(ours, near, "kl") == "tie"


def test_holm_by_hand() -> None:
    # Step down: .01 * 4, .02 * 3, .03 * 2, and .04 * 1 is not less than the one before.
    assert holm(np.array([0.03, 0.01, 0.04, 0.02])) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm(np.array([0.5, math.nan, 0.9])) == pytest.approx([1, math.nan, 1], nan_ok=True)
    assert len(holm(np.array([]))) == 0


@pytest.mark.parametrize(("measure", "sign"), [("kl", 1), ("cosine", -1)])
def test_all_are_held_against_the_best(measure: str, sign: int) -> None:
    rng = np.random.default_rng(2)
    best = rng.normal(size=10)
    noise = 0.1 * rng.normal(size=10)
    near, far, farther = (best + sign * (gap + noise) for gap in (0.1, 0.2, 0.4))
    folds = {"far": far, "best": best, "few": best[:9] + sign, "near": near, "farther": farther}
    p = against_best(folds, measure, 0.2)
    assert list(p) == list(folds) and math.isnan(p["best"]) and math.isnan(p["few"])
    plain = {name: by_hand(folds[name], best, 0.2) for name in ("farther", "far", "near")}
    assert plain["farther"] < plain["far"] < plain["near"] == pytest.approx(p["near"])
    assert p["farther"] == pytest.approx(3 * plain["farther"]) and p["far"] == pytest.approx(2 * plain["far"])
    # Without a rival that is worse by far, the same one differs from the best sooner.
    assert against_best({"best": best, "far": far}, measure, 0.2)["far"] == pytest.approx(plain["far"])


def test_settings_are_ranked_over_the_measures() -> None:
    scores = [{"kl": 0.1, "cosine": 0.5}, {"kl": 0.2, "cosine": 0.9}, {"kl": 0.15, "cosine": 0.9}]
    for names, best in (("kl",), 0), (("cosine",), 1), (("kl", "cosine"), 2):
        assert best_rank([{name: row[name] for name in names} for row in scores]) == best
    assert best_rank([{"kl": math.nan}, {"kl": 0.3}, {"kl": math.inf}]) == 1  # the last ones are not finite


@pytest.mark.parametrize(("count", "quantile"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_is_that_of_the_tables(count: int, quantile: float) -> None:
    """Demsar 2006, Table 5."""
    assert critical_difference(count, 8) == pytest.approx(quantile * (count * (count + 1) / 48) ** 0.5, rel=2e-3)


@pytest.mark.parametrize("blocks", [1, 3])
def test_no_rank_is_drawn_below_the_first(blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a single set, half the critical difference of eight methods is more than all ranks."""
    figures = []
    monkeypatch.setattr("ldl.search.statistics.save", lambda figure, path: figures.append(figure))
    draw_ranks(list("abcdefgh"), np.tile(np.arange(1.0, 9), (blocks, 1)), tmp_path / "ranks.png", "folds")
    (axis,) = figures[0].axes
    places = np.concatenate([line.get_xdata() for line in axis.lines])
    segments = np.concatenate([part for lines in axis.collections for part in lines.get_segments()])[:, 0]
    for drawn in (places, segments):
        assert drawn.min() == 1 and drawn.max() == 8
    assert axis.get_xlim() == (0.8, 8.2)
    assert ("overlap" in axis.get_title()) == (blocks > 1) and ("one of folds" in axis.get_title()) == (blocks == 1)


def cells(values: list[float] | np.ndarray) -> list[Result]:
    return [{"fold": n, "setting": {}, "seconds": 2.0, "measures": {"kl": float(kl)}} for n, kl in enumerate(values)]


def test_the_rule_by_hand() -> None:
    """The best, unless the first, which is the mean predictor, is within one standard error."""
    rng, taken = np.random.default_rng(0), set()
    for _ in range(40):
        folds = {name: rng.normal(1 + 0.1 * number, 0.3, 6) for number, name in enumerate("dcba")}
        outcome = Outcome({name: cells(values) for name, values in folds.items()}, 0.9)
        best = min(folds, key=lambda name: folds[name].mean())
        gaps = {name: values - folds[best] for name, values in folds.items()}
        near = [name for name, gap in gaps.items() if gap.mean() <= gap.std(ddof=1) / math.sqrt(6)]
        taken.add(outcome.recommended)
        assert (outcome.best, outcome.recommended) == (best, "d" if "d" in near else best)
        assert outcome.simpler == near[: near.index(outcome.recommended)]
        assert ("features are not shown to help" in outcome.reason) == (outcome.recommended != best)
        assert outcome.p == pytest.approx(against_best(folds, "kl", 0.9), nan_ok=True)
        assert outcome.ranks.sum(1) == pytest.approx(10)
    assert len(taken) > 1


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
    assert outcome.is_near_best("linear") and outcome.recommended == "big"
    assert outcome.reason == "big has the lowest mean KL, 0.2000; simpler and within one standard error of it: linear"


def test_equal_candidates_and_a_single_fold() -> None:
    assert Outcome({"mean": cells([0.3, 0.4]), "other": cells([0.3, 0.4])}).recommended == "mean"
    assert Outcome({"mean": cells([0.3]), "other": cells([0.2])}).recommended == "other"
