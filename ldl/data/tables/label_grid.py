"""The labels that values are spread over: as given, and from the values where nobody says."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldl.errors import LDLError
from ldl.labels import LabelSpace

MOST_LABELS = 10_000
"""Every row has an entry a label, and so has every leaf: more is a mistake in the step."""

MOST_CHOSEN = 1000
"""Labels that are chosen by themselves."""

OWN_STEPS = 200
"""Values that are whole numbers, or have one to three decimals, keep their own steps up to this many of them."""


@dataclass(frozen=True)
class LabelGrid:
    """Labels ``low``, ``low + step``, ... up to ``high``, and the deviation of the distributions, in the values' unit.

    Laid over the values of the whole file, it is the same in every fold; beyond their range and quartiles, nothing of
    the test rows is in it.
    """

    low: float
    high: float
    step: float
    sigma: float

    @property
    def count(self) -> int:
        """Number of labels."""
        return math.floor((self.high - self.low) / self.step + 1e-9) + 1

    def labels(self, unit: str = "") -> LabelSpace:
        """The label space."""
        return LabelSpace.ordinal([self.low + number * self.step for number in range(self.count)], unit)

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g} in steps of {self.step:g} ({self.count}), sigma {self.sigma:g}"


def choose_grid(
    values: np.ndarray,
    low: float | None = None,
    high: float | None = None,
    step: float | None = None,
    sigma: float | None = None,
) -> LabelGrid:
    """The grid for values (N,); what is None is chosen.

    - ``step``: that of whole numbers, or of values with one to three decimals, where it makes at most 200 labels; else
      1, 2 or 5 times a power of ten, so that there are 40 to 100 labels, and more only where the middle half of the
      values would lie within fewer than ten.
    - ``sigma``: see :func:`choose_sigma`.
    - ``low`` and ``high``: the lowest and highest value, rounded outwards to a multiple of ``step``.

    Raises LDLError for more than 10,000 labels, or where more than 1,000 would have to be chosen.
    """
    first = float(values.min()) if low is None else low
    last = float(values.max()) if high is None else high
    if first > last:
        raise LDLError(f"data.low {first:g} is above data.high {last:g}; no label lies between them")
    slack = 0.0
    if step is None:
        # Rounding may put a multiple of the step a hair beside it.
        step, slack = _step(values, last - first), 1e-9
        if (last - first) / step > MOST_CHOSEN:
            quarter, half = np.quantile(values, (0.25, 0.75))
            raise LDLError(
                f"labels reach from {first:g} to {last:g}, and half of the values lie within {quarter:g} to {half:g}: "
                f"to tell these apart takes more than {MOST_CHOSEN:,} labels; take the values' logarithm, correct "
                "those far out, or set data.step and data.sigma"
            )
    if not (count := (last - first) / step) <= MOST_LABELS:
        raise LDLError(
            f"there would be {count:,.6g} labels, more than {MOST_LABELS:,}; widen data.step (null chooses it from the "
            "values), or bring data.low and data.high together"
        )
    low = math.floor(first / step + slack) * step if low is None else low
    high = math.ceil(last / step - slack) * step if high is None else high
    return LabelGrid(low, high, step, choose_sigma(step, high - low) if sigma is None else sigma)


def choose_sigma(step: float, span: float) -> float:
    """The deviation for labels of this step over this span: two steps, or one where there are fewer than 20 labels."""
    return 2 * step if span / step >= 19 else step


def _step(values: np.ndarray, span: float) -> float:
    if not span > 0:
        return 1.0
    for decimals in range(4):
        unit = 10.0**-decimals
        # Values in float32 are not quite the numbers that were typed.
        if 1 - 1e-6 <= span / unit <= OWN_STEPS and np.abs(values / unit - np.round(values / unit)).max() < 1e-4:
            return unit
    step = _round_up(span / 100)
    quarter, half = np.quantile(values, (0.25, 0.75))
    if 0 < half - quarter < 10 * step:
        step = _round_up((half - quarter) / 25)
    return max(step, 1.0) if np.all(values == np.round(values)) else step


def _round_up(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= step * (1 - 1e-9)), 10 * power)
