"""Paired tests over the same folds, and ranks."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import rankdata, studentized_range, ttest_rel

from ldl.charts.drawing import save
from ldl.comparison.figures import direction

CONFIDENCE = 0.9
"""Of the paired t-tests, as in Peng et al. 2018."""


def p_value(ours: np.ndarray, other: np.ndarray) -> float:
    """Of a two-sided paired t-test over the same folds, (folds,) each; 1 where they are equal, NaN of a single one."""
    if len(ours) < 2:
        return math.nan
    difference = ours - other
    if np.allclose(difference, 0, atol=1e-6):
        return 1.0
    return 0.0 if np.allclose(difference, difference[0]) else float(ttest_rel(ours, other).pvalue)


def verdict(ours: np.ndarray, other: np.ndarray, measure: str) -> str:
    """``win``, ``tie`` or ``loss`` of the first, by a two-sided paired t-test over the same folds."""
    if not p_value(ours, other) < 1 - CONFIDENCE:
        return "tie"
    return "win" if direction(measure) * (ours - other).mean() < 0 else "loss"


def standard_error(values: np.ndarray) -> float:
    """Of the mean of (n,) values; NaN of a single one."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def best_rank(scores: list[dict[str, float]]) -> int:
    """The first of those with the lowest mean rank over their measures; what is not finite ranks last."""
    ranks = []
    for name in scores[0]:
        column = [direction(name) * row[name] for row in scores]
        ranks.append(rankdata([value if math.isfinite(value) else math.inf for value in column]))
    return int(np.mean(ranks, axis=0).argmin())


def critical_difference(count: int, blocks: int, alpha: float = 0.05) -> float:
    """Nemenyi's: average ranks of ``count`` methods over ``blocks``, such as sets, differ if further apart.

    Demsar, JMLR 2006, section 3.2.2.
    """
    quantile = float(studentized_range.ppf(1 - alpha, count, np.inf)) / np.sqrt(2)
    return quantile * float(np.sqrt(count * (count + 1) / (6 * blocks)))


def draw_ranks(names: list[str], table: np.ndarray, path: Path, blocks: str = "sets") -> Path:
    """Average ranks, the best first, each with half the critical difference to both sides.

    Args:
        names: The methods.
        table: (blocks, methods) ranks, 1 is best.
        path: The picture.
        blocks: What the ranks are averaged over.
    """
    average = table.mean(0)
    order = np.argsort(average, kind="stable")
    figure = Figure(figsize=(7, 0.36 * len(names) + 1.4), layout="constrained")
    axis = figure.subplots()
    places = np.arange(len(names))
    distance = critical_difference(len(names), len(table))
    axis.errorbar(average[order], places, xerr=distance / 2, fmt="o", capsize=3)
    axis.set_yticks(places, [names[number] for number in order])
    axis.invert_yaxis()
    axis.set_xlabel("average rank by KL")
    axis.set_title(
        f"{len(table)} {blocks}; bars that do not overlap differ (Nemenyi, critical difference {distance:.2f})"
    )
    axis.title.set_fontsize(9)
    return save(figure, path)
