"""Mean and deviation, the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import fmean, stdev

from ldl.metrics import DISTRIBUTION_METRICS


def direction(measure: str) -> int:
    """1 of a measure between distributions that is better the lower it is, else -1."""
    return -1 if DISTRIBUTION_METRICS[measure].higher_is_better else 1


def mean_and_deviation(values: Iterable[float]) -> tuple[float, float]:
    """Mean and sample deviation (over n - 1) of at least one value; the deviation of a single one is NaN.

    What they are taken over, folds, seeds or trials, stands over each table.
    """
    numbers = [float(value) for value in values]
    return fmean(numbers), stdev(numbers) if len(numbers) > 1 else math.nan


def spread(values: Iterable[float], digits: int = 3) -> str:
    """``mean ± deviation`` as in :func:`mean_and_deviation`; one value alone, and an empty string for none."""
    numbers = list(values)
    if not numbers:
        return ""
    mean, deviation = mean_and_deviation(numbers)
    return f"{mean:.{digits}f}" if math.isnan(deviation) else f"{mean:.{digits}f} ± {deviation:.{digits}f}"
