"""Edge maps of the test images, and their evaluation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from typing_extensions import override

from ldl import charts
from ldl.charts.drawing import spread, warn_on_error
from ldl.collective import current_collective
from ldl.edges.benchmark.evaluation import Load, agreement, evaluate, evaluate_crisp, scores
from ldl.edges.benchmark.ground_truth import GroundTruth, read_edge_map, read_probability, write_edge_map
from ldl.edges.benchmark.thinning import SMOOTHING, suppress
from ldl.edges.benchmark.votes import QUESTIONS, count_votes, panel, to_dict
from ldl.edges.charts import precision_recall
from ldl.edges.metrics import CRISP, DISAGREEMENT, LOGGED_METRICS, SCORES
from ldl.labels import LabelSpace
from ldl.reports.files import write_json
from ldl.reports.maps import SHEET_IMAGES, EachImage
from ldl.reports.rows import data_of, name_of
from ldl.run.run_dir import WRITTEN

EDGE = 1
"""Index of the label edge."""

WRITTEN.update(("evaluation.json", "votes.json", "strengths", "edges", "disagreement"))


class DrawnEdges(Protocol):
    """A data set of images in which several annotators drew edges.

    It may have ``smoothing`` for :func:`ldl.edges.benchmark.thinning.suppress`.
    """

    def read(self, row: int) -> tuple[np.ndarray, GroundTruth]:
        """Return an image, (H, W, 3) uint8, and its annotations."""

    def ground_truth(self, row: int) -> GroundTruth:
        """Return the annotations of an image."""


class EdgeReport(EachImage):
    """Write edge maps, ``evaluation.json``, ``votes.json`` and ``charts/`` in a test, and log :data:`LOGGED_METRICS`.

    Maps are grey PNGs: ``strengths/NAME.png`` as predicted, ``edges/NAME.png`` after non-maximum suppression, and
    ``disagreement/NAME.png``, 4 p (1 - p) of the predicted probability p: white if every second annotator is expected
    to draw an edge. NAME is the last part of the image's name. The data are :class:`DrawnEdges`. The metric
    ``disagreement``, the correlation of p (1 - p) with that of the annotators, is left out if no image has two of them.
    """

    @override
    def write(self, data: Any, index: int, output: dict[str, Tensor], labels: LabelSpace) -> float:
        strength = output["prediction"][..., EDGE].float().cpu().numpy()
        thin = suppress(strength, smoothing=getattr(data, "smoothing", SMOOTHING))
        write_edge_map(self._file("strengths", data, index), strength)
        write_edge_map(self._file("edges", data, index), thin)
        write_edge_map(self._file("disagreement", data, index), 4 * strength * (1 - strength))
        return math.nan

    @override
    def finish(self, trainer: pl.Trainer, task: Any, index: np.ndarray, result: np.ndarray) -> None:
        if not trainer.testing:
            return
        collective = current_collective()
        results = torch.zeros(len(LOGGED_METRICS), device=task.device)
        if collective.rank == 0:
            measured = self._evaluate(data_of(trainer), index, trainer.progress_bar_callback is not None)
            results = torch.tensor([measured[name] for name in LOGGED_METRICS]).to(results)
        results = collective.broadcast(results)
        finite = {f"test_{name}": value for name, value in zip(LOGGED_METRICS, results) if not value.isnan()}
        task.log_dict(finite, rank_zero_only=True)

    def _evaluate(self, data: DrawnEdges, index: np.ndarray, show_progress: bool) -> dict[str, Any]:
        """Evaluate the maps, write the results and return them."""
        rows = {self._file("edges", data, row).stem: row for row in index.tolist()}

        def truth(name: str) -> GroundTruth:
            return data.ground_truth(rows[name])

        def load(kind: str) -> Load:
            return lambda name: (read_edge_map(self._file(kind, data, rows[name])), truth(name))

        def probability(name: str) -> tuple[np.ndarray, int, np.ndarray]:
            return *read_probability(self._file("strengths", data, rows[name])), truth(name).boundaries

        self.evaluation = evaluate(list(rows), load("edges"), show_progress=show_progress)
        measured = self.evaluation.to_dict()
        write_json(self.folder / "evaluation.json", measured)
        raw, more = evaluate_crisp(list(rows), load("strengths"), stricter=(), show_progress=show_progress)
        crisp = {**scores(raw.thresholds, raw.counts), "ac": more["ac"]}
        measured |= {name: crisp[name.removeprefix("crisp_")] for name in CRISP}
        counts = count_votes(list(rows), probability, show_progress)
        votes = to_dict(counts, {"raw": counts.stated()})
        write_json(self.folder / "votes.json", votes)
        whole = votes["raw"]["all"]
        measured |= {f"{question}_{score}": whole[question][score] for question in QUESTIONS for score in SCORES}
        return measured | {DISAGREEMENT: votes["disagreement"]["raw"].get("all", math.nan)}

    def sheets(self, trainer: pl.Trainer, task: Any) -> dict[str, Path]:
        """Draw the precision-recall curve, with the annotators' agreement, and two sheets."""
        if not trainer.testing:
            return {}
        data, paths, rows = data_of(trainer), dict[str, Path](), self.index.tolist()
        with warn_on_error("charts/precision_recall.png"):
            truth = dict(zip((self._file("edges", data, row).stem for row in rows), rows))
            shows = trainer.progress_bar_callback is not None
            human = agreement(list(truth), lambda name: data.ground_truth(truth[name]), show_progress=shows)
            path, name = self.folder / "charts" / "precision_recall.png", type(task.head).__name__
            paths["precision_recall"] = precision_recall(path, {name: self.evaluation}, human)
        return paths | self._sheets(data, self.index[spread(len(rows), SHEET_IMAGES)], task.labels)

    def _sheets(self, data: DrawnEdges, rows: np.ndarray, labels: LabelSpace) -> dict[str, Path]:
        """Draw some images with predicted edges, and with disagreement if they have two annotators."""
        edges, split = [], []
        for row in rows.tolist():
            image, drawn = data.read(row)
            shown = {kind: read_edge_map(self._file(kind, data, row)) for kind in ("edges", "disagreement")}
            name, disagreement = Path(name_of(data, row)).name, panel(drawn.boundaries).disagreement
            edges.append((name, [image, drawn.boundaries.mean(0), shown["edges"]]))
            if disagreement is not None:
                # The estimate is unbiased, and reaches 2 for two annotators who differ.
                split.append((name, [image, np.minimum(4 * disagreement, 1), shown["disagreement"]]))
        folder, titles = self.folder / "charts", ("image", "share of annotators", "prediction, thinned")
        paths = {"edges": charts.maps(folder / "edges.png", edges, titles, labels)}
        if split:
            titles = ("image", "annotators disagree", "disagreement, predicted")
            paths["disagreement"] = charts.maps(folder / "disagreement.png", split, titles, labels)
        return paths

    def _file(self, kind: str, data: Any, row: int) -> Path:
        return self.folder / kind / f"{Path(name_of(data, row)).name}.png"
