"""A study that processes share: how many trials there are, what dead processes leave, what a resumed search draws."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from ldl.errors import LDLError
from ldl.tuning.plan import Plan
from ldl.tuning.space import read_space
from ldl.tuning.study import ATTEMPTS, JOURNALS, MARKS, SharedStudy, state_of

SPACE = {"x": {"min": -3.0, "max": 3.0}, "kind": {"values": ["a", [1]]}}
Open = Callable[..., SharedStudy]

DYING = """
import os, signal, sys
from pathlib import Path
from ldl.tuning.plan import Plan
from ldl.tuning.space import read_space
from ldl.tuning.study import SharedStudy
claim = SharedStudy(Path(sys.argv[1]), 0, "one", Plan(trials=3), read_space(eval(sys.argv[2])), False).claim()
print(claim.setting, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def study(tmp_path: Path) -> Open:
    """The study of this folder, as another process would open it."""

    def go(space: dict[str, Any] = SPACE, maximize: bool = False, **plan: Any) -> SharedStudy:
        return SharedStudy(tmp_path, 0, "one", Plan(**plan), read_space(space), maximize)

    return go


def value(setting: dict[str, Any]) -> float:
    return (setting["x"] - 1) ** 2 + (setting["kind"] == "a")


def work(opened: Open, most: int = 10**6, **plan: Any) -> list[dict[str, Any]]:
    """Do trials in a process of its own each, as cells are; what they tried."""
    tried = []
    while len(tried) < most and (claim := opened(**plan).claim()) is not None:
        claim.complete(value(claim.setting))
        tried.append(claim.setting)
    return tried


def test_best_and_the_number_of_trials(study: Open, tmp_path: Path) -> None:
    tried = work(study, trials=12)
    found = study(trials=12)
    assert len(tried) == 12 and found.missing == 0
    assert found.setting(found.best) == min(tried, key=value)
    largest = study(trials=12, maximize=True)
    assert largest.setting(largest.best) == max(tried, key=value)
    assert len(work(study, trials=14)) == 2  # more of them go on
    assert not list((tmp_path / MARKS).iterdir())


def test_two_do_not_do_the_same_and_no_more_than_wanted(study: Open) -> None:
    first, second = study(trials=2), study(trials=2)
    claims = [first.claim(), second.claim()]
    assert first.claim() is None and second.claim() is None
    assert claims[0] is not None and claims[1] is not None and claims[0].setting != claims[1].setting
    claims[0].fail("no such thing")
    claims[1].prune()
    assert second.counts == {"complete": 0, "pruned": 1, "failed": 1, "lost": 0}
    with pytest.raises(LDLError, match="no trial of fold 0 was completed; no such thing"):
        _ = second.best


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_search_that_goes_on_draws_what_it_would_have(sampler: str, tmp_path: Path) -> None:
    def opener(name: str) -> Open:
        return lambda **plan: SharedStudy(
            tmp_path / name, 0, "one", Plan(sampler=sampler, **plan), read_space(SPACE), False
        )

    whole = work(opener("whole"), trials=12)
    assert work(opener("parts"), most=5, trials=12) + work(opener("parts"), trials=12) == whole
    assert len({setting["x"] for setting in whole}) == 12
    assert work(opener("other"), trials=2, seed=1) != whole[:2]


def test_the_grid_is_tried_once_each(study: Open) -> None:
    space = {"x": {"min": 1, "max": 3}, "kind": {"values": ["a", [1]]}}
    claim = study(space, sampler="grid", trials=40).claim()
    assert claim is not None
    claim.give_back()
    tried = work(study, space=space, sampler="grid", trials=40)
    assert sorted(map(str, tried)) == sorted(str({"x": x, "kind": kind}) for x in (1, 2, 3) for kind in ("a", [1]))


def test_a_dead_process_leaves_its_trial_to_others(study: Open, tmp_path: Path) -> None:
    words = [sys.executable, "-c", DYING, str(tmp_path), repr(SPACE)]
    dead = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    assert study(trials=3).counts["lost"] == 0  # nobody has looked
    tried = work(study, trials=3)
    assert str(tried[0]) == dead.stdout.strip() and len(tried) == 3
    assert study(trials=3).counts == {"complete": 3, "pruned": 0, "failed": 0, "lost": 1}


def test_a_setting_that_kills_is_given_up(study: Open) -> None:
    for attempt in range(ATTEMPTS):
        claim = study(trials=2).claim()
        assert claim is not None
        if attempt == 0:
            first = claim.setting
        assert claim.setting == first
        claim._mark.release()  # as the system does for a dead process
    assert first not in work(study, trials=2)
    found = study(trials=2)
    assert found.counts == {"complete": 1, "pruned": 0, "failed": 1, "lost": ATTEMPTS - 1}


def test_what_a_process_tells_that_was_taken_for_dead_is_left_out(study: Open) -> None:
    claim = study(trials=1).claim()
    assert claim is not None
    claim._mark.release()  # as a file system looks that hands no locks on
    assert [state_of(trial) for trial in study(trials=1).trials] == ["running"]
    assert len(work(study, trials=1)) == 1
    best = study(trials=1).best.value
    claim.complete(-1.0)
    claim.fail("late")
    assert study(trials=1).counts["complete"] == 1 and study(trials=1).best.value == best


def test_a_line_that_was_cut_off_is_dropped(study: Open, tmp_path: Path) -> None:
    work(study, trials=2)
    with (tmp_path / JOURNALS / "0.journal").open("ab") as stream:
        stream.write(b'{"op_code":4,"wor')
    assert len(work(study, trials=3)) == 1 and study(trials=3).missing == 0
