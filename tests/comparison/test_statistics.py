"""Statistics of comparisons are those of the books."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ldl.comparison.statistics import best_rank, critical_difference, draw_ranks, p_value, standard_error, verdict


def test_settings_are_ranked_over_the_measures() -> None:
    scores = [{"kl": 0.1, "cosine": 0.5}, {"kl": 0.2, "cosine": 0.9}, {"kl": 0.15, "cosine": 0.9}]
    for names, best in (("kl",), 0), (("cosine",), 1), (("kl", "cosine"), 2):
        assert best_rank([{name: row[name] for name in names} for row in scores]) == best


@pytest.mark.parametrize(("count", "quantile"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_is_that_of_the_tables(count: int, quantile: float) -> None:
    """Demsar 2006, Table 5."""
    assert critical_difference(count, 8) == pytest.approx(quantile * (count * (count + 1) / 48) ** 0.5, rel=2e-3)


def test_verdicts() -> None:
    ours = np.array([0.1, 0.12, 0.11, 0.13])
    noise = np.array([0.001, -0.001, 0.002, 0.0])
    assert verdict(ours, ours + 0.05 + noise, "kl") == "win"
    assert verdict(ours, ours + 0.05 + noise, "cosine") == "loss"
    assert verdict(ours, ours + 5 * noise - 0.001, "kl") == "tie"
    assert verdict(ours, ours + 1e-9, "kl") == "tie"
    assert verdict(ours, ours - 0.01, "kl") == "loss"


def test_ranks_are_drawn(tmp_path: Path) -> None:
    path = draw_ranks(["a", "b"], np.array([[1, 2], [2, 1], [1, 2]]), tmp_path / "ranks.png", "folds")
    assert path.stat().st_size > 1000


def test_what_is_not_finite_is_never_best() -> None:
    assert best_rank([{"kl": math.nan}, {"kl": 0.3}, {"kl": math.inf}]) == 1
    assert best_rank([{"cosine": math.nan}, {"cosine": 0.3}]) == 1


def test_p_values_and_standard_errors() -> None:
    ours, other = np.array([0.1, 0.2, 0.4, 0.1]), np.array([0.2, 0.2, 0.5, 0.3])
    assert standard_error(ours) == pytest.approx(np.std(ours, ddof=1) / 2)
    assert p_value(ours, other) == pytest.approx(0.0917, abs=1e-4)  # t = -sqrt(6), three degrees of freedom
    assert p_value(ours, ours) == 1 and p_value(ours, ours + 0.1) == 0 and math.isnan(p_value(ours[:1], other[:1]))
    assert math.isnan(standard_error(ours[:1]))
