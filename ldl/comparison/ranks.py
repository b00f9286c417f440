"""Ranks over sets or folds: the setting that is best over several measures, and the chart of average ranks."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import rankdata, studentized_range

from ldl.charts.drawing import save
from ldl.comparison.figures import direction


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


def bars(average: np.ndarray, blocks: int) -> np.ndarray:
    """What is drawn to both sides of average ranks (methods,): (2, methods), the lower and the upper lengths.

    Half the critical difference, which ends at the first and at the last rank: bars overlap there as they would beyond.
    Ranks of a single block have none, since nothing is known of how they vary.
    """
    half = critical_difference(len(average), blocks) / 2 if blocks > 1 else 0.0
    return np.stack([np.minimum(half, average - 1), np.minimum(half, len(average) - average)])


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
    axis.errorbar(average[order], places, xerr=bars(average, len(table))[:, order], fmt="o", capsize=3)
    axis.set_xlim(0.8, len(names) + 0.2)
    axis.set_yticks(places, [names[number] for number in order])
    axis.invert_yaxis()
    axis.set_xlabel("average rank by KL" if len(table) > 1 else "rank by KL")
    axis.set_title(_title(names, len(table), blocks))
    axis.title.set_fontsize(9)
    return save(figure, path)


def _title(names: list[str], count: int, blocks: str) -> str:
    if count == 1:
        return f"one of {blocks}: its ranks alone tell nothing apart"
    distance = critical_difference(len(names), count)
    return f"{count} {blocks}\nbars that do not overlap differ (Nemenyi, critical difference {distance:.2f})"
