"""How a search is done: the options of ``tune`` but for its space."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from ldl.errors import LDLError, did_you_mean
from ldl.options import Option

SAMPLERS = ("tpe", "random", "grid")
PRUNERS = ("median", "hyperband", "none")
RANGES = {
    "trials": Option(least=1, most=1_000_000),
    "seed": Option(least=0, most=2**32 - 1),
    "inner_folds": Option(least=1, most=1000),
}
CHOICES = {"sampler": SAMPLERS, "pruner": PRUNERS}


@dataclass(frozen=True)
class Plan:
    """What ``tune`` says besides its space.

    Attributes:
        trials: How many settings are tried, in every fold where it is ``nested``; of a grid no more than it has.
        metric: What is measured on the rows held out, as in ``results.json``; its best is looked for.
        sampler: Where to look next: ``tpe`` (Bergstra et al., NIPS 2011), ``random``, or all points of a ``grid``.
        pruner: Which trials are given up early, by what they report after epochs and inner folds: ``median`` those
            below the median of the others there, ``hyperband`` (Li et al., JMLR 2018), or ``none``.
        seed: Of the sampler.
        inner_folds: 1 holds out the validation part of the fold, more cross-validate in training and validation part.
        nested: Whether each fold has a study of its own, so that all of them can be tested; else only one fold has.
    """

    trials: int = 40
    metric: str = "kl"
    sampler: str = "tpe"
    pruner: str = "median"
    seed: int = 0
    inner_folds: int = 1
    nested: bool = False

    def depends_on(self) -> dict[str, Any]:
        """What a trial depends on: another number of them goes on where a study ended."""
        return {name: value for name, value in asdict(self).items() if name not in ("trials", "nested")}


def read_plan(given: dict[str, Any]) -> Plan:
    """The plan of a file. Raises LDLError for an unknown option, or a value out of its range."""
    known = {field.name: field for field in fields(Plan)}
    for name, value in given.items():
        if name not in known:
            names = [*known, "space"]
            raise LDLError(
                f"tune has no option {name!r}{did_you_mean(str(name), names)} (its options: {', '.join(names)})"
            )
        if name in RANGES and (type(value) is not int or not RANGES[name].accepts(value)):
            raise LDLError(f"tune.{name} {value!r} must be a whole number, {RANGES[name].range}")
        if name in CHOICES and value not in CHOICES[name]:
            near = did_you_mean(str(value), CHOICES[name])
            raise LDLError(f"tune.{name} {value!r} must be one of {', '.join(CHOICES[name])}{near}")
        if type(value) is not type(known[name].default):
            kind = type(known[name].default).__name__
            raise LDLError(
                f"tune.{name} {value!r} must be {'true or false' if kind == 'bool' else 'the name of a metric'}"
            )
    plan = Plan(**given)
    # As the log has it.
    return Plan(**{**asdict(plan), "metric": plan.metric.removeprefix("val_")})
