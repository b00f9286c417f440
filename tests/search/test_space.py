"""The search space and the plan of a search."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import FixedTrial

from ldl.errors import LDLError
from ldl.search.space import Dimension, SearchPlan, grid_size, read_plan, read_space

GRID = {"x": {"min": 1, "max": 3}, "kind": {"values": ["a", [1]]}}


def one(entry: object) -> Dimension:
    return read_space({"x": entry})[0]


def test_ranges() -> None:
    trial = FixedTrial({"x": 4})
    assert one({"min": 2, "max": 9}).suggest(trial) == 4
    assert trial.distributions["x"] == IntDistribution(2, 9)
    trial = FixedTrial({"x": 0.01})
    one({"min": "1e-4", "max": 0.1, "log": True}).suggest(trial)
    assert trial.distributions["x"] == FloatDistribution(1e-4, 0.1, log=True)
    assert one({"min": 0, "max": 1}).as_floats() == one({"min": 0.0, "max": 1})
    assert one({"min": 1, "max": 8, "step": 3}) == Dimension("x", (), 1, 7, 3)
    assert one({"min": 0.0, "max": 0.3, "step": 0.1}).points == [0, 0.1, 0.2, 0.3]


@given(low=st.integers(-50, 50), size=st.integers(1, 60), step=st.integers(1, 60))
@settings(max_examples=40)
def test_points_are_those_of_the_range(low: int, size: int, step: int) -> None:
    if step <= size:
        assert one({"min": low, "max": low + size, "step": step}).points == list(range(low, low + size + 1, step))


def test_values_of_any_type() -> None:
    values = [[], [64, 32], None, "none", 1, 1.0, True, {"a": 1}]
    dimension = one({"values": values})
    labels = dimension.points
    assert all(label is None or isinstance(label, bool | int | float | str) for label in labels)
    back = [dimension.value(label) for label in labels]
    assert back == values and list(map(type, back)) == list(map(type, values))


WRONG: list[tuple[object, str]] = [
    ([1, 2], "tune.space.x is [1, 2], but must be one of {values: [a, b]}"),
    ({"mim": 1, "max": 2}, "has no option 'mim'; did you mean 'min'"),
    ({"min": 3, "max": 3}, "is empty: min 3 must be below max 3"),
    ({"min": "low", "max": 3}, "x.min 'low' must be int or float"),
    ({"min": 0, "max": 3, "log": True}, "min 0 has no logarithm"),
    ({"min": 1, "max": 3, "log": True, "step": 1}, "must be one of"),
    ({"min": 1, "max": 3, "step": 5}, "step 5 must be above 0 and at most max - min, 2"),
    ({"min": 1, "max": 3, "log": "sometimes"}, "x.log 'sometimes' must be bool"),
    ({"values": [1]}, "a list of two or more"),
]


@pytest.mark.parametrize(("entry", "words"), WRONG)
def test_wrong_spaces(entry: object, words: str) -> None:
    with pytest.raises(LDLError, match=re.escape(words)):
        one(entry)


@pytest.mark.parametrize(("log", "is_log"), [("on", True), ("off", False), ("false", False), (True, True)])
def test_words_of_the_logarithm(log: object, is_log: bool) -> None:
    assert one({"min": 1e-4, "max": 0.1, "log": log}).log is is_log


def test_plan() -> None:
    assert read_plan({"nested": "yes", "trials": "07", "inner_folds": "2"}) == SearchPlan(
        nested=True, trials=7, inner_folds=2
    )
    assert not read_plan({"nested": "off"}).nested
    assert read_plan({"metric": "val_kl", "trials": 7}) == SearchPlan(trials=7)
    assert read_plan({"trials": 7}).deciding_options() == read_plan({"nested": True}).deciding_options()
    for given_, words in (
        ({"trails": 3}, "tune has no option 'trails'; did you mean 'trials'?"),
        ({"trials": 0}, "tune.trials 0 must be int at least 1"),
        ({"trials": True}, "tune.trials True must be int"),
        ({"sampler": "tpee"}, "tune.sampler 'tpee' must be one of tpe, random, grid"),
        ({"nested": "2"}, "tune.nested 2 must be bool"),
    ):
        with pytest.raises(LDLError) as raised:
            read_plan(given_)
        assert words in str(raised.value)
    assert grid_size(read_space(GRID)) == 6
    with pytest.raises(LDLError, match=r"tune.space.x has no end of values for sampler grid"):
        grid_size([Dimension("x", (), 0.0, 1.0)])
