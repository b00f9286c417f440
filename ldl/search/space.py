"""The file of a hyperparameter search: the space of options, and the plan of the search."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ldl.command.arguments import dotted, plain, typed
from ldl.command.command_line import Command
from ldl.command.configs import find_config, read_config, read_option
from ldl.errors import LDLError, naming
from ldl.options import Option
from ldl.search.comparison import read_options
from ldl.search.selection import Setting
from ldl.validation.yaml_text import dump, resolve, resolved

if TYPE_CHECKING:
    from optuna.trial import Trial

Number = int | float

PLAN_PREFIX = "--tune."
"""Beginning of command-line options that replace those of the file."""
DIMENSION_FORMS = "{values: [a, b]}, {min: 1, max: 8}, {min: 1, max: 8, step: 2} or {min: 0.0001, max: 0.1, log: true}"


@dataclass(frozen=True)
class Dimension:
    """One option of the search space.

    Attributes:
        name: Dotted name.
        values: Values to choose from; empty for a range.
        low: Lowest value of a range. A range between whole numbers has only whole numbers.
        high: Highest value, inclusive.
        step: Distance of two values; None for a continuous range.
        log: Whether the logarithm is sampled uniformly.
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

    def as_floats(self) -> Dimension:
        """Return the same range for an option that takes any number."""
        return replace(self, low=float(self.low), high=float(self.high), step=self.step and float(self.step))

    @property
    def ends(self) -> list[Any]:
        """All ``values``, or both ends of the range."""
        return list(self.values) or [self.low, self.high]

    @property
    def points(self) -> list[Any]:
        """All values as Optuna stores them. Raises LDLError for a continuous range."""
        if self.values:
            return [_label(value) for value in self.values]
        step = 1 if self.is_whole and self.step is None and not self.log else self.step
        if step is None:
            raise LDLError(f"tune.space.{self.name} has no end of values for sampler grid; give a step, or values")
        return list(_steps(self.low, self.high, step))

    def suggest(self, trial: Trial) -> Any:
        """Return the value that the sampler proposes."""
        if self.values:
            return self.value(trial.suggest_categorical(self.name, self.points))
        if self.is_whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.log)

    def value(self, label: Any) -> Any:
        """Return the value that Optuna stores as ``label``: lists and mappings are stored as JSON."""
        same = (value for value in self.values if (type(_label(value)), _label(value)) == (type(label), label))
        return next(same, label)


def _label(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value)


def grid_size(space: list[Dimension]) -> int:
    """Return the number of points of a space. Raises LDLError for a continuous range."""
    return math.prod(len(each.points) for each in space)


def read_space(entries: Any) -> list[Dimension]:
    """Return the space of ``tune.space`` of a file. Raises LDLError for a mistake."""
    if not isinstance(entries, dict) or not entries:
        raise LDLError(f"tune.space is {entries!r}, but must map dotted options to values, such as {DIMENSION_FORMS}")
    return [_read_dimension(str(name), entry) for name, entry in entries.items()]


@dataclass(frozen=True)
class _Entry:
    """Form of a dimension in a file: values alone, or a range with a step or a logarithm."""

    values: list[Any] | None = None
    min: int | float | None = None
    max: int | float | None = None
    step: int | float | None = None
    log: bool = False


def _read_dimension(name: str, entries: Any) -> Dimension:
    where = f"tune.space.{name}"
    if not isinstance(entries, dict):
        raise LDLError(f"{where} is {entries!r}, but must be one of {DIMENSION_FORMS}")
    entries = {name: typed(where, entry) if name == "values" else resolved(entry) for name, entry in entries.items()}
    entry = read_options(_Entry, entries, where, {})
    low, high, step, log = entry.min, entry.max, entry.step, entry.log
    if entry.values is not None:
        distinct = {json.dumps(value) for value in entry.values}
        if len(entries) > 1 or not 2 <= len(distinct) == len(entry.values):
            raise LDLError(
                f"{where} is {entries}, but values must be a list of two or more, each another, and stand alone"
            )
        return Dimension(name, tuple(entry.values))
    if low is None or high is None or (log and step is not None):
        raise LDLError(f"{where} is {entries}, but must be one of {DIMENSION_FORMS}")
    if not low < high:
        raise LDLError(f"{where} is empty: min {low} must be below max {high}")
    if log and low <= 0:
        raise LDLError(f"{where}: min {low} has no logarithm; give one above 0, or leave log out")
    if step is not None and not 0 < step <= high - low:
        raise LDLError(f"{where}: step {step} must be above 0 and at most max - min, {high - low:g}")
    dimension = Dimension(name, (), low, high, step, log)
    if not all(isinstance(number, int) for number in (low, high, step or 0)):
        dimension = dimension.as_floats()
    return dimension if step is None else replace(dimension, high=dimension.points[-1])


