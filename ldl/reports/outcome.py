"""What the edge maps of a data set's test images come to: figures, counts and charts, in the run's directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ldl.charts.edges import precision_recall, sheet
from ldl.edges.benchmark.evaluation import Evaluation, agreement, evaluate, read_edge_map
from ldl.reports.files import write_json

if TYPE_CHECKING:
    from ldl.data.edges.bsds500 import BSDS500

SHOWN = 4
"""Images on the sheet."""


def edge_map(folder: Path, data: BSDS500, row: int) -> Path:
    """Where a run in ``folder`` keeps the thin edge map of an image: ``edges/NAME.png``."""
    return folder / "edges" / f"{data.images[row].stem}.png"


def judge(
    folder: Path,
    data: BSDS500,
    rows: Sequence[int],
    detector: str,
    levels: int = 99,
    workers: int | None = None,
    draw: bool = True,
    show_progress: bool = False,
) -> tuple[Evaluation, dict[str, Path]]:
    """Evaluate the edge maps of a run; write ``evaluation.json``, and ``charts/`` if asked to.

    Args:
        folder: The run directory, with the maps at :func:`edge_map`.
        data: The images, set up.
        rows: Those that are evaluated.
        detector: What the curve is called.
        levels: Number of thresholds.
        workers: Images that are worked on at once; None takes all processors.
        draw: Draw the curve, with the agreement of the annotators, and a sheet of images.
        show_progress: Draw progress bars.

    Returns:
        What was counted, and the charts by name.
    """
    named = {data.images[row].stem: row for row in rows}
    shared: dict[str, Any] = {"workers": workers, "show_progress": show_progress}
    evaluation = evaluate(
        list(named),
        lambda name: (read_edge_map(edge_map(folder, data, named[name])), data.ground_truth(named[name])),
        levels,
        **shared,
    )
    write_json(folder / "evaluation.json", evaluation.to_dict())
    if not draw:
        return evaluation, {}
    human = agreement(list(named), lambda name: data.ground_truth(named[name]), **shared)
    charts = folder / "charts"
    curve = precision_recall(charts / "precision_recall.png", {detector: evaluation}, human)
    panels = []
    for row in (rows[k] for k in np.unique(np.linspace(0, len(rows) - 1, SHOWN).round().astype(int))):
        picture, truth = data.read(row)
        name = data.images[row].stem
        panels.append((picture, truth.boundaries.mean(0), read_edge_map(edge_map(folder, data, row)), name))
    return evaluation, {"precision_recall": curve, "edges": sheet(charts / "edges.png", panels)}
