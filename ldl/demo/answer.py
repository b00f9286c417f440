"""What a page shows of predictions: a table, charts, and what a prediction rests on."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np

from ldl import charts
from ldl.errors import LDLError
from ldl.inference import Predictions
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence

LEVEL = 0.9
"""Of the intervals on the page."""
PARTS = 8
"""Of a prediction that are listed."""
LIKELIEST = 5
"""Labels without values that are listed, the likeliest first."""

DIGITS = 4
"""Of numbers on the page."""

Table = dict[str, list[Any]]
"""Headers and data, as gradio's tables take them."""


def answer(found: Predictions) -> Table:
    """A row a prediction: value, deviation and interval, or the likeliest labels of those without values."""
    if "face" in found.facts:
        columns: dict[str, Any] = {"face": found.facts["face"].tolist()}
    else:
        columns = {"row": list(range(len(found)))}
    columns |= _likeliest(found) if found.value is None else _values(found)
    return {"headers": list(columns), "data": [list(row) for row in zip(*columns.values())]}


def chosen(number: float | None, what: str) -> int:
    """The whole number in a field, which is None where it is empty: raises LDLError."""
    if number is None:
        raise LDLError(f"the field '{what}' is empty; give a whole number")
    return int(number)


def _values(found: Predictions) -> dict[str, list[float]]:
    assert found.value is not None and found.std is not None
    columns: dict[str, np.ndarray] = {}
    for axis, name in enumerate(found.labels.axis_names or [""] * found.labels.ndim):
        of = f" {name}" if name else ""
        value, std = (part.reshape(len(found), -1)[:, axis] for part in (found.value, found.std))
        low, high = found.interval(LEVEL).reshape(len(found), -1, 2)[:, axis].T
        columns |= {f"{_value(found.labels)}{of}": value, f"deviation{of}": std}
        columns |= {f"lower {LEVEL:.0%}{of}": low, f"upper {LEVEL:.0%}{of}": high}
    return {name: [float(f"{number:.{DIGITS}g}") for number in column] for name, column in columns.items()}


def _value(labels: LabelSpace) -> str:
    return f"value ({labels.unit})" if labels.unit else "value"


def _likeliest(found: Predictions) -> dict[str, list[str]]:
    order = np.argsort(-found.distribution, axis=1, kind="stable")[:, :LIKELIEST]
    names, rows = found.labels.names, range(len(found))
    return {
        f"likeliest {rank + 1}": [
            f"{names[order[row, rank]]} ({found.distribution[row, order[row, rank]]:.1%})" for row in rows
        ]
        for rank in range(order.shape[1])
    }


def parts(evidence: Evidence | None, labels: LabelSpace) -> Table:
    """The weightiest parts of a prediction: what, weight, and the value, or likeliest label, that it stands for."""
    if evidence is None:
        return {"headers": ["rests on"], "data": [["this head cannot tell"]]}
    kept = evidence.first(PARTS)
    share = [f"{weight:.1%}" for weight in kept.weights.tolist()]
    if labels.has_values:
        values = labels.decode(kept.distributions.float())
        said = [", ".join(f"{part:.4g}" for part in np.atleast_1d(value)) for value in values.cpu().numpy()]
    else:
        said = [str(labels.names[row]) for row in kept.distributions.argmax(1).tolist()]
    what = _value(labels) if labels.has_values else "likeliest label"
    count = f"rests on ({len(kept.names)} of {len(evidence.names)})"
    return {"headers": [count, "weight", what], "data": [list(row) for row in zip(kept.names, share, said)]}


def chart(folder: Path, found: Predictions, row: int, evidence: Evidence | None) -> str:
    """A PNG of one distribution with its value, its interval, and the parts that it rests on."""
    known = found.value is not None
    marks = evidence if found.labels.kind == "ordinal" else None
    return str(
        charts.answer(
            fresh(folder),
            found.distribution[row],
            found.labels,
            value=found.value[row] if found.value is not None else None,
            interval=found.interval(LEVEL)[row] if known else None,
            parts=None if marks is None else found.labels.decode(marks.distributions.float()).cpu().numpy(),
            weights=None if marks is None else marks.weights.float().cpu().numpy(),
        )
    )


def fresh(folder: Path) -> Path:
    """A PNG that is not there yet: pages are asked by several at a time."""
    return folder / f"{uuid.uuid4().hex}.png"
