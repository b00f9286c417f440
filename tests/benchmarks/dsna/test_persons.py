"""The nested choice of settings, the claims made of it, and ages that training does not see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from benchmarks.common.claims import Number
from benchmarks.common.items import Work
from benchmarks.dsna import table1, unseen
from benchmarks.dsna.persons import QUARTERS, Method, People, better, choose, grid, inner_of_chosen, predict_all
from ldl.data import TabularValues


@pytest.fixture
def people(tmp_path: Path) -> People:
    features = np.random.default_rng(0).normal(size=(120, 3))
    values = np.round(np.clip(features @ [13.0, -8.0, 0.0] + 30, 0, 69))
    np.savez(tmp_path / "people.npz", features=features, value=values, group=np.arange(120) // 10)
    data = TabularValues(path=str(tmp_path / "people.npz"), val_fraction=0, folds=5, scaling="none")
    data.setup()
    return People(data, data.scaled, features, data.values, data.groups, np.arange(120))  # type: ignore[arg-type]


def test_settings_are_chosen_without_the_persons_tested(people: People, tmp_path: Path) -> None:
    seen: list[tuple[np.ndarray, np.ndarray, Any]] = []

    def predict(train: np.ndarray, test: np.ndarray, setting: Any, later: Any) -> list[np.ndarray]:
        seen.append((train, test, setting))
        model = Ridge(setting["alpha"]).fit(people.features[train], people.values[train])
        return [option.get("scale", 1) * model.predict(people.features[test]) for option in later]

    work = Work(tmp_path / "work", False)
    axes = [[{"scale": 3.0}, {"scale": 2.0}], [{"scale": 1.0}], [{"scale": 4.0}, {"no": "better"}]]
    method = Method("ridge", predict, grid(alpha=[1e5, 1e-3]), {"plain": [[{}]], "scaled": axes})
    for quarter in range(QUARTERS):
        seen.clear()
        choice = choose(work, people, method, quarter)
        tested = np.flatnonzero(people.quarter == quarter)
        assert seen and not any(np.isin(people.persons[part], tested).any() for rows in seen for part in rows[:2])
        assert not any(set(people.persons[train]) & set(people.persons[test]) for train, test, _ in seen)
        assert choice == ({"alpha": 1e-3}, {"plain": {}, "scaled": {"scale": 1.0}})
    seen.clear()
    found = predict_all(work, people, method)
    assert sorted(len(test) for _, test, _ in seen) == [10] * 12 and all(len(train) == 110 for train, _, _ in seen)
    assert np.abs(found["scaled"] - people.values).mean() < 2
    count = len(seen)
    assert predict_all(Work(tmp_path / "work", False), people, method)["plain"].tolist() == found["plain"].tolist()
    assert len(seen) == count
    inner = inner_of_chosen(work, people, method)
    assert inner["plain"] == inner["scaled"] and len(inner["plain"]) == QUARTERS and max(inner["plain"]) < 2


def test_a_gain_counts_where_it_is_twice_its_error_over_persons() -> None:
    persons = np.repeat(np.arange(4), 5)
    one, noise = np.full(20, 3.0), np.repeat([2.0, -1.0, 2.0, -1.0], 5)
    assert better("x", persons, one, one - 0.1).holds
    assert not better("x", persons, one, one - noise).holds
    assert not better("x", persons, one, one + 0.1).holds


def test_hidden_ages_are_not_trained_on(people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[np.ndarray, np.ndarray, int]] = []

    def recorded(people: People) -> Any:
        def predict(train: np.ndarray, test: np.ndarray, setting: Any, later: list[Any]) -> list[np.ndarray]:
            calls.append((train, test, len(later)))
            # The second of the options is always nearest.
            return [people.values[test] + (number != 1) for number in range(len(later))]

        return predict

    monkeypatch.setattr(unseen, "oblique", recorded)
    monkeypatch.setattr(unseen, "read_people", lambda quick, **arguments: people)
    claims = list(unseen.figure3(Work(tmp_path, False)))
    values = people.values
    for train, test, _ in calls:
        assert not set(people.persons[train]) & set(people.persons[test])
        assert not set(values[train]) & set(values[test])
    single = [test for train, test, _ in calls if (values[train] >= unseen.OLD).any()]
    assert sorted(np.concatenate(single).tolist()) == list(range(120))
    tuned = [(train, test) for train, test, count in calls if count > 3]
    assert tuned and all(
        values[train].max() < unseen.INNER and values[test].max() < unseen.OLD for train, test in tuned
    )
    judged = [claim for claim in claims if claim.verdict]
    assert [claim.verdict for claim in judged] == ["not repeated"] * 2
    assert sum(claim.attempt for claim in claims) == 17


def test_tables_and_decades_tell_who_is_better(people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = {"RED-SVM": 5.0, "OHRank": 4.48, "CS-RF": 4.2, "CS-RF+DSNA": 4.3}
    old = people.values >= table1.OLD
    monkeypatch.setattr(table1, "read_people", lambda quick: people)
    monkeypatch.setattr(table1.Ages, "error", lambda self, name: np.where(old, 9.0, 1.0) * errors[name] / 5)
    monkeypatch.setattr(table1.Ages, "tried", lambda self: {"another": self.error("another")})
    errors["another"] = 4.4
    everybody = np.where(old, 9.0, 1.0).mean() / 5
    *numbers, statement, attempt = table1.table2(Work(tmp_path, False))
    assert [claim.published for claim in numbers] == [5.24, 4.48, 4.1]  # type: ignore[union-attr]
    assert statement.holds == (everybody * 4.3 < 4.38)  # type: ignore[union-attr]
    assert attempt == Number("FG-NET, another", (pytest.approx(everybody * 4.4),), 4.1, digits=2, attempt=True)
    decades = list(table1.figure8(Work(tmp_path, False)))
    assert [(claim.holds, claim.attempt) for claim in decades[-3:]] == [(True, False), (True, True), (True, False)]  # type: ignore[union-attr]
    assert decades[0].ours == (pytest.approx(4.48 / 5),)  # type: ignore[union-attr]
    errors["CS-RF+DSNA"] = errors["another"] = 4.6
    assert [claim.holds for claim in list(table1.figure8(Work(tmp_path, False)))[-3:]] == [False, False, False]  # type: ignore[union-attr]
    assert (tmp_path / "decades.png").is_file()
