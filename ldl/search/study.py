"""The trials of a hyperparameter search in Optuna's journal storage, which many processes share, and their report."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from ldl.charts.drawing import new_figure, save
from ldl.errors import LDLError, explaining
from ldl.jobs.workers import one_line
from ldl.reports.files import write_csv
from ldl.run.run_dir import SEARCHES
from ldl.search.selection import FoldNumber, Setting
from ldl.search.space import Dimension, SearchPlan, grid_size

if TYPE_CHECKING:
    import optuna

FINISHED_STATES = ("complete", "pruned", "failed")
"""States of trials that count; ``lost`` ones were stopped, killed, or still run in another process."""
MAX_LOST_TRIALS = 3
"""Lost trials after which a point of a grid, which may need too much memory, is not tried again."""
MIN_IMPORTANCE_TRIALS = 10
"""Completed trials below which the importance of options is not estimated."""
MAX_DRAWN_FOLDS = 10
"""Folds with a line of their own in the chart."""


def load_optuna() -> Any:
    """Return the library. Raises LDLError if it is not installed."""
    with explaining("--stage tune needs Optuna", "pip install 'ldl[tune]'", (ImportError,)):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


@dataclass
class Study:
    """The trials of a fold, or of all rows, that processes share.

    Attributes:
        folder: The run directory, which all processes see.
        fold: The fold, or :data:`~ldl.search.selection.ALL`.
        identity: Digest of whatever decides a trial; trials with another one are ignored.
        plan: The plan of the search.
        space: The search space.
        maximize: Whether higher values are better.
    """

    folder: Path
    fold: FoldNumber
    identity: str
    plan: SearchPlan
    space: list[Dimension]
    maximize: bool

    @property
    def journal(self) -> Path:
        """The file of the trials."""
        return self.folder / SEARCHES / f"{self.fold}.journal"

    @cached_property
    def study(self) -> optuna.Study:
        """The study of Optuna, which the first process creates."""
        optuna = load_optuna()
        storages, pruners = optuna.storages.journal, optuna.pruners
        self.journal.parent.mkdir(parents=True, exist_ok=True)
        lock = storages.JournalFileSymlinkLock(str(self.journal))
        _drop_torn_line(self.journal, lock)
        pruner = {"median": pruners.MedianPruner, "hyperband": pruners.HyperbandPruner, "none": pruners.NopPruner}
        return optuna.create_study(
            storage=storages.JournalStorage(storages.JournalFileBackend(str(self.journal), lock_obj=lock)),
            study_name=self.identity,
            direction="maximize" if self.maximize else "minimize",
            pruner=pruner[self.plan.pruner](),
            load_if_exists=True,
        )

    @property
    def trials(self) -> list[optuna.trial.FrozenTrial]:
        """All trials on the disk."""
        return self.study.get_trials(deepcopy=False)

    @property
    def wanted(self) -> int:
        """The number of trials to finish."""
        return min(self.plan.trials, grid_size(self.space)) if self.plan.sampler == "grid" else self.plan.trials

    @property
    def missing(self) -> int:
        """The number of trials that are not finished; trials that other processes run now are among them."""
        if self.plan.sampler != "grid":
            return max(0, self.wanted - sum(self.counts[state] for state in FINISHED_STATES))
        states = [(json.dumps(trial.params, sort_keys=True), state_of(trial)) for trial in self.trials]
        lost = Counter(point for point, state in states if state == "lost")
        done = {point for point, state in states if state in FINISHED_STATES or lost[point] >= MAX_LOST_TRIALS}
        return max(0, self.wanted - len(done))

    @property
    def counts(self) -> dict[str, int]:
        """The number of trials in each state."""
        states = Counter(map(state_of, self.trials))
        return {state: states[state] for state in (*FINISHED_STATES, "lost")}

    def run_trial(self, evaluate: Callable[[optuna.Trial, Setting], float]) -> None:
        """Run one trial if any is missing; an error of ``evaluate`` is stored with it."""
        if self.missing:
            self.study.sampler = self._sampler()
            self.study.optimize(partial(self._evaluate, evaluate), n_trials=1, catch=(Exception,))

    def _evaluate(self, evaluate: Callable[[optuna.Trial, Setting], float], trial: optuna.Trial) -> float:
        try:
            return evaluate(trial, {each.name: each.suggest(trial) for each in self.space})
        except load_optuna().TrialPruned:
            raise
        except Exception as error:
            trial.set_user_attr("error", one_line(error))
            raise
        except BaseException:
            if self.plan.sampler != "grid":  # a grid tries its point again
                trial.study.enqueue_trial(trial.params)
            raise

    def _sampler(self) -> Any:
        samplers = load_optuna().samplers
        if self.plan.sampler == "grid":
            return samplers.GridSampler({each.name: each.points for each in self.space}, seed=self.plan.seed)
        # A new seed for each trial: a search that continues would draw the same values again.
        seed = int(np.random.SeedSequence([self.plan.seed, len(self.trials)]).generate_state(1)[0])
        return samplers.TPESampler(seed=seed) if self.plan.sampler == "tpe" else samplers.RandomSampler(seed=seed)

    @property
    def best(self) -> optuna.trial.FrozenTrial:
        """The best completed trial, the first of equal ones. Raises LDLError if there is none."""
        if not self.counts["complete"]:
            errors = [error_of(trial) for trial in self.trials if state_of(trial) == "failed"]
            reason = errors[0] if errors else "all were pruned"
            raise LDLError(f"tune: no trial of fold {self.fold} was completed; {reason}")
        return self.study.best_trial

    @property
    def best_setting(self) -> Setting:
        """The options of the best trial."""
        return {each.name: each.value(self.best.params[each.name]) for each in self.space}


def _drop_torn_line(path: Path, lock: Any) -> None:
    """Cut off an incomplete last line, which a full disk leaves and Optuna cannot continue."""
    lock.acquire()
    try:
        content = path.read_bytes() if path.is_file() else b""
        if content and not content.endswith(b"\n"):
            os.truncate(path, content.rfind(b"\n") + 1)
    finally:
        lock.release()


def state_of(trial: optuna.trial.FrozenTrial) -> str:
    """Return ``complete``, ``pruned``, ``failed``, ``lost`` or ``waiting``."""
    state = str(trial.state.name).lower()
    return {"fail": "failed" if error_of(trial) else "lost", "running": "lost"}.get(state, state)


def error_of(trial: optuna.trial.FrozenTrial) -> str:
    """Return the error of a failed trial; empty for others."""
    return str(trial.user_attrs.get("error", ""))


Studies = Mapping[FoldNumber, Study]


def write_trials(path: Path, studies: Studies, metric: str) -> None:
    """Write every trial: fold, number, state, value, seconds, setting and error.

    The value of a pruned trial is the last that it reported.
    """
    names = [dimension.name for dimension in next(iter(studies.values())).space]
    rows = []
    for fold, study in studies.items():
        for trial in study.trials:
            if (state := state_of(trial)) != "waiting":
                seconds = "" if trial.duration is None else f"{trial.duration.total_seconds():.2f}"
                setting = [str(trial.params.get(name, "")) for name in names]
                value = "" if trial.value is None else repr(trial.value)
                rows.append([fold, trial.number, state, value, seconds, *setting, error_of(trial)])
    write_csv(path, ["fold", "number", "state", metric, "seconds", *names, "error"], rows)


def draw_search(path: Path, studies: Studies, metric: str) -> Path:
    """Draw the values of all trials with the best so far, and the importance of options if there are enough trials."""
    weights = importance(next(iter(studies.values()))) if len(studies) == 1 else {}
    figure, panels = new_figure(9 if weights else 6, 3.6, 1, 2 if weights else 1, squeeze=False)
    history = panels[0, 0]
    for fold, study in list(studies.items())[:MAX_DRAWN_FOLDS]:
        _draw_history(history, study, f"fold {fold}")
    history.set_xlabel("trial")
    history.set_ylabel(metric)
    if len(studies) > 1:
        history.legend(fontsize=7)
    if weights:
        panels[0, 1].barh(list(weights)[::-1], list(weights.values())[::-1])
        panels[0, 1].set_xlabel("importance")
    return save(figure, path)


def importance(study: Study) -> dict[str, float]:
    """Return the importance of each option, the highest first, by PED-ANOVA (Watanabe et al., IJCAI 2023).

    Empty for one option and for few trials.
    """
    if len(study.space) < 2 or study.counts["complete"] < MIN_IMPORTANCE_TRIALS:
        return {}
    estimates = load_optuna().importance
    try:
        return dict(estimates.get_param_importances(study.study, evaluator=estimates.PedAnovaImportanceEvaluator()))
    except (RuntimeError, ValueError):  # all values are equal
        return {}


def _draw_history(axis: Axes, study: Study, label: str) -> None:
    done = [trial for trial in study.trials if state_of(trial) == "complete"]
    numbers, values = [trial.number for trial in done], np.array([trial.value for trial in done])
    best = np.maximum.accumulate(values) if study.maximize else np.minimum.accumulate(values)
    line = axis.step(numbers, best, where="post", label=label)[0]
    axis.plot(numbers, values, "o", color=line.get_color(), markersize=3, alpha=0.5)
