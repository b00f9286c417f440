"""Tests of comparisons are those of the books, corrected for shared training rows and for their number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_rel

from ldl.comparison.statistics import against_best, holm, p_value, standard_error, verdict


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


def test_what_is_equal_or_single_has_no_test() -> None:
    ours, other = np.array([0.1, 0.2, 0.4, 0.1]), np.array([0.2, 0.2, 0.5, 0.3])
    assert p_value(ours, other, 0) == pytest.approx(0.0917, abs=1e-4)  # t = -sqrt(6), three degrees of freedom
    assert p_value(ours, ours) == 1 and p_value(ours, ours + 0.1) == 0 and math.isnan(p_value(ours[:1], other[:1]))
    assert standard_error(ours) == pytest.approx(np.std(ours, ddof=1) / 2) and math.isnan(standard_error(ours[:1]))


def test_verdicts() -> None:
    ours = np.array([0.1, 0.12, 0.11, 0.13])
    noise = np.array([0.001, -0.001, 0.002, 0.0])
    assert verdict(ours, ours + 0.05 + noise, "kl") == "win"
    assert verdict(ours, ours + 0.05 + noise, "cosine") == "loss"
    assert verdict(ours, ours + 5 * noise - 0.001, "kl") == "tie"
    assert verdict(ours, ours + 1e-9, "kl") == "tie"
    assert verdict(ours, ours - 0.01, "kl") == "loss"
    # t is 2.74 of independent folds, where 2.35 is enough, and 1.79 corrected.
    near = ours + 5 * noise + 0.0063
    assert verdict(ours, near, "kl", 0) == "win" and verdict(ours, near, "kl") == "tie"


def test_holm_by_hand() -> None:
    # Step down: .01 * 4, .02 * 3, .03 * 2, and .04 * 1 is not less than the one before.
    assert holm(np.array([0.03, 0.01, 0.04, 0.02])) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm(np.array([0.5, math.nan, 0.9])) == pytest.approx([1, math.nan, 1], nan_ok=True)
    assert len(holm(np.array([]))) == 0


def test_holm_rejects_what_its_steps_reject() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        p, level = rng.random(int(rng.integers(1, 8))) ** 3, rng.random() / 2
        rejected = set()
        for step, number in enumerate(np.argsort(p)):
            if p[number] > level / (len(p) - step):
                break
            rejected.add(number)
        adjusted = holm(p)
        assert set(np.flatnonzero(adjusted <= level)) == rejected
        assert (adjusted >= p).all() and (np.diff(adjusted[np.argsort(p)]) >= 0).all() and adjusted.max() <= 1


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
    # Without a rival that is worse by far, the same one is told from the best sooner.
    assert against_best({"best": best, "far": far}, measure, 0.2)["far"] == pytest.approx(plain["far"])
