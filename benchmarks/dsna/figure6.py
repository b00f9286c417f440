"""Figure 6 of Huang, Loy & Tang 2016, ages: error over the number of trees, their depth and the least rows of a node.

One hyperparameter is swept, the others are the paper's, and all else is as in configs/runs. The sweep shows how much
the hyperparameters matter and must not choose them, since these are test folds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from matplotlib.figure import Figure

from benchmarks.common.data import fit_rows
from benchmarks.common.items import Claim, Statement, Work
from benchmarks.dsna.ages import OBLIQUE, ONE
from benchmarks.dsna.subjects import Subjects, read_subjects
from ldl.charts.drawing import save
from ldl.heads import DSNA
from ldl.jobs.store import Result

PAPER: dict[str, Any] = {"trees": 20, "depth": 10, "min_samples": 5}
SWEEPS = {"trees": (1, 5, 10, 20, 50), "depth": (2, 4, 6, 8, 10, 12), "min_samples": (2, 5, 10, 20, 40)}
NAMES = {"trees": "trees", "depth": "greatest depth", "min_samples": "least rows of a node that splits"}
ROBUST = 0.03
"""The paper's value counts as good as the best if its error is larger by at most this share."""
FOLDS = 2


def figure_6(work: Work) -> Iterator[Claim]:
    """Judge how much the error depends on each hyperparameter, and draw the sweeps."""
    subjects = read_subjects(False, protocol="group_exclusive", folds=5, val_fraction=0)
    sweeps = {name: values[:2] for name, values in SWEEPS.items()} if work.quick else SWEEPS
    settings = {**OBLIQUE, **ONE, "tolerance": 1e-4, **PAPER, **({"trees": 2} if work.quick else {})}

    def measured(**changed: int) -> float:
        arguments = {**settings, **changed}
        rows = [
            work.result({**arguments, "fold": fold}, partial(_errors, subjects, arguments, fold))
            for fold in range(1 if work.quick else FOLDS)
        ]
        return float(sum(row["sum"] for row in rows) / sum(row["count"] for row in rows))

    found = {name: {value: measured(**{name: value}) for value in values} for name, values in sweeps.items()}
    figure = Figure(figsize=(5, 9), layout="constrained")
    figure.suptitle("FG-NET, AAM features")
    for axis, (name, by_value) in zip(figure.subplots(len(SWEEPS)), found.items()):
        axis.plot(list(by_value), list(by_value.values()), marker="o")
        axis.axvline(PAPER[name], color="0.5", linewidth=1, linestyle=":")
        axis.set(xlabel=NAMES[name], ylabel="MAE")
    save(figure, work.folder / "sweeps.png")
    for name, by_value in found.items():
        own, best = PAPER[name], min(by_value.values())
        shown = ", ".join(f"{value}: {error:.2f}" for value, error in by_value.items())
        holds = by_value.get(own, best) <= (1 + ROBUST) * best
        yield Statement(f"age, {NAMES[name]}: {own} is within {ROBUST:.0%} of the best", holds, shown, f"chosen: {own}")
    few, chosen = min(found["trees"]), found["trees"].get(PAPER["trees"], 0.0)
    yield Statement("age, one tree is worse than the chosen number", found["trees"][few] > (1 + ROBUST) * chosen,
                    f"{found['trees'][few]:.2f}, {chosen:.2f}")  # fmt: skip


def _errors(subjects: Subjects, arguments: dict[str, Any], fold: int) -> Result:
    """Return the sum and the number of absolute errors of the test rows of a fold."""
    data = subjects.data
    data.select_fold(fold)
    head = fit_rows(DSNA(**arguments, seed=fold), data, subjects.inputs, data.split.train)
    test = torch.from_numpy(data.split.test)
    predicted = head.point_estimate(subjects.inputs[test])
    assert predicted is not None
    errors = (predicted - data.columns["value"][test]).abs().flatten()
    return {"sum": float(errors.sum()), "count": len(errors)}
