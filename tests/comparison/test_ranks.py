"""Ranks over measures, sets and folds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ldl.comparison import ranks
from ldl.comparison.ranks import bars, best_rank, critical_difference, draw_ranks


def test_settings_are_ranked_over_the_measures() -> None:
    scores = [{"kl": 0.1, "cosine": 0.5}, {"kl": 0.2, "cosine": 0.9}, {"kl": 0.15, "cosine": 0.9}]
    for names, best in (("kl",), 0), (("cosine",), 1), (("kl", "cosine"), 2):
        assert best_rank([{name: row[name] for name in names} for row in scores]) == best


def test_what_is_not_finite_is_never_best() -> None:
    assert best_rank([{"kl": math.nan}, {"kl": 0.3}, {"kl": math.inf}]) == 1
    assert best_rank([{"cosine": math.nan}, {"cosine": 0.3}]) == 1


@pytest.mark.parametrize(("count", "quantile"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_is_that_of_the_tables(count: int, quantile: float) -> None:
    """Demsar 2006, Table 5."""
    assert critical_difference(count, 8) == pytest.approx(quantile * (count * (count + 1) / 48) ** 0.5, rel=2e-3)


def test_bars_end_at_the_first_and_the_last_rank_and_overlap_as_they_would_beyond() -> None:
    rng = np.random.default_rng(0)
    overlapping = []
    for _ in range(100):
        count, blocks = int(rng.integers(2, 9)), int(rng.integers(2, 30))
        average = (
            np.array([rng.permutation(count) + 1.0 for _ in range(blocks)]).mean(0)
            if rng.random() < 0.5
            else (np.sort(rng.uniform(1, count, count)))
        )
        lower, upper = bars(average, blocks)
        low, high = average - lower, average + upper
        assert low.min() >= 1 - 1e-9 and high.max() <= count + 1e-9 and min(lower.min(), upper.min()) >= 0
        apart = np.abs(average[:, None] - average) > critical_difference(count, blocks)
        np.testing.assert_array_equal((low[:, None] > high) | (low > high[:, None]), apart)
        overlapping.append(apart.any())
    assert 5 < sum(overlapping) < 95


@pytest.mark.parametrize("blocks", [1, 3])
def test_no_rank_is_drawn_below_the_first(blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a single set, half the critical difference of eight methods is more than all ranks."""
    figures = []
    monkeypatch.setattr(ranks, "save", lambda figure, path: figures.append(figure))
    draw_ranks(list("abcdefgh"), np.tile(np.arange(1.0, 9), (blocks, 1)), tmp_path / "ranks.png", "folds")
    (axis,) = figures[0].axes
    places = np.concatenate([line.get_xdata() for line in axis.lines])
    segments = np.concatenate([part for lines in axis.collections for part in lines.get_segments()])[:, 0]
    for drawn in (places, segments):
        assert drawn.min() == 1 and drawn.max() == 8
    assert axis.get_xlim() == (0.8, 8.2)
    assert ("overlap" in axis.get_title()) == (blocks > 1) and ("one of folds" in axis.get_title()) == (blocks == 1)


def test_ranks_are_drawn(tmp_path: Path) -> None:
    path = draw_ranks(["a", "b"], np.array([[1, 2], [2, 1], [1, 2]]), tmp_path / "ranks.png", "folds")
    assert path.stat().st_size > 1000
