"""Groups of raters: scores against plain loops, errors clustered by rater, a planted difference, wrong arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldl.annotations import SingleVotes
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.raters import measure_groups

LINE, NOMINAL = LabelSpace.ordinal([1, 2, 4]), LabelSpace.nominal("abc")


def some_votes(items: int = 30, raters: int = 6, seed: int = 0) -> tuple[np.ndarray, SingleVotes]:
    """Predictions, and the votes of some raters on every item, drawn from them."""
    rng = np.random.default_rng(seed)
    prediction = rng.dirichlet(np.ones(3), items)
    item, rater = (grid.ravel() for grid in np.meshgrid(np.arange(items), np.arange(raters), indexing="ij"))
    label = (rng.random((len(item), 1)) > prediction[item].cumsum(1)[:, :-1]).sum(1)
    return prediction, SingleVotes(item, rater, label, np.array([f"r{number}" for number in range(raters)], object))


def plain_calibration_error(prediction: np.ndarray, label: np.ndarray) -> float:
    """The definition, for one prediction (V, C) a vote."""
    errors = []
    for number in range(prediction.shape[1]):
        for low in np.arange(10) / 10:
            inside = (prediction[:, number] >= low) & (prediction[:, number] < low + 0.1)
            if inside.any():
                gap = (label[inside] == number).mean() - prediction[inside, number].mean()
                errors.append(abs(gap) * inside.mean() / prediction.shape[1])
    return sum(errors)


@pytest.mark.parametrize("labels", [LINE, NOMINAL], ids=["ordinal", "nominal"])
def test_scores_are_means_over_the_votes_of_a_group(labels: LabelSpace) -> None:
    prediction, single = some_votes()
    group = ["old", "young", "old", "young", "old", "young"]
    measured = measure_groups(prediction, single, group, labels)
    assert list(measured.index) == ["old", "young"] and ("shift" in measured) == (labels is LINE)
    for name, row in measured.iterrows():
        mine = np.array(group)[single.rater] == name
        p, label = prediction[single.item[mine]], single.label[mine]
        nll = -np.log(p[np.arange(len(p)), label])
        assert (row["raters"], row["votes"], row["nll"]) == (3, 90, pytest.approx(nll.mean()))
        assert row["calibration_error"] == pytest.approx(plain_calibration_error(p, label))
        # With equally many votes of each rater it is the error of the mean of the raters' means.
        of_raters = nll.reshape(-1, 3).mean(0)
        assert row["nll_se"] == pytest.approx(of_raters.std(ddof=1) / math.sqrt(3))
        if labels is LINE:
            shift = np.array([1, 2, 4])[label] - p @ [1, 2, 4]
            assert row["shift"] == pytest.approx(shift.mean())
            assert row["shift_se"] == pytest.approx(shift.reshape(-1, 3).mean(0).std(ddof=1) / math.sqrt(3))


def test_a_planted_shift_is_found_in_its_group_alone() -> None:
    prediction, single = some_votes(items=200, raters=20)
    high = (single.rater < 10) & (np.random.default_rng(1).random(len(single.rater)) < 0.4)
    single = single._replace(label=np.where(high, 2, single.label))
    measured = measure_groups(prediction, single, ["high"] * 10 + ["plain"] * 10, LINE)
    expected = 0.4 * (4 - prediction @ [1, 2, 4]).mean()
    assert abs(measured["shift"]["high"] - expected) < 3 * measured["shift_se"]["high"] < 0.3
    assert abs(measured["shift"]["plain"]) < 3 * measured["shift_se"]["plain"]
    assert measured["calibration_error"]["high"] > 0.15 > 0.05 > measured["calibration_error"]["plain"]
    assert measured["nll"]["high"] > measured["nll"]["plain"]


def test_errors_are_those_of_other_raters() -> None:
    """Raters differ, so the error of a group's shift is many times that of independent votes."""
    rng, shifts, errors = np.random.default_rng(0), [], []
    prediction, single = some_votes(items=20, raters=30)
    for _ in range(200):
        habit = rng.dirichlet([0.5, 0.5, 0.5], 30).cumsum(1)[single.rater]
        label = (rng.random((len(habit), 1)) > habit[:, :-1]).sum(1)
        row = measure_groups(prediction, single._replace(label=label), ["all"] * 30, LINE).loc["all"]
        shifts.append(row["shift"])
        errors.append(row["shift_se"])
    assert np.mean(errors) == pytest.approx(np.std(shifts), rel=0.15)


def test_groups_are_sorted_and_gaps_are_a_group() -> None:
    prediction, single = some_votes()
    ages = pd.cut([20, 70, 35, np.nan, 72, 21], [0, 30, 60, 99], labels=["young", "middle", "old"])
    measured = measure_groups(prediction, single, ages, NOMINAL)
    assert list(measured.index[:3]) == ["young", "middle", "old"] and pd.isna(measured.index[3])
    assert measured["raters"].tolist() == [2, 1, 2, 1] and measured["nll_se"].isna().tolist() == [False, True] * 2
    silent = single.take(np.arange(0))
    assert len(measure_groups(prediction, silent, ages, NOMINAL)) == 0
    some = single._replace(names=np.array([*single.names, "r6"], object))
    assert list(measure_groups(prediction, some, ["a"] * 6 + ["b"], NOMINAL).index) == ["a"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "predictions": ({"prediction": np.ones((30, 3))}, "row 0 of the predictions is no distribution"),
    "labels": ({"labels": LabelSpace.nominal("ab")}, r"shape \(30, 3\)"),
    "items": ({"prediction": np.full((4, 3), 1 / 3)}, "votes on 30 items and 4 predictions"),
    "groups": ({"group": ["a", "b"]}, "2 groups for 6 raters"),
}


@pytest.mark.parametrize("change", WRONG)
def test_wrong_arguments(change: str) -> None:
    prediction, single = some_votes()
    options, message = WRONG[change]
    arguments = {"prediction": prediction, "single": single, "group": list("aabbcc"), "labels": NOMINAL, **options}
    with pytest.raises(LDLError, match=message):
        measure_groups(**arguments)
