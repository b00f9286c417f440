"""The study of a search, which processes share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from optuna import TrialPruned
from optuna.trial import Trial
from places import ROOT

from ldl.errors import LDLError
from ldl.progress import Stopped
from ldl.search.space import SearchPlan, read_space
from ldl.search.study import Study

SPACE = {"x": {"min": -3.0, "max": 3.0}, "kind": {"values": ["a", [1]]}}
GRID = {"x": {"min": 1, "max": 3}, "kind": {"values": ["a", [1]]}}
Open = Callable[..., Study]

DYING = """
import os, signal, sys
from pathlib import Path
from ldl.search.space import SearchPlan, read_space
from ldl.search.study import Study
study = Study(Path(sys.argv[1]), 0, "one", SearchPlan(trials=6, sampler="grid"), read_space(eval(sys.argv[2])), False)
study.run_trial(lambda trial, setting: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.fixture
def study(tmp_path: Path) -> Open:
    """Opens the study of this folder as another process would."""

    def go(space: dict[str, Any] = SPACE, maximize: bool = False, name: str = "", **plan: Any) -> Study:
        return Study(tmp_path / name, 0, "one", SearchPlan(**plan), read_space(space), maximize)

    return go


def value(setting: dict[str, Any]) -> float:
    return (setting["x"] - 1) ** 2 + (setting["kind"] == "a")


def work(opened: Open, most: int = 10**6, **options: Any) -> list[dict[str, Any]]:
    """Run trials, each as in a process of its own; returns their settings."""
    tried: list[dict[str, Any]] = []

    def evaluate(trial: Trial, setting: dict[str, Any]) -> float:
        tried.append(setting)
        return value(setting)

    while len(tried) < most and opened(**options).missing:
        opened(**options).run_trial(evaluate)
    return tried


def test_best_and_number_of_trials(study: Open) -> None:
    tried = work(study, trials=12)
    assert len(tried) == 12 and study(trials=12).best_setting == min(tried, key=value)
    study(trials=12).run_trial(lambda trial, setting: pytest.fail("a trial too many"))
    assert len(work(study, trials=14)) == 2


def test_states(study: Open) -> None:
    def end(error: BaseException) -> Callable[..., float]:
        def evaluate(*arguments: object) -> float:
            raise error

        return evaluate

    study(trials=2).run_trial(end(ValueError("no such\nthing")))
    study(trials=2).run_trial(end(TrialPruned()))
    assert study(trials=2).counts == {"complete": 0, "pruned": 1, "failed": 1, "lost": 0}
    with pytest.raises(LDLError, match="no trial of fold 0 was completed; ValueError: no such thing"):
        _ = study(trials=2).best
    with pytest.raises(Stopped):
        study(trials=3).run_trial(end(Stopped()))
    stopped = study(trials=3).trials[2].params
    assert study(trials=3).counts["lost"] == 1 and study(trials=3).missing == 1
    work(study, trials=3)
    assert study(trials=3).trials[-1].params == stopped and study(trials=3).counts["complete"] == 1


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_a_continued_search_draws_the_same(sampler: str, study: Open) -> None:
    space, options = GRID if sampler == "grid" else SPACE, {"sampler": sampler, "trials": 12}
    whole = work(study, space=space, name="whole", **options)
    parts = work(study, 5, space=space, name="parts", **options) + work(study, space=space, name="parts", **options)
    assert parts == whole and len({str(setting) for setting in whole}) == (6 if sampler == "grid" else 12)
    assert work(study, space=space, name="other", **{**options, "trials": 2}, seed=1) != whole[:2]


def _stop(*arguments: object) -> float:
    raise Stopped


@pytest.mark.parametrize("killed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupted_trial_loses_no_point_of_a_grid(study: Open, tmp_path: Path, killed: bool) -> None:
    """A trial of a grid that was stopped stays in the journal as that of a killed process does."""
    options = {"space": GRID, "sampler": "grid", "trials": 40}
    if killed:
        words = [sys.executable, "-c", DYING, str(tmp_path), repr(GRID)]
        dead = subprocess.run(words, capture_output=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert dead.returncode == -signal.SIGKILL, dead.stderr
    else:
        with pytest.raises(Stopped):
            study(**options).run_trial(_stop)
    assert study(**options).counts["lost"] == 1
    tried = work(study, **options)
    assert sorted(map(str, tried)) == sorted(str({"x": x, "kind": kind}) for x in (1, 2, 3) for kind in ("a", [1]))


def test_a_point_that_kills_is_given_up(study: Open) -> None:
    options = {"space": {"x": {"values": [1, 2]}}, "sampler": "grid", "trials": 9}
    study(**options).run_trial(lambda trial, setting: 1.0)
    for attempt in range(3):
        assert study(**options).missing == 1, attempt
        with pytest.raises(Stopped):
            study(**options).run_trial(_stop)
    assert study(**options).missing == 0 and study(**options).counts["lost"] == 3


def test_a_torn_line_is_dropped(study: Open) -> None:
    work(study, trials=2)
    with study().journal.open("ab") as stream:
        stream.write(b'{"op_code":4,"wor')
    assert len(work(study, trials=3)) == 1 and study(trials=3).missing == 0
