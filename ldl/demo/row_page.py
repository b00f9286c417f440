"""The page of a model of rows: a field a feature, or a table."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ldl.demo import answer
from ldl.errors import LDLError
from ldl.inference import Predictor

MOST_FIELDS = 30
"""Features that get a field each; more come as text or a file."""
MOST_ROWS = 1000
"""Rows of a table that are shown."""


class RowPage:
    """What the page does.

    Args:
        predictor: Of a model of rows.
        folder: Where charts are drawn.
    """

    def __init__(self, predictor: Predictor, folder: Path) -> None:
        self.predictor, self.folder = predictor, folder
        known = predictor.task.preprocessing or {}
        self.count = (predictor.task.input_shape or (0,))[-1]
        self.names = [str(name) for name in known.get("features") or [f"feature {k}" for k in range(self.count)]]
        self.usual = _usual(known.get("scaling") or {}, self.count)

    @property
    def has_fields(self) -> bool:
        """Whether every feature gets a field."""
        return self.count <= MOST_FIELDS

    def of_fields(self, *values: float | None) -> tuple[answer.Table, str, answer.Table]:
        """Table, chart and parts of the row in the fields; an empty field is a missing feature."""
        return self._show(np.array([[np.nan if value is None else value for value in values]], dtype=float), 0)

    def of_table(self, text: str | None, file: str | None, row: float | None) -> tuple[answer.Table, str, answer.Table]:
        """The same of a file, or else of pasted text: the rows in the table, one row in the chart."""
        chosen = answer.chosen(row, "row in the chart")
        if file:
            return self._show(file, chosen)
        if not (text or "").strip():
            raise LDLError(f"paste a row of {self.count} features, or several, or choose a file")
        if (rows := _numbers(str(text))) is not None:
            return self._show(rows, chosen)
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            path = Path(place) / "pasted.csv"
            path.write_text(str(text).strip() + "\n", encoding="utf-8")
            return self._show(path, chosen)

    def _show(self, given: Any, row: int) -> tuple[answer.Table, str, answer.Table]:
        found = self.predictor.predict(given)
        evidence = self.predictor.evidence(given, row)
        table = answer.answer(found)
        if len(found) > MOST_ROWS:
            first, *others = table["headers"]
            table = {"headers": [f"{first} ({MOST_ROWS} of {len(found)})", *others], "data": table["data"][:MOST_ROWS]}
        return table, answer.chart(self.folder, found, row, evidence), answer.parts(evidence, found.labels)


def _numbers(text: str) -> np.ndarray | None:
    """Rows of nothing but numbers; None where the text has names, or missing features."""
    try:
        return np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2)
    except ValueError:
        return None


def _usual(scaling: dict[str, Any], count: int) -> list[float]:
    """A row to begin with: means of training, or medians, or zeros where nothing is known of them."""
    if "quantiles" in scaling:
        quantiles = np.asarray(scaling["quantiles"])
        row = quantiles[len(quantiles) // 2]
    elif "mean" in scaling:
        mean = np.asarray(scaling["mean"])
        row = mean**2 if scaling["kind"] == "hellinger" else mean
    else:
        row = np.zeros(count)
    return [float(f"{number:.4g}") for number in row]
