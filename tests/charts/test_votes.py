"""The chart of rater equivalence."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldl import charts

pytestmark = pytest.mark.usefixtures("pixel_charts")


def test_the_chart_is_drawn_with_and_without_a_model(tmp_path: Path) -> None:
    curve = {"power": [1.1, 1.0, 0.95], "items": 40}
    model = {"nll": 0.9, "worth": None, "low": 1.5, "high": None, "level": 0.95, "with_model": [0.9, 0.8, 0.7]}
    for number, raters in enumerate((curve, curve | model, curve | model | {"with_model": None, "worth": 1.2})):
        assert charts.rater_equivalence(tmp_path / f"{number}.png", raters).is_file()
