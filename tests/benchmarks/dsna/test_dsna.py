"""The loop that DSNA's solver is compared with, the forests' made-up rows, and the nested choice of Table I."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from benchmarks.dsna import forest, solver, table1
from ldl.data import TabularValues
from ldl.methods.dsna.sparse import approximate


def test_loop_and_solver_agree() -> None:
    points, query, anchors = solver.problems(3, 20)
    found = approximate(points, query, anchors, solver.SPARSITY, solver.ATTRACTION, tolerance=1e-8)
    for number, objective in enumerate(found.objective.tolist()):
        own = solver.loop(points[number].numpy(), query[number].numpy(), anchors[number].numpy())
        assert own == pytest.approx(objective, rel=2e-3)


def test_forests_learn_the_made_up_direction() -> None:
    data = forest.made_up(400, 12)
    assert data.features.shape == (400, 12) and len(data.train) == 360 and len(data.test) == 40
    values = data.values.numpy()
    constant = np.abs(values[data.train].mean() - values[data.test]).mean()
    for took, predicted in (forest.oblique(data, {"trees": 3}), forest.axis_aligned(data, None, 3)):
        assert took.processor > 0 and np.abs(predicted - values[data.test]).mean() < 0.9 * constant


def test_settings_are_chosen_without_the_person_tested(tmp_path: Path) -> None:
    features = np.random.default_rng(0).normal(size=(60, 3))
    people = {"features": features, "value": features @ [3.0, -2.0, 0.0] + 30, "group": np.arange(60) // 5}
    np.savez(tmp_path / "people.npz", **people)
    data = TabularValues(path=str(tmp_path / "people.npz"), val_fraction=0)
    data.setup()
    persons, values, seen = data.groups, data.values, []

    def predict(train: np.ndarray, test: np.ndarray, setting: dict, later: list[dict]) -> list[np.ndarray]:
        seen.append(test)
        assert not set(persons[train]) & set(persons[test])
        return [Ridge(**setting).fit(features[train], values[train]).predict(features[test])]

    settings = table1.grid(alpha=[1e4, 1e-3])
    found = table1.predict_all(data, predict, settings, {"ridge": [{}]})["ridge"]
    assert found["chosen"] == [{"alpha": 1e-3}] * table1.QUARTERS
    assert np.abs(np.array(found["predicted"]) - values).max() < 0.01
    assert [len(test) for test in seen[-12:]] == [5] * 12


def test_old_people_are_counted_apart() -> None:
    assert table1.means(np.array([1.0, 3.0]), np.array([20.0, 50.0])) == ("2.000", "3.00")
