"""Edge maps of the test images, and what the benchmark says of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytorch_lightning as pl
import torch

from ldl import charts
from ldl.charts.edges import precision_recall, sheet
from ldl.collective import current_collective
from ldl.edges.evaluation import Evaluation, evaluate, human, read_edge_map, write_edge_map
from ldl.edges.nms import suppress
from ldl.edges.scores import curve, optimum, scores
from ldl.results import write_json
from ldl.tracking import log_images

if TYPE_CHECKING:
    from ldl.data.bsds500 import BSDS500

EDGE = 1
"""Which label is the edge."""
SHOWN = 4
"""Images on the sheet."""
FIGURES = ("ods", "ois", "ap", "r50")


class EdgeReport(pl.Callback):
    """Writes edge maps, ``evaluation.json`` and ``charts/`` after a test, and logs the four figures of the benchmark.

    Maps are grey PNGs: ``strengths/NAME.png`` as predicted, ``edges/NAME.png`` with non-maxima suppressed.

    Args:
        folder: The run directory.
        draw: Draw charts.
    """

    def __init__(self, folder: Path, draw: bool = True) -> None:
        self.folder = folder
        self.draw = draw
        self._tested: list[int] = []

    def on_test_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        data = _data(trainer)
        for index, prediction in zip(outputs["index"].tolist(), outputs["prediction"]):
            self._tested.append(index)
            strength = prediction[..., EDGE].float().cpu().numpy()
            write_edge_map(self._raw(data.names[index]), strength)
            write_edge_map(self._map(data.names[index]), suppress(strength))

    def on_predict_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        self.on_test_batch_end(trainer, pl_module, outputs)

    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        collective, data = current_collective(), _data(trainer)
        mine = torch.tensor(self._tested, dtype=torch.long, device=pl_module.device)
        tested = sorted(torch.cat(collective.gather(mine)).tolist())
        self._tested.clear()
        figures = torch.zeros(len(FIGURES), dtype=torch.float64, device=pl_module.device)
        if collective.rank == 0:
            measured = self._evaluate(data, tested, trainer)
            figures = torch.tensor([measured[name] for name in FIGURES], dtype=torch.float64).to(figures)
        figures = collective.broadcast(figures)
        pl_module.log_dict(
            {f"test_{name}": value for name, value in zip(FIGURES, figures.float())}, rank_zero_only=True
        )

    def _evaluate(self, data: BSDS500, tested: list[int], trainer: pl.Trainer) -> dict[str, float]:
        rows = {data.names[index]: index for index in tested}
        show = trainer.progress_bar_callback is not None
        evaluation = evaluate(
            list(rows),
            lambda name: (read_edge_map(self._map(name)), data.ground_truth(rows[name])),
            show_progress=show,
        )
        write_json(self.folder / "evaluation.json", evaluation.to_dict())
        if self.draw:
            paths = self._charts(data, rows, evaluation, show)
            log_images(trainer.loggers, paths)
        return scores(evaluation.thresholds, evaluation.counts)

    def _charts(self, data: BSDS500, rows: dict[str, int], evaluation: Evaluation, show: bool) -> dict[str, Path]:
        folder = self.folder / "charts"
        agreement = human(list(rows), lambda name: data.ground_truth(rows[name]), show_progress=show)
        point = optimum(agreement.thresholds, curve(agreement.counts))
        paths = {"precision_recall": folder / "precision_recall.png", "edges": folder / "edges.png"}
        precision_recall(paths["precision_recall"], {"detector": evaluation}, point)
        shown = [list(rows)[k] for k in np.unique(np.linspace(0, len(rows) - 1, SHOWN).round().astype(int))]
        panels = []
        for name in shown:
            picture, truth = data.read(rows[name])
            panels.append((picture, truth.boundaries.mean(0), read_edge_map(self._raw(name)), name))
        sheet(paths["edges"], panels)
        if (log := self.folder / "metrics.csv").is_file():
            curves = charts.learning_curves(folder / "learning_curves.png", log)
            paths |= {"learning_curves": curves} if curves else {}
        return paths

    def _map(self, name: str) -> Path:
        return self.folder / "edges" / f"{Path(name).name}.png"

    def _raw(self, name: str) -> Path:
        return self.folder / "strengths" / f"{Path(name).name}.png"


def _data(trainer: pl.Trainer) -> BSDS500:
    data: Any = trainer.datamodule  # type: ignore[attr-defined]
    return data
