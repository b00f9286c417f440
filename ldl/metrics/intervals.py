"""What calibrated intervals and sets of labels hold, and how large they are."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from ldl.labels import LabelSpace
from ldl.metrics.measure import Measure

INTERVAL_LEVELS = (50, 80, 90)
"""In percent: those of ``predictions.csv`` and ``results.json``, in this order."""


def interval_measures(labels: LabelSpace) -> list[Measure]:
    """``interval_coverage50`` and ``interval_width50`` and so on, or ``set_coverage50`` and ``set_size50``.

    They are there where a checkpoint holds calibration, and are of its intervals, or sets of nominal labels: the share
    of true values, of a grid along both axes, or of the true mass that is held; and the mean width, in the labels'
    unit, or number of labels.
    """
    measures = []
    for number, level in enumerate(INTERVAL_LEVELS):
        if labels.has_values:
            measures.append(
                Measure(f"interval_coverage{level}", partial(_holds, number), None, False, True, "interval")
            )
            measures.append(Measure(f"interval_width{level}", partial(_width, number), None, True, True, "interval"))
        else:
            measures.append(Measure(f"set_coverage{level}", partial(_holds_mass, number), None, False, True, "set"))
            measures.append(Measure(f"set_size{level}", partial(_size, number), None, False, True, "set"))
    return measures


def _holds(number: int, ends: Tensor, value: Tensor) -> Tensor:
    ends = ends[:, number]
    return ((ends[..., 0] <= value) & (value <= ends[..., 1])).double()


def _width(number: int, ends: Tensor, value: Tensor) -> Tensor:
    return ends[:, number, ..., 1] - ends[:, number, ..., 0]


def _holds_mass(number: int, sets: Tensor, target: Tensor) -> Tensor:
    return (sets[:, number] * target).sum(-1)


def _size(number: int, sets: Tensor, target: Tensor) -> Tensor:
    return sets[:, number].sum(-1)
