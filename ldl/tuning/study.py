"""A study that many processes share: they claim trials one by one, and try again what a dead one has left."""

from __future__ import annotations

import itertools
import json
import math
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock

from ldl.errors import LDLError
from ldl.tuning.claims import ERROR, Claim, Mark, is_held
from ldl.tuning.plan import Plan
from ldl.tuning.space import MOST_POINTS, Dimension

if TYPE_CHECKING:
    import optuna

JOURNALS = "journals"
MARKS = ".working"
"""Folders of a run directory."""
MARK, ATTEMPT = "process", "attempt"
"""Attributes of trials: the mark of the process that does it, and the how many-th one that is."""
DONE = ("complete", "pruned", "failed")
"""States of trials that count; those lost with their process do not."""
ATTEMPTS = 3
"""Processes that may be lost over a setting, as of memory, before it counts as failed."""

Setting = dict[str, Any]


def load_optuna() -> Any:
    """The library. Raises LDLError where it is not installed."""
    try:
        import optuna
    except ImportError:
        raise LDLError("--stage tune needs Optuna: pip install 'ldl[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class SharedStudy:
    """The trials for one part of the data.

    Args:
        folder: The run directory, which all processes see.
        part: Which part of the data; each has a journal of its own.
        spec: Changes with anything that a trial depends on; trials of another one are not looked at.
        plan: How the search is done.
        space: What is searched.
        maximize: Whether the highest value is the best.
    """

    def __init__(
        self, folder: Path, part: int | str, spec: str, plan: Plan, space: list[Dimension], maximize: bool
    ) -> None:
        self.folder, self.part, self.spec = folder, part, spec
        self.plan, self.space, self.maximize = plan, space, maximize
        self._optuna = load_optuna()
        self._journal = folder / JOURNALS / f"{part}.journal"
        self._lock = FileLock(self._journal.with_suffix(".claim"))

    @cached_property
    def study(self) -> optuna.Study:
        """Optuna's, made by whoever comes first."""
        journal = self._optuna.storages.journal
        path = str(self._journal)
        self._journal.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            # A symbolic link is a lock on every file system, NFS too.
            lock = journal.JournalFileSymlinkLock(path)
            _mend(self._journal, lock)
            backend = journal.JournalFileBackend(path, lock_obj=lock)
            return self._optuna.create_study(
                storage=journal.JournalStorage(backend),
                study_name=self.spec,
                direction="maximize" if self.maximize else "minimize",
                pruner=self._pruner(),
                load_if_exists=True,
            )

    @property
    def trials(self) -> list[optuna.trial.FrozenTrial]:
        """All of them, as they are on the disk."""
        return self.study.get_trials(deepcopy=False)

    @property
    def wanted(self) -> int:
        """How many trials there are to be; a grid has an end."""
        return min(self.plan.trials, len(self._grid)) if self.plan.sampler == "grid" else self.plan.trials

    def count(self, *states: str) -> int:
        """How many trials are in these states, those of :func:`state_of`."""
        return sum(state_of(trial) in states for trial in self.trials)

    @property
    def counts(self) -> dict[str, int]:
        """How many trials are in each state that is for good."""
        return {state: self.count(state) for state in (*DONE, "lost")}

    @property
    def missing(self) -> int:
        """How many trials are not done; whether others do them just now does not matter."""
        return max(0, self.wanted - self.count(*DONE))

    def claim(self) -> Claim | None:
        """The next trial; None where all are done, or others do the last ones."""
        with self._lock:
            self._take_back()
            if self.count(*DONE, "running") >= self.wanted:
                return None
            mark = Mark(self.folder / MARKS)
            self.study.sampler = self._sampler()
            trial = self.study.ask()
            trial.set_user_attr(MARK, mark.name)
            # Here, so that others see where this one looks.
            setting = {dimension.name: dimension.suggest(trial) for dimension in self.space}
        return Claim(self.study, trial, mark, setting)

    @property
    def best(self) -> optuna.trial.FrozenTrial:
        """The best of those that were completed, of equal ones the first. Raises LDLError where there is none."""
        done = [trial for trial in self.trials if state_of(trial) == "complete"]
        if not done:
            failed = [error_of(trial) for trial in self.trials if state_of(trial) == "failed"]
            raise LDLError(
                f"tune: no trial of fold {self.part} was completed; {failed[0] if failed else 'all were pruned'}"
            )
        return min(done, key=lambda trial: -float(trial.value) if self.maximize else float(trial.value))  # type: ignore[arg-type]

    def setting(self, trial: optuna.trial.FrozenTrial) -> Setting:
        """What a trial has tried, as options."""
        return {each.name: each.value(trial.params[each.name]) for each in self.space if each.name in trial.params}

    def _take_back(self) -> None:
        """Let others try what dead processes have left; to be called alone."""
        for trial in self.trials:
            if state_of(trial) == "running" and not is_held(self.folder / MARKS, trial.user_attrs.get(MARK)):
                self.study.tell(trial.number, state=self._optuna.trial.TrialState.FAIL, skip_if_finished=True)
                attempt = trial.user_attrs.get(ATTEMPT, 1) + 1
                # Without all of its options it cannot be told again, and has cost nothing.
                if attempt <= ATTEMPTS and len(trial.params) == len(self.space):
                    self.study.enqueue_trial(trial.params, user_attrs={ATTEMPT: attempt})

    def _sampler(self) -> Any:
        """One for the next trial: its seed goes with the number, or a resumed search would draw the same again."""
        trials = self.trials
        seed = int(np.random.SeedSequence([self.plan.seed, len(trials)]).generate_state(1)[0])
        samplers = self._optuna.samplers
        if self.plan.sampler == "tpe":
            return samplers.TPESampler(seed=seed)
        if self.plan.sampler == "grid":
            known = [trial for trial in trials if state_of(trial) != "lost"]
            tried = {_key(trial.system_attrs.get("fixed_params", trial.params)) for trial in known}
            if point := next((point for point in self._grid if _key(point) not in tried), None):
                self.study.enqueue_trial(point)
        return samplers.RandomSampler(seed=seed)

    @cached_property
    def _grid(self) -> list[Setting]:
        return grid(self.space)

    def _pruner(self) -> Any:
        pruners = self._optuna.pruners
        return {"median": pruners.MedianPruner, "hyperband": pruners.HyperbandPruner, "none": pruners.NopPruner}[
            self.plan.pruner
        ]()


def state_of(trial: optuna.trial.FrozenTrial) -> str:
    """``complete``, ``pruned``, ``failed``, ``running``, ``waiting``; ``lost`` with its process is tried again."""
    state = str(trial.state.name).lower()
    return state if state != "fail" else "failed" if error_of(trial) else "lost"


def error_of(trial: optuna.trial.FrozenTrial) -> str:
    """Why a trial has failed; empty where it has not."""
    if trial.state.name != "FAIL":
        return ""
    lost = trial.user_attrs.get(ATTEMPT, 1) >= ATTEMPTS
    return str(trial.user_attrs.get(ERROR, f"its process was lost {ATTEMPTS} times; was there enough memory?" * lost))


def grid(space: list[Dimension]) -> list[Setting]:
    """All points, as the study has them. Raises LDLError for a continuous range, or far too many."""
    count = math.prod(len(each.points) for each in space)
    if count > MOST_POINTS:
        raise LDLError(f"tune.space is a grid of {count:,} points, more than {MOST_POINTS:,}; give fewer values")
    labels = [[each.label(value) for value in each.points] for each in space]
    return [dict(zip([each.name for each in space], point)) for point in itertools.product(*labels)]


def _mend(path: Path, lock: Any) -> None:
    """Cut off a last line that was not written to its end, as on a machine that went down: no line may follow it."""
    if not path.is_file() or not path.stat().st_size:
        return
    lock.acquire()
    try:
        with path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
    finally:
        lock.release()


def _key(point: Setting) -> str:
    return json.dumps(point, sort_keys=True)