def _steps(low: Number, high: Number, step: Number) -> Iterator[Number]:
    """Yield the values of a range in decimal arithmetic: 0.3 and not 0.1 + 0.2."""
    first, last, by = (Decimal(str(number)) for number in (low, high, step))
    for number in range(int((last - first) // by) + 1):
        yield type(low)(first + number * by)


@dataclass(frozen=True)
class SearchPlan:
    """The options of ``tune`` besides its space.

    Attributes:
        trials: Number of settings to try, in every fold if ``nested``; a grid has no more than its points.
        metric: Metric of the held-out rows, as in ``results.json``.
        sampler: ``tpe`` (Bergstra et al., NIPS 2011), ``random``, or all points of a ``grid``.
        pruner: Rule that ends trials early by the metric after epochs and inner folds: ``median`` ends those below
            the median of the others, ``hyperband`` (Li et al., JMLR 2018), or ``none``.
        seed: Seed of the sampler.
        inner_folds: 1 evaluates on the validation set of the fold, more cross-validate inside training and validation
            set.
        nested: Whether each fold has a search of its own, so that all of them can be tested.
    """

    trials: int = 40
    metric: str = "kl"
    sampler: Literal["tpe", "random", "grid"] = "tpe"
    pruner: Literal["median", "hyperband", "none"] = "median"
    seed: int = 0
    inner_folds: int = 1
    nested: bool = False

    def deciding_options(self) -> dict[str, Any]:
        """Return the options that decide a trial; a search with another number of trials continues."""
        return {name: value for name, value in asdict(self).items() if name not in ("trials", "nested")}


PLAN_RANGES = {"trials": Option(least=1), "seed": Option(least=0, most=2**32 - 1), "inner_folds": Option(least=1)}


def read_plan(entries: dict[str, Any], where: str = "tune") -> SearchPlan:
    """Return the plan of a file. Raises LDLError for an unknown option or a value out of range."""
    plan = read_options(SearchPlan, entries, where, PLAN_RANGES)
    return replace(plan, metric=plan.metric.removeprefix("val_"))  # as the log names it


@dataclass(frozen=True)
class TuneFile:
    """A search file with the rest of the command line.

    Attributes:
        plan: The plan of the search.
        space: The space, without options that the command line fixes.
        args: The command line of the run without the search.
    """

    plan: SearchPlan
    space: list[Dimension]
    args: list[str]

    def command(self, setting: Setting) -> list[str]:
        """Return the command line of a run that trains a setting."""
        return [*self.args, *dotted(setting), "--stage", "fit"]


def read_tuning(command: Command) -> TuneFile:
    """Read the search of a command line.

    Raises:
        LDLError: There is not exactly one file with a space, or it has a mistake.
    """
    file = command.stage_config
    path, rest = Path(find_config(file)), read_config(file)
    tune = rest.pop("tune")
    rest.pop("stage", None)
    plan_options = [each for each in command.arguments if each.name.startswith(PLAN_PREFIX)]
    if not isinstance(tune, dict):
        raise LDLError(f"{path}: tune is {tune!r}, but must be a mapping with a space, such as {{space: ...}}")
    for option in plan_options:
        value = read_option(option.name, option.value)
        tune[option.name.removeprefix(PLAN_PREFIX)] = resolve(value) if isinstance(value, str) else value
    space = tune.pop("space", None)
    plan = read_plan(resolved(tune), f"{path}: tune")
    with naming(str(path)):
        dimensions = read_space(space)
    fixed = {each.option for each in command.arguments}
    free = [dimension for dimension in dimensions if plain(dimension.name) not in fixed]
    if not free:
        raise LDLError(f"{path}: the command line gives all options of tune.space; leave one of them out")
    words: list[str] = []
    for each in command.arguments:
        if each.is_config and each.value == file:
            words += ["-c", dump(rest)] if rest else []
        elif each not in plan_options:
            words += each.words
    return TuneFile(plan, free, words)
