"""The chart of the raters of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ldl import charts
from ldl.charts.raters import MOST_NAMES
from ldl.labels import LabelSpace

pytestmark = pytest.mark.usefixtures("pixel_charts")
SPACES = {
    "ordinal": LabelSpace.ordinal([1, 2, 3], "points"),
    "nominal": LabelSpace.nominal(["calm", "happy", "sad"]),
    "many": LabelSpace.nominal([f"label {number}" for number in range(40)]),
}


def table(labels: LabelSpace, raters: int, level: float = 0.1) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {"rater": [f"rater ${number}_of a long list" for number in range(raters)]}
    columns["votes"] = np.arange(raters)  # type: ignore[assignment]
    quantities = [("shift", "")] if labels.kind == "ordinal" else [("bias", f":{name}") for name in labels.names]
    for name, label in [*quantities, ("informativeness", "")]:
        middle = rng.random(raters)
        ends = {"": middle, "_lower_90": middle - level, "_upper_90": middle + level}
        columns |= {f"{name}{end}{label}": numbers for end, numbers in ends.items()}
    return pd.DataFrame({**columns, "agreement": rng.random(raters)})


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("raters", [2, 6, MOST_NAMES + 5])
@pytest.mark.parametrize("level", [0.1, np.nan])
def test_raters_are_drawn(space: str, raters: int, level: float, tmp_path: Path) -> None:
    labels = SPACES[space]
    assert charts.rater_differences(tmp_path / "raters.png", table(labels, raters, level), labels).is_file()


def test_raters_stand_in_the_order_of_their_shift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rater has no votes and is left out."""
    figures = []
    monkeypatch.setattr("ldl.charts.raters.save", lambda figure, path: figures.append(figure) or path)
    rows = table(SPACES["ordinal"], 5)
    charts.rater_differences(tmp_path / "raters.png", rows, SPACES["ordinal"])
    first, second, third = figures[0].axes
    order = rows[1:].sort_values("shift")
    for axis, name in ((first, "shift"), (second, "informativeness"), (third, "agreement")):
        np.testing.assert_allclose(axis.collections[-1].get_offsets()[:, 0], order[name])
    assert [text.get_text()[:9] for text in first.get_yticklabels()] == [name[:9] for name in order["rater"]]
    assert second.get_title() == "4 raters of the model, with 90% intervals"
