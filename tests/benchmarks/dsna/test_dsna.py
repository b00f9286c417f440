"""The loop that DSNA's solver is compared with, and the forests' made-up rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.dsna import forest, solver
from ldl.methods.dsna.sparse import approximate


def test_loop_and_solver_agree() -> None:
    points, query, anchors = solver.problems(3, 20)
    found = approximate(points, query, anchors, *solver.PENALTIES, tolerance=1e-8)
    for number, objective in enumerate(found.objective.tolist()):
        own = solver.loop(points[number].numpy(), query[number].numpy(), anchors[number].numpy())
        assert own == pytest.approx(objective, rel=2e-3)


def test_solver_page(command: Callable[..., str], page: Callable[[str], Path]) -> None:
    written = page("solver")
    command(solver, "--sizes", 40, "--queries", 3, "--rounds", 1, "--page", written)
    rows = [line.strip("| ").split(" | ") for line in written.read_text().splitlines() if " | 40 | " in line]
    assert [row[0] for row in rows] == ["250", "8"] and all(float(row[-2]) < 1e-4 for row in rows)


def test_forests_learn_the_made_up_direction() -> None:
    data = forest.made_up(400, 12)
    assert data.features.shape == (400, 12) and len(data.train) == 360 and len(data.test) == 40
    values = data.values.numpy()
    constant = np.abs(values[data.train].mean() - values[data.test]).mean()
    for took, predicted in (forest.oblique(data, {"trees": 3}), forest.axis_aligned(data, None, 3)):
        assert took.processor > 0 and np.abs(predicted - values[data.test]).mean() < 0.9 * constant
