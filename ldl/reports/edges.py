"""Edge maps of the test images, and what the benchmark says of them: figures, counts and charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl import charts
from ldl.charts.edges import precision_recall
from ldl.collective import current_collective
from ldl.edges.benchmark.evaluation import Evaluation, agreement, evaluate, read_edge_map, write_edge_map
from ldl.edges.benchmark.ground_truth import GroundTruth
from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.scores import scores
from ldl.labels import LabelSpace
from ldl.reports.files import write_json
from ldl.reports.maps import EachImage, name_of, spread

EDGE = 1
"""Which label is the edge."""
FIGURES = ("ods", "ois", "ap", "r50")


@runtime_checkable
class Annotated(Protocol):
    """A data set whose images several annotators drew edges of."""

    def read(self, row: int) -> tuple[np.ndarray, GroundTruth]:
        """An image, (H, W, 3) uint8, and what its annotators drew."""

    def ground_truth(self, row: int) -> GroundTruth:
        """What the annotators of an image drew."""


class EdgeReport(EachImage):
    """Writes edge maps, ``evaluation.json`` and ``charts/`` after a test, and logs the four figures of the benchmark.

    Maps are grey PNGs: ``strengths/NAME.png`` as predicted, ``edges/NAME.png`` with non-maxima suppressed; NAME is the
    last part of the image's name. The data are :class:`Annotated`.
    """

    def write(self, data: Any, index: int, output: dict[str, Tensor], labels: LabelSpace) -> float:
        strength = output["prediction"][..., EDGE].float().cpu().numpy()
        thin = edge_map(self.folder, data, index)
        write_edge_map(self.folder / "strengths" / thin.name, strength)
        write_edge_map(thin, suppress(strength))
        return math.nan

    def finish(self, trainer: pl.Trainer, task: Any, index: np.ndarray, figure: np.ndarray) -> dict[str, Path]:
        if not trainer.testing:
            return {}
        collective = current_collective()
        figures = torch.zeros(len(FIGURES), device=task.device)
        paths: dict[str, Path] = {}
        if collective.rank == 0:
            data: Any = trainer.datamodule  # type: ignore[attr-defined]
            show = trainer.progress_bar_callback is not None
            name = type(task.head).__name__
            evaluation, paths = judge(self.folder, data, index, name, draw=self.draw, show_progress=show)
            measured = scores(evaluation.thresholds, evaluation.counts)
            figures = torch.tensor([measured[name] for name in FIGURES]).to(figures)
        figures = collective.broadcast(figures)
        task.log_dict({f"test_{name}": value for name, value in zip(FIGURES, figures)}, rank_zero_only=True)
        return paths


def edge_map(folder: Path, data: Any, row: int) -> Path:
    """Where a run in ``folder`` keeps the thin edge map of an image: ``edges/NAME.png``."""
    return folder / "edges" / f"{Path(name_of(data, row)).name}.png"


def judge(
    folder: Path,
    data: Annotated,
    rows: Sequence[int] | np.ndarray,
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
    files = {row: edge_map(folder, data, row) for row in rows}
    named = {file.stem: row for row, file in files.items()}
    shared: dict[str, Any] = {"workers": workers, "show_progress": show_progress}
    evaluation = evaluate(
        list(named),
        lambda name: (read_edge_map(files[named[name]]), data.ground_truth(named[name])),
        levels,
        **shared,
    )
    write_json(folder / "evaluation.json", evaluation.to_dict())
    if not draw:
        return evaluation, {}
    human = agreement(list(named), lambda name: data.ground_truth(named[name]), **shared)
    curve = precision_recall(folder / "charts" / "precision_recall.png", {detector: evaluation}, human)
    panels = []
    for row in spread(np.asarray(rows)).tolist():
        picture, truth = data.read(row)
        panels.append((files[row].stem, [picture, truth.boundaries.mean(0), read_edge_map(files[row])]))
    edges = LabelSpace.nominal(["no edge", "edge"])
    sheet = charts.maps(folder / "charts" / "edges.png", panels, ("image", "annotators", "prediction"), edges)
    return evaluation, {"precision_recall": curve, "edges": sheet}
