"""What a search leaves behind: every trial in ``trials.csv``, and a chart of how it went."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ldl.charts.drawing import new_figure, save
from ldl.checkpoint import replacing
from ldl.tuning.study import SharedStudy, error_of, load_optuna, state_of

FEW = 10
"""Completed trials below which nothing is said of what matters."""
MOST_LINES = 10
"""Folds that get a line of their own in the chart."""


def write_trials(path: Path, studies: Mapping[Any, SharedStudy], metric: str) -> None:
    """A row a trial that is done or was lost: its part of the data, number, state, value, seconds, setting, error.

    The value of a pruned trial is the last that it reported.
    """
    names = [dimension.name for dimension in next(iter(studies.values())).space]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["fold", "number", "state", metric, "seconds", *names, "error"])
    for part, study in studies.items():
        for trial in study.trials:
            if (state := state_of(trial)) not in ("running", "waiting"):
                value = "" if trial.value is None else repr(trial.value)
                seconds = "" if trial.duration is None else f"{trial.duration.total_seconds():.2f}"
                setting = [trial.params.get(name, "") for name in names]
                rows.writerow([part, trial.number, state, value, seconds, *setting, error_of(trial)])
    with replacing(path) as stream:
        stream.write(text.getvalue().encode())


def draw_search(path: Path, studies: Mapping[Any, SharedStudy], metric: str) -> Path:
    """The values of all trials with the best so far, and where there are trials enough which options matter."""
    weights = importance(next(iter(studies.values()))) if len(studies) == 1 else {}
    figure, panels = new_figure(9 if weights else 6, 3.6, 1, 2 if weights else 1, squeeze=False)
    history = panels[0, 0]
    for part, study in list(studies.items())[:MOST_LINES]:
        _draw_history(history, study, f"fold {part}")
    history.set_xlabel("trial")
    history.set_ylabel(metric)
    if len(studies) > 1:
        history.legend(fontsize=7)
    if weights:
        panels[0, 1].barh(list(weights)[::-1], list(weights.values())[::-1])
        panels[0, 1].set_xlabel("importance")
    return save(figure, path)


def importance(study: SharedStudy) -> dict[str, float]:
    """How much each option decides about a trial being good, the most first: PED-ANOVA, Watanabe et al., IJCAI 2023.

    Empty of one option alone, and of few trials.
    """
    if len(study.space) < 2 or study.count("complete") < FEW:
        return {}
    found = load_optuna().importance
    try:
        return dict(found.get_param_importances(study.study, evaluator=found.PedAnovaImportanceEvaluator()))
    except (RuntimeError, ValueError):  # all values are equal
        return {}


def _draw_history(axis: Axes, study: SharedStudy, label: str) -> None:
    done = [trial for trial in study.trials if state_of(trial) == "complete"]
    numbers, values = [trial.number for trial in done], np.array([trial.value for trial in done])
    best = np.maximum.accumulate(values) if study.maximize else np.minimum.accumulate(values)
    line = axis.step(numbers, best, where="post", label=label)[0]
    axis.plot(numbers, values, "o", color=line.get_color(), markersize=3, alpha=0.5)
