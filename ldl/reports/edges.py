"""Edge maps of the test images, and what the benchmark says of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch

from ldl import charts
from ldl.collective import current_collective
from ldl.edges.benchmark.evaluation import write_edge_map
from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.scores import scores
from ldl.reports.loggers import log_images
from ldl.reports.outcome import edge_map, judge

if TYPE_CHECKING:
    from ldl.data.edges.bsds500 import BSDS500

EDGE = 1
"""Which label is the edge."""
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
            thin = edge_map(self.folder, data, index)
            write_edge_map(self.folder / "strengths" / thin.name, strength)
            write_edge_map(thin, suppress(strength))

    def on_predict_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        self.on_test_batch_end(trainer, pl_module, outputs)

    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        collective = current_collective()
        mine = torch.tensor(self._tested, dtype=torch.long, device=pl_module.device)
        tested = sorted(torch.cat(collective.gather(mine)).tolist())
        self._tested.clear()
        figures = torch.zeros(len(FIGURES), device=pl_module.device)
        if collective.rank == 0:
            measured = self._judge(trainer, tested, type(pl_module.head).__name__)
            figures = torch.tensor([measured[name] for name in FIGURES]).to(figures)
        figures = collective.broadcast(figures)
        pl_module.log_dict({f"test_{name}": value for name, value in zip(FIGURES, figures)}, rank_zero_only=True)

    def _judge(self, trainer: pl.Trainer, tested: list[int], detector: str) -> dict[str, float]:
        show = trainer.progress_bar_callback is not None
        evaluation, paths = judge(self.folder, _data(trainer), tested, detector, draw=self.draw, show_progress=show)
        if self.draw and (log := self.folder / "metrics.csv").is_file():
            curves = charts.learning_curves(self.folder / "charts" / "learning_curves.png", log)
            paths |= {"learning_curves": curves} if curves else {}
        log_images(trainer.loggers, paths)
        return scores(evaluation.thresholds, evaluation.counts)


def _data(trainer: pl.Trainer) -> BSDS500:
    data: Any = trainer.datamodule  # type: ignore[attr-defined]
    return data
