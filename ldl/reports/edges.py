"""Edge maps of the test images, and what the benchmark says of them: figures, counts and charts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl import charts
from ldl.charts.drawing import spread
from ldl.charts.edges import precision_recall
from ldl.collective import current_collective
from ldl.edges.benchmark.crispness import evaluate_crisp
from ldl.edges.benchmark.evaluation import Load, agreement, evaluate, read_edge_map, write_edge_map
from ldl.edges.benchmark.ground_truth import GroundTruth
from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.scores import scores
from ldl.labels import LabelSpace
from ldl.reports.files import write_json
from ldl.reports.maps import SHOWN, EachImage
from ldl.reports.rows import data_of, name_of

EDGE = 1
"""Which label is the edge."""
FIGURES = ("ods", "ois", "ap", "r50")
CRISP = ("crisp_ods", "crisp_ois", "crisp_ap", "crisp_ac")
"""Figures of the maps as predicted: CEval, and average crispness."""


@runtime_checkable
class Annotated(Protocol):
    """A data set whose images several annotators drew edges of."""

    def read(self, row: int) -> tuple[np.ndarray, GroundTruth]:
        """An image, (H, W, 3) uint8, and what its annotators drew."""

    def ground_truth(self, row: int) -> GroundTruth:
        """What the annotators of an image drew."""


class EdgeReport(EachImage):
    """Writes edge maps, ``evaluation.json`` and ``charts/`` after a test, and logs the figures of the benchmark.

    Maps are grey PNGs: ``strengths/NAME.png`` as predicted, ``edges/NAME.png`` with non-maxima suppressed; NAME is the
    last part of the image's name. The data are :class:`Annotated`.
    """

    def write(self, data: Any, index: int, output: dict[str, Tensor], labels: LabelSpace) -> float:
        strength = output["prediction"][..., EDGE].float().cpu().numpy()
        write_edge_map(self._file("strengths", data, index), strength)
        write_edge_map(self._file("edges", data, index), suppress(strength))
        return math.nan

    def finish(self, trainer: pl.Trainer, task: Any, index: np.ndarray, figure: np.ndarray) -> dict[str, Path]:
        if not trainer.testing:
            return {}
        collective = current_collective()
        names = FIGURES + CRISP
        figures = torch.zeros(len(names), device=task.device)
        paths: dict[str, Path] = {}
        if collective.rank == 0:
            measured, paths = self._judge(data_of(trainer), index, task, trainer.progress_bar_callback is not None)
            figures = torch.tensor([measured[name] for name in names]).to(figures)
        figures = collective.broadcast(figures)
        task.log_dict({f"test_{name}": value for name, value in zip(names, figures)}, rank_zero_only=True)
        return paths

    def _judge(
        self, data: Annotated, index: np.ndarray, task: Any, show_progress: bool
    ) -> tuple[dict[str, Any], dict[str, Path]]:
        """Evaluate the maps and write ``evaluation.json``; draw the curve, with the annotators' own, and a sheet."""
        files = {row: self._file("edges", data, row) for row in index.tolist()}
        named = {file.stem: row for row, file in files.items()}

        def truth(name: str) -> GroundTruth:
            return data.ground_truth(named[name])

        def load(kind: str) -> Load:
            return lambda name: (read_edge_map(self._file(kind, data, named[name])), truth(name))

        evaluation = evaluate(list(named), load("edges"), show_progress=show_progress)
        raw, more = evaluate_crisp(list(named), load("strengths"), stricter=(), show_progress=show_progress)
        crisp = {**scores(raw.thresholds, raw.counts), "ac": more["ac"]}
        measured = evaluation.to_dict() | {name: crisp[name.removeprefix("crisp_")] for name in CRISP}
        write_json(self.folder / "evaluation.json", measured)
        if not self.draw:
            return measured, {}
        human = agreement(list(named), truth, show_progress=show_progress)
        folder, name = self.folder / "charts", type(task.head).__name__
        curve = precision_recall(folder / "precision_recall.png", {name: evaluation}, human)
        panels = []
        for row in index[spread(len(index), SHOWN)].tolist():
            picture, drawn = data.read(row)
            panels.append((files[row].stem, [picture, drawn.boundaries.mean(0), read_edge_map(files[row])]))
        sheet = charts.maps(
            folder / "edges.png", panels, ("image", "share of annotators", "prediction, thinned"), task.labels
        )
        return measured, {"precision_recall": curve, "edges": sheet}

    def _file(self, kind: str, data: Any, row: int) -> Path:
        return self.folder / kind / f"{Path(name_of(data, row)).name}.png"
