"""The charts that all test rows give: of one run, or of all folds of a cross-validation together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ldl.charts.classes import roc
from ldl.charts.drawing import spread
from ldl.charts.errors import bands, cumulative_score, values
from ldl.charts.faces import distributions, faces
from ldl.charts.reliability import calibration, intervals
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.metrics.functional import kl

PANELS = 9
"""Instances that are shown one by one."""

ENOUGH = 30
"""Charts of shares are drawn from this many instances on; with fewer they show nothing but chance."""


def overview(
    folder: Path,
    rows: dict[str, np.ndarray],
    labels: LabelSpace,
    fetch: Callable[[np.ndarray], np.ndarray | None] | None = None,
    names: list[str] | None = None,
    conformal: Conformal | None = None,
) -> dict[str, Path]:
    """Write every chart for which there is something to show.

    Args:
        folder: Where the PNGs go.
        rows: ``index`` (n,) and ``prediction`` (n, C), and where they exist ``target``, ``value`` and
            ``predicted_value``.
        labels: The label space.
        fetch: Gives the pictures, (k, H, W, 3) uint8, of instances (k,), or None where they are no pictures.
        names: What every instance of the data set is called, or None for numbers.
        conformal: What intervals were calibrated by, or None.

    Returns:
        The paths by the names of the charts.
    """
    drawn: dict[str, Path | None] = {}
    if "target" in rows:
        picked = spread(len(rows["index"]), PANELS)
        titles = _titles(rows["index"][picked], names)
        diverged = kl(*(torch.from_numpy(rows[name][picked]).double() for name in ("prediction", "target")))
        titles = [f"{title}, KL {divergence:.3f}" for title, divergence in zip(titles, diverged.tolist())]
        drawn["distributions"] = distributions(
            folder / "distributions.png", rows["prediction"][picked], rows["target"][picked], labels, titles
        )
        positive = rows["target"][:, -1] > 0.5
        if labels.kind == "nominal" and len(labels) == 2 and 0 < positive.mean() < 1:
            drawn["roc"] = roc(folder / "roc.png", {labels.names[1]: (rows["prediction"][:, 1], positive)})
    if "value" in rows and "predicted_value" in rows:
        predicted, true = rows["predicted_value"], rows["value"]
        drawn["values"] = values(folder / "values.png", predicted, true, labels)
        if labels.kind == "ordinal" and len(true) >= ENOUGH:
            drawn["cumulative_score"] = cumulative_score(folder / "cumulative_score.png", predicted, true, labels)
            drawn["bands"] = bands(folder / "bands.png", predicted, true, labels)
            drawn["calibration"] = calibration(folder / "calibration.png", rows["prediction"], true, labels)
            if conformal is not None:
                path = folder / "intervals.png"
                drawn["intervals"] = intervals(path, rows["prediction"], true, labels, conformal)
        if labels.kind == "ordinal" and fetch is not None:
            # From the least to the greatest true value, so that the sheet covers them all.
            picked = np.argsort(true, kind="stable")[spread(len(true), PANELS)]
            pictures = fetch(rows["index"][picked])
            if pictures is not None:
                shown, titles = rows["prediction"][picked], _titles(rows["index"][picked], names)
                sheet = folder / "pictures.png"
                drawn["pictures"] = faces(sheet, pictures, shown, true[picked], predicted[picked], labels, titles)
    return {name: path for name, path in drawn.items() if path is not None}


def _titles(index: np.ndarray, names: list[str] | None) -> list[str]:
    return [f"instance {number}" if names is None else Path(names[number]).name for number in index]
