"""What is written of predictions at every pixel: a map an image, and a sheet of some of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl import charts
from ldl.charts.drawing import captioned, spread
from ldl.collective import current_collective
from ldl.data.base import LDLDataModule
from ldl.labels import LabelSpace
from ldl.metrics.functional import kl
from ldl.reports.caption import caption
from ldl.reports.files import write_csv
from ldl.reports.loggers import log_images, log_table
from ldl.reports.planes import plane_names, planes, read_plane, write_plane
from ldl.reports.rows import TABLE_ROWS, data_of, draw_learning, head_charts, instances, name_of

SHOWN = 4
"""Images on a sheet."""


class EachImage(pl.Callback, ABC):
    """The base of reports on maps: each process writes down its images, then all of them are looked at together."""

    def __init__(self, folder: Path, draw: bool = True) -> None:
        self.folder = folder
        self.draw = draw
        self._done: list[tuple[float, float]] = []

    @abstractmethod
    def write(self, data: Any, index: int, output: dict[str, Tensor], labels: LabelSpace) -> float:
        """Write down one image, of which ``output`` is what the steps of ``Task`` give; returns a figure, or NaN."""

    @abstractmethod
    def finish(self, trainer: pl.Trainer, task: Any, index: np.ndarray, figure: np.ndarray) -> dict[str, Path]:
        """After all images: their numbers (n,), rising, and figures (n,). Every process calls it; returns charts."""

    def on_test_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        for place, index in enumerate(outputs["index"].tolist()):
            output = {name: column[place].detach() for name, column in outputs.items()}
            self._done.append((index, self.write(data_of(trainer), index, output, pl_module.labels)))

    on_predict_batch_end = on_test_batch_end  # type: ignore[assignment]

    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        collective = current_collective()
        mine = torch.tensor(self._done, dtype=torch.float64, device=pl_module.device).reshape(-1, 2)
        self._done.clear()
        done = torch.cat(collective.gather(mine)).cpu().numpy()
        done = done[np.argsort(done[:, 0])]
        with captioned(caption(pl_module.head, data_of(trainer), self.folder)):
            paths = self.finish(trainer, pl_module, done[:, 0].astype(int), done[:, 1])
            if collective.rank == 0:
                log_images(trainer.loggers, paths | (draw_learning(self.folder) if self.draw else {}))

    on_predict_epoch_end = on_test_epoch_end


class MapReport(EachImage):
    """Writes ``maps/NAME.png`` of every image, ``predictions.csv`` with a row an image, and a sheet of some images.

    A map holds of two nominal labels the probability of the second, of more the likeliest label, and of labels with
    values the decoded value (on a grid a file an axis, ``NAME_AXIS.png``): see :func:`ldl.reports.planes.write_plane`.
    The table has the mean KL divergence over the pixels of each image whose target is known.
    """

    def write(self, data: Any, index: int, output: dict[str, Tensor], labels: LabelSpace) -> float:
        found = planes(output["prediction"], output.get("predicted_value"), labels)
        for axis, (file, plane) in enumerate(zip(self._files(data, index, labels), found)):
            write_plane(file, plane, labels, axis)
        target = output.get("target")
        return math.nan if target is None else float(kl(output["prediction"].double(), target.double()).mean())

    def finish(self, trainer: pl.Trainer, task: Any, index: np.ndarray, figure: np.ndarray) -> dict[str, Path]:
        if not trainer.is_global_zero:
            return {}
        data, labels = data_of(trainer), task.labels
        columns: dict[str, list[Any]] = {"index": index.tolist(), "name": [name_of(data, row) for row in index]}
        if not np.isnan(figure).all():
            columns["kl"] = figure.tolist()
        for axis, plane in enumerate(plane_names(labels)):
            files = [self._files(data, row, labels)[axis] for row in index]
            columns[f"map_{plane}" if plane else "map"] = [file.relative_to(self.folder).as_posix() for file in files]
        table = [list(row) for row in zip(*columns.values())]
        write_csv(self.folder / "predictions.csv", list(columns), table)
        log_table(trainer.loggers, list(columns), table[:TABLE_ROWS])
        if not self.draw or not isinstance(data, LDLDataModule):
            return {}
        folder = self.folder / "charts"
        sheet = self._sheet(data, labels, index[spread(len(index), SHOWN)])
        return {"maps": sheet} | head_charts(folder, trainer, task, data, index)

    def _sheet(self, data: LDLDataModule, labels: LabelSpace, rows: np.ndarray) -> Path:
        panels, titles = [], ["image"]
        for row in rows:
            batch = instances(data, np.array([row]))
            shown = {"image": _picture(batch)}
            if "target" in batch:
                value = batch["value"][0] if "value" in batch else None
                shown |= _named("truth", planes(batch["target"][0], value, labels), labels)
            files = self._files(data, row, labels)
            found = [read_plane(file, labels, axis) for axis, file in enumerate(files)]
            shown |= _named("prediction", found, labels)
            titles = list(shown)
            panels.append((name_of(data, row), list(shown.values())))
        return charts.maps(self.folder / "charts" / "maps.png", panels, titles, labels)

    def _files(self, data: Any, row: int, labels: LabelSpace) -> list[Path]:
        stem = self.folder / "maps" / name_of(data, row)
        return [Path(f"{stem}_{plane}.png" if plane else f"{stem}.png") for plane in plane_names(labels)]


def _named(what: str, found: list[np.ndarray], labels: LabelSpace) -> dict[str, np.ndarray]:
    return {f"{what} {plane}".rstrip(): map_ for plane, map_ in zip(plane_names(labels), found)}


def _picture(batch: dict[str, Tensor]) -> np.ndarray | None:
    """The picture (H, W, 3) or (H, W) of a batch of one, where its input is one, in uint8."""
    image = batch.get("input")
    if image is None or image.dtype != torch.uint8 or image.ndim != 4 or image.shape[1] not in (1, 3):
        return None
    return image[0].permute(1, 2, 0).squeeze(-1).numpy()
