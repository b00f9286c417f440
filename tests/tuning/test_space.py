"""The search space and the plan: what a file may say, and what is drawn."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import FixedTrial

from ldl.errors import LDLError
from ldl.tuning.plan import Plan, read_plan
from ldl.tuning.space import Dimension, read_space
from ldl.tuning.study import grid


def one(entry: object) -> Dimension:
    return read_space({"x": entry})[0]


def test_ranges() -> None:
    trial = FixedTrial({"x": 4})
    assert one({"min": 2, "max": 9}).suggest(trial) == 4
    assert trial.distributions["x"] == IntDistribution(2, 9)
    trial = FixedTrial({"x": 0.01})
    one({"min": "1e-4", "max": 0.1, "log": True}).suggest(trial)
    assert trial.distributions["x"] == FloatDistribution(1e-4, 0.1, log=True)
    assert one({"min": 0, "max": 1}).in_floats() == one({"min": 0.0, "max": 1})
    # What lies beyond the last step is not drawn.
    assert one({"min": 1, "max": 8, "step": 3}) == Dimension("x", (), 1, 7, 3)
    assert one({"min": 0.0, "max": 0.3, "step": 0.1}).points == [0, 0.1, 0.2, 0.3]
    assert one({"min": 0.2, "max": 0.3, "step": 0.1}).points == [0.2, 0.3]


@given(low=st.integers(-50, 50), size=st.integers(1, 60), step=st.integers(1, 60))
@settings(max_examples=40)
def test_points_are_those_of_the_range(low: int, size: int, step: int) -> None:
    if step <= size:
        assert one({"min": low, "max": low + size, "step": step}).points == list(range(low, low + size + 1, step))


def test_values_of_any_type() -> None:
    values = [[], [64, 32], None, "none", 1, 1.0, True, {"a": 1}]
    dimension = one({"values": values})
    labels = [dimension.label(value) for value in values]
    assert all(label is None or isinstance(label, bool | int | float | str) for label in labels)
    back = [dimension.value(label) for label in labels]
    assert back == values and list(map(type, back)) == list(map(type, values))


def test_grid() -> None:
    space = read_space({"a": {"min": 1, "max": 2}, "b": {"values": ["x", [3]]}})
    assert grid(space) == [{"a": a, "b": b} for a in (1, 2) for b in ("x", "[3]")]


WRONG: dict[str, tuple[object, list[str]]] = {
    "no mapping": ([1, 2], ["tune.space.x is [1, 2]", "{values: [a, b]}"]),
    "misspelt": ({"mim": 1, "max": 2}, ["has no option 'mim'", "did you mean 'min'"]),
    "one end": ({"min": 1}, ["is {'min': 1}, but must be one of"]),
    "empty": ({"min": 3, "max": 3}, ["is empty: min 3 must be below max 3"]),
    "no number": ({"min": "low", "max": 3}, ["min is 'low', but must be a number"]),
    "NaN": ({"min": float("nan"), "max": 3}, ["min is nan"]),
    "bool": ({"min": False, "max": 3}, ["min is False"]),
    "log of 0": ({"min": 0, "max": 3, "log": True}, ["min 0 has no logarithm"]),
    "log and step": ({"min": 1, "max": 3, "log": True, "step": 1}, ["must be one of"]),
    "long step": ({"min": 1, "max": 3, "step": 5}, ["step 5 must be above 0 and at most max - min, 2"]),
    "one value": ({"values": [1]}, ["a list of two or more"]),
    "twice": ({"values": [1, 2, 1]}, ["a value twice"]),
    "values and more": ({"values": [1, 2], "log": True}, ["stand alone"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_refused_spaces(case: str) -> None:
    entry, words = WRONG[case]
    with pytest.raises(LDLError) as said:
        one(entry)
    assert all(word in str(said.value) for word in words), said.value


def test_plan() -> None:
    assert read_plan({"metric": "val_kl", "trials": 7}) == Plan(trials=7)
    assert read_plan({"trials": 7}).depends_on() == read_plan({"nested": True}).depends_on()
    for given_, words in (
        ({"trails": 3}, "tune has no option 'trails'; did you mean 'trials'?"),
        ({"trials": 0}, "tune.trials 0 must be a whole number, in 1.."),
        ({"trials": True}, "tune.trials True must be a whole number"),
        ({"sampler": "tpee"}, "tune.sampler 'tpee' must be one of tpe, random, grid; did you mean 'tpe'?"),
        ({"pruner": None}, "tune.pruner None must be one of median, hyperband, none"),
        ({"nested": "yes"}, "tune.nested 'yes' must be true or false"),
        ({"metric": 3}, "tune.metric 3 must be the name of a metric"),
    ):
        with pytest.raises(LDLError) as said:
            read_plan(given_)
        assert words in str(said.value)
    with pytest.raises(LDLError, match=r"tune.space.x has no end of values for sampler grid"):
        grid([Dimension("x", (), 0.0, 1.0)])
