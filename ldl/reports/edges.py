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
from ldl.edges.benchmark.maps import read_probability
from ldl.edges.benchmark.nms import SMOOTHING, suppress
from ldl.edges.benchmark.scores import scores
from ldl.edges.benchmark.vote_counts import count_votes, to_dict
from ldl.edges.benchmark.votes import QUESTIONS, panel
from ldl.labels import LabelSpace
from ldl.reports.files import write_json
from ldl.reports.maps import SHOWN, EachImage
from ldl.reports.rows import data_of, name_of

EDGE = 1
"""Which label is the edge."""
FIGURES = ("ods", "ois", "ap", "r50")
VOTES = ("nll", "brier", "ece")
"""Scores of the map as the probability of a vote, of each of :data:`ldl.edges.benchmark.votes.QUESTIONS`."""
CRISP = ("crisp_ods", "crisp_ois", "crisp_ap", "crisp_ac")
"""Figures of the maps as predicted: CEval, and average crispness."""
LOGGED = (*FIGURES, *CRISP, *(f"{question}_{score}" for question in QUESTIONS for score in VOTES), "disagreement")


@runtime_checkable
class Annotated(Protocol):
    """A data set whose images several annotators drew edges of.

    It may have ``smoothing``, that of :func:`ldl.edges.benchmark.nms.suppress`.
    """

    def read(self, row: int) -> tuple[np.ndarray, GroundTruth]:
        """An image, (H, W, 3) uint8, and what its annotators drew."""

    def ground_truth(self, row: int) -> GroundTruth:
        """What the annotators of an image drew."""


class EdgeReport(EachImage):
    """Writes edge maps, ``evaluation.json``, ``votes.json`` and ``charts/`` after a test, and logs :data:`LOGGED`.

    Maps are grey PNGs: ``strengths/NAME.png`` as predicted, ``edges/NAME.png`` with non-maxima suppressed, and
    ``disagreement/NAME.png``, 4 p (1 - p) of the probability p that was predicted: white where one annotator in two is
    expected to draw. NAME is the last part of the image's name. The data are :class:`Annotated`. ``disagreement`` is
    the correlation of p (1 - p) with that of the annotators, and left out where no image has two of them.
    """

    def write(self, data: Any, index: int, output: dict[str, Tensor], labels: LabelSpace) -> float:
        strength = output["prediction"][..., EDGE].float().cpu().numpy()
        thin = suppress(strength, smoothing=getattr(data, "smoothing", SMOOTHING))
        write_edge_map(self._file("strengths", data, index), strength)
        write_edge_map(self._file("edges", data, index), thin)
        write_edge_map(self._file("disagreement", data, index), 4 * strength * (1 - strength))
        return math.nan

    def finish(self, trainer: pl.Trainer, task: Any, index: np.ndarray, figure: np.ndarray) -> dict[str, Path]:
        if not trainer.testing:
            return {}
        collective = current_collective()
        figures = torch.zeros(len(LOGGED), device=task.device)
        paths: dict[str, Path] = {}
        if collective.rank == 0:
            measured, paths = self._judge(data_of(trainer), index, task, trainer.progress_bar_callback is not None)
            figures = torch.tensor([measured[name] for name in LOGGED]).to(figures)
        figures = collective.broadcast(figures)
        there = {f"test_{name}": value for name, value in zip(LOGGED, figures) if not value.isnan()}
        task.log_dict(there, rank_zero_only=True)
        return paths

    def _judge(
        self, data: Annotated, index: np.ndarray, task: Any, show_progress: bool
    ) -> tuple[dict[str, Any], dict[str, Path]]:
        """Evaluate the maps, write down what was measured; draw the curve, with the annotators' own, and two sheets."""
        files = {row: self._file("edges", data, row) for row in index.tolist()}
        named = {file.stem: row for row, file in files.items()}

        def truth(name: str) -> GroundTruth:
            return data.ground_truth(named[name])

        def load(kind: str) -> Load:
            return lambda name: (read_edge_map(self._file(kind, data, named[name])), truth(name))

        def probability(name: str) -> tuple[np.ndarray, int, np.ndarray]:
            return *read_probability(self._file("strengths", data, named[name])), truth(name).boundaries

        evaluation = evaluate(list(named), load("edges"), show_progress=show_progress)
        measured = evaluation.to_dict()
        write_json(self.folder / "evaluation.json", measured)
        raw, more = evaluate_crisp(list(named), load("strengths"), stricter=(), show_progress=show_progress)
        crisp = {**scores(raw.thresholds, raw.counts), "ac": more["ac"]}
        measured |= {name: crisp[name.removeprefix("crisp_")] for name in CRISP}
        counts = count_votes(list(named), probability, show_progress)
        votes = to_dict(counts, {"raw": counts.stated()})
        write_json(self.folder / "votes.json", votes)
        measured |= _of_all_pixels(votes)
        if not self.draw:
            return measured, {}
        human = agreement(list(named), truth, show_progress=show_progress)
        folder, name = self.folder / "charts", type(task.head).__name__
        curve = precision_recall(folder / "precision_recall.png", {name: evaluation}, human)
        return measured, {"precision_recall": curve} | self._sheets(data, index[spread(len(index), SHOWN)], task.labels)

    def _sheets(self, data: Annotated, rows: np.ndarray, labels: LabelSpace) -> dict[str, Path]:
        """Some images with what was predicted of edges, and of disagreement where there are two annotators."""
        edges, split = [], []
        for row in rows.tolist():
            picture, drawn = data.read(row)
            shown = {kind: read_edge_map(self._file(kind, data, row)) for kind in ("edges", "disagreement")}
            name, found = Path(name_of(data, row)).name, panel(drawn.boundaries).disagreement
            edges.append((name, [picture, drawn.boundaries.mean(0), shown["edges"]]))
            if found is not None:
                # An estimate without bias: of two annotators who differ it is 2.
                split.append((name, [picture, np.minimum(4 * found, 1), shown["disagreement"]]))
        folder, titles = self.folder / "charts", ("image", "share of annotators", "prediction, thinned")
        paths = {"edges": charts.maps(folder / "edges.png", edges, titles, labels)}
        if split:
            titles = ("image", "annotators disagree", "disagreement, predicted")
            paths["disagreement"] = charts.maps(folder / "disagreement.png", split, titles, labels)
        return paths

    def _file(self, kind: str, data: Any, row: int) -> Path:
        return self.folder / kind / f"{Path(name_of(data, row)).name}.png"


def _of_all_pixels(votes: dict[str, Any]) -> dict[str, float]:
    """The figures of votes among :data:`LOGGED`; NaN where no image has two annotators."""
    scores = votes["raw"]["all"]
    figures = {f"{question}_{score}": scores[question][score] for question in QUESTIONS for score in VOTES}
    return figures | {"disagreement": votes["disagreement"]["raw"].get("all", math.nan)}
