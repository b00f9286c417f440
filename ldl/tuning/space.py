"""The search space: options of a run by their dotted names, and the values that each may take."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ldl.errors import LDLError, did_you_mean

if TYPE_CHECKING:
    from optuna.trial import Trial

Number = int | float

KEYS = ("values", "min", "max", "step", "log")
EXAMPLES = "{values: [a, b]}, {min: 1, max: 8}, {min: 1, max: 8, step: 2} or {min: 0.0001, max: 0.1, log: true}"
MOST_POINTS = 100_000
"""Of a grid; one with more is a slip."""


@dataclass(frozen=True)
class Dimension:
    """One option.

    Attributes:
        name: Its dotted name.
        values: What to choose from; empty for a range.
        low: The least value of a range; a range between whole numbers has whole numbers alone.
        high: The greatest, which belongs to it.
        step: Between two values, from ``low`` on; None of a continuous range.
        log: Whether logarithms are drawn evenly.
    """

    name: str
    values: tuple[Any, ...] = ()
    low: Number = 0
    high: Number = 0
    step: Number | None = None
    log: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it is a range of whole numbers."""
        return not self.values and isinstance(self.low, int) and isinstance(self.high, int)

    def in_floats(self) -> Dimension:
        """The same range for an option that takes any number."""
        step = None if self.step is None else float(self.step)
        return Dimension(self.name, self.values, float(self.low), float(self.high), step, self.log)

    @property
    def ends(self) -> list[Any]:
        """All ``values``, or both ends of the range."""
        return list(self.values) or [self.low, self.high]

    @property
    def points(self) -> list[Any]:
        """All values. Raises LDLError for a continuous range."""
        if self.values:
            return list(self.values)
        step = 1 if self.is_whole and self.step is None and not self.log else self.step
        if step is None:
            raise LDLError(f"tune.space.{self.name} has no end of values for sampler grid; give a step, or values")
        return [_beyond(self.low, step, number) for number in range(_steps(self.low, self.high, step) + 1)]

    def suggest(self, trial: Trial) -> Any:
        """The value that the sampler takes."""
        if self.values:
            return self.value(trial.suggest_categorical(self.name, [_label(value) for value in self.values]))
        if self.is_whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.log)

    def label(self, value: Any) -> Any:
        """A value as the study has it, which knows no lists and mappings."""
        return _label(value) if self.values else value

    def value(self, label: Any) -> Any:
        """The value of a :meth:`label`."""
        return next(value for value in self.values if _same(_label(value), label)) if self.values else label


def read_space(given: Any) -> list[Dimension]:
    """The space that ``tune.space`` of a file says. Raises LDLError."""
    if not isinstance(given, dict) or not given:
        raise LDLError(f"tune.space is {given!r}, but must map dotted options to values, such as {EXAMPLES}")
    return [_read(str(name), entry) for name, entry in given.items()]


def _read(name: str, given: Any) -> Dimension:
    where = f"tune.space.{name}"
    if not isinstance(given, dict):
        raise LDLError(f"{where} is {given!r}, but must be one of {EXAMPLES}")
    for key in given:
        if key not in KEYS:
            raise LDLError(
                f"{where} has no option {key!r}{did_you_mean(str(key), KEYS)} (its options: {', '.join(KEYS)})"
            )
    if "values" in given:
        values = given["values"]
        if len(given) > 1 or not isinstance(values, list) or len({json.dumps(value) for value in values}) < 2:
            raise LDLError(f"{where} is {given}, but values must be a list of two or more and stand alone")
        if len({json.dumps(value) for value in values}) < len(values):
            raise LDLError(f"{where} has a value twice in {values}; leave one out")
        return Dimension(name, tuple(values))
    return _range(name, where, given)


def _range(name: str, where: str, given: dict[str, Any]) -> Dimension:
    log = given.get("log", False)
    if not {"min", "max"} <= set(given) or not isinstance(log, bool) or (log and "step" in given):
        raise LDLError(f"{where} is {given}, but must be one of {EXAMPLES}")
    low, high = _number(where, "min", given["min"]), _number(where, "max", given["max"])
    step = None if given.get("step") is None else _number(where, "step", given["step"])
    if not low < high:
        raise LDLError(f"{where} is empty: min {low} must be below max {high}")
    if log and low <= 0:
        raise LDLError(f"{where}: min {low} has no logarithm; give one above 0, or leave log out")
    if step is not None and not (step > 0 and _steps(low, high, step) >= 1):
        raise LDLError(f"{where}: step {step} must be above 0 and at most max - min, {high - low:g}")
    if not all(isinstance(number, int) for number in (low, high, step or 0)):
        low, high, step = float(low), float(high), None if step is None else float(step)
    if step is not None:
        high = _beyond(low, step, _steps(low, high, step))
    return Dimension(name, (), low, high, step, log)


def _number(where: str, key: str, given: Any) -> Number:
    try:
        # YAML takes 1e-4, which lacks a point, for text.
        number = float(given) if isinstance(given, str) else given
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise LDLError(f"{where}: {key} is {given!r}, but must be a number")
    return number


def _steps(low: Number, high: Number, step: Number) -> int:
    """How many steps there are in a range, counted as the numbers are written."""
    return int((Decimal(str(high)) - Decimal(str(low))) // Decimal(str(step)))


def _beyond(low: Number, step: Number, steps: int) -> Number:
    """So many steps from ``low``, which gives 0.3, and not 0.1 + 0.2."""
    return type(low)(Decimal(str(low)) + steps * Decimal(str(step)))


def _label(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other
