"""Measures of predictions on a line that need all test rows at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ldl.labels import LabelSpace
from ldl.metrics.groups import SHOTS, balanced_mae, band_groups, bands, geometric_mean, mean, shot_groups
from ldl.metrics.measure import Measure
from ldl.metrics.predictive import COVERAGES, calibration_error, coverage, crps, nll, pit

THETAS = tuple(theta for theta in range(11) if theta != 5)
"""Tolerances of the cumulative scores ``cs0`` to ``cs10``; ``cs5`` is one of the value metrics already."""

FIGURES: dict[str, Callable[[np.ndarray, float], float]] = {
    "n": lambda error, floor: float(len(error)),
    "mae": lambda error, floor: mean(np.abs(error)),
    "bias": lambda error, floor: mean(error),
    "gm": geometric_mean,
}
"""What is measured of a group: functions of its errors, and of what they are raised to in geometric means."""


@dataclass(frozen=True)
class Rows:
    """All test rows of ordinal labels.

    Attributes:
        prediction: (n, C) predicted distributions, on the simplex.
        predicted_value: (n,) decoded values.
        value: (n,) true values, in the labels' unit.
        labels: The labels.
        train_count: (n,) training instances of each instance's label; None where nobody knows them.
    """

    prediction: np.ndarray
    predicted_value: np.ndarray
    value: np.ndarray
    labels: LabelSpace
    train_count: np.ndarray | None = None

    @cached_property
    def axis(self) -> np.ndarray:
        """(C,) values of the labels."""
        return np.array(self.labels.axes[0])

    @cached_property
    def error(self) -> np.ndarray:
        """(n,) predicted less true value."""
        return np.asarray(self.predicted_value, np.float64) - np.asarray(self.value, np.float64)

    @cached_property
    def spans(self) -> np.ndarray:
        """(n, 2); see :func:`ldl.metrics.predictive.pit`."""
        return pit(self.prediction, self.value, self.axis)

    @cached_property
    def floor(self) -> float:
        """What errors are raised to in geometric means: a hundredth of the least distance of two labels."""
        return 0.01 * float(np.diff(self.axis).min()) if len(self.axis) > 1 else 0.01

    @cached_property
    def groups(self) -> dict[str, np.ndarray]:
        """Members, (n,) of bool, of the groups by training count, where that is known, and by value."""
        shots = {} if self.train_count is None else dict(shot_groups(self.train_count))
        return shots | dict(band_groups(self.value, self.labels))


def line_measures(labels: LabelSpace) -> list[Measure]:
    """The measures of ordinal labels over rows.

    ``nll``, ``crps``, ``coverage50`` to ``coverage95`` and ``calibration_error`` (:mod:`ldl.metrics.predictive`);
    ``gm`` with errors raised to a hundredth of the least distance of two labels, ``balanced_mae``, ``cs0`` to ``cs10``
    without ``cs5``. Then for every group G its size ``n_G`` and ``mae_G``: ``many``, ``medium`` and ``few``, with
    ``gm_G``; bands of ten units such as ``20_29``, with the bias (predicted less true) ``bias_G``. An empty group has
    NaN, and ``n_G`` 0.
    """
    line = partial(Measure, of="line")
    return [
        line("nll", lambda rows: mean(nll(rows.prediction, rows.value, rows.axis))),
        line("crps", lambda rows: mean(crps(rows.prediction, rows.value, rows.axis)), unit=True),
        *(line(f"coverage{p}", lambda rows, p=p: coverage(rows.spans, p), None, detail=p != 90) for p in COVERAGES),
        line("calibration_error", lambda rows: calibration_error(rows.spans)),
        line("gm", lambda rows: geometric_mean(rows.error, rows.floor), unit=True),
        line("balanced_mae", lambda rows: balanced_mae(rows.error, rows.value, rows.labels), unit=True),
        *(line(f"cs{t}", lambda rows, t=t: mean(np.abs(rows.error) <= t), True, detail=True) for t in THETAS),
        *(measure for name in SHOTS for measure in _group(name, "mae", "gm")),
        *(measure for band in bands(labels) for measure in _group(band.name, "mae", "bias")),
    ]


def _group(name: str, *figures: str) -> list[Measure]:
    size = Measure(f"n_{name}", partial(_inside, name, "n"), None, detail=True, of="line")
    return [size] + [
        Measure(
            f"{figure}_{name}", partial(_inside, name, figure), None if figure == "bias" else False,
            unit=True, detail=figure != "mae" or name not in SHOTS, of="line", size=size.name,
        )
        for figure in figures
    ]  # fmt: skip


def _inside(group: str, figure: str, rows: Rows) -> float | None:
    if group not in rows.groups:
        return None
    return FIGURES[figure](rows.error[rows.groups[group]], rows.floor)


def measure_rows(rows: Rows, measures: list[Measure] | None = None) -> dict[str, float]:
    """The figures of measures, by name, that the rows tell; None takes :func:`line_measures`."""
    measures = line_measures(rows.labels) if measures is None else measures
    figures = {measure.name: measure.function(rows) for measure in measures}
    return {name: figure for name, figure in figures.items() if figure is not None}
