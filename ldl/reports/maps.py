"""Predictions at every pixel: one map per image, as PNG, and a sheet of some of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from torch import Tensor
from typing_extensions import override

from ldl import charts
from ldl.charts.drawing import captioned, spread, warn_on_error
from ldl.charts.images import label_colors
from ldl.collective import current_collective
from ldl.data.base import LDLDataModule
from ldl.labels import LabelSpace
from ldl.metrics.functional import kl
from ldl.reports.files import below, log_images, log_table, write_csv
from ldl.reports.rows import TABLE_ROWS, caption, data_of, draw_learning, head_charts, instances, name_of
from ldl.validation.pictures import open_picture

SHEET_IMAGES = 4
"""Images on a sheet."""

LARGEST_GREY = 65535
"""Largest grey of 16 bits."""


class EachImage(pl.Callback, ABC):
    """Base of reports on maps: each process writes its images, then all processes combine their results.

    Args:
        folder: The run directory.
        draw: Draw charts.
        quote: Write names that spreadsheet programs read as formulas with an apostrophe before them.
    """

    def __init__(self, folder: Path, draw: bool = True, quote: bool = False) -> None:
        self.folder, self.draw, self.quote = folder, draw, quote
        self.index = np.empty(0, int)
        self._done: list[tuple[float, float]] = []

    @abstractmethod
    def write(self, data: Any, index: int, output: dict[str, Tensor], labels: LabelSpace) -> float:
        """Write one image from its part of the output of a step of ``Task``; return a result, or NaN."""

    @abstractmethod
    def finish(self, trainer: pl.Trainer, task: Any, index: np.ndarray, result: np.ndarray) -> None:
        """Combine all images, given rising indices (n,) and results (n,). Every process calls it."""

    @abstractmethod
    def sheets(self, trainer: pl.Trainer, task: Any) -> dict[str, Path]:
        """Draw charts of all images, in the first process."""

    @override
    def on_test_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        for row, index in enumerate(outputs["index"].tolist()):
            output = {name: column[row].detach() for name, column in outputs.items()}
            self._done.append((index, self.write(data_of(trainer), index, output, pl_module.labels)))

    on_predict_batch_end = on_test_batch_end  # type: ignore[assignment]

    @override
    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        collective = current_collective()
        mine = torch.tensor(self._done, dtype=torch.float64, device=pl_module.device).reshape(-1, 2)
        self._done.clear()
        done = torch.cat(collective.gather(mine)).cpu().numpy()
        done = done[np.argsort(done[:, 0])]
        self.index = done[:, 0].astype(int)
        self.finish(trainer, pl_module, self.index, done[:, 1])

    on_predict_epoch_end = on_test_epoch_end

    @override
    def on_test_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if trainer.is_global_zero and self.draw:
            with captioned(caption(pl_module.head, data_of(trainer), self.folder)):
                paths: dict[str, Path] = {}
                with warn_on_error("charts of images"):
                    paths |= self.sheets(trainer, pl_module)
                log_images(trainer.loggers, paths | draw_learning(self.folder))

    on_predict_end = on_test_end


class MapReport(EachImage):
    """Write ``maps/NAME.png`` of every image, ``predictions.csv`` with one row per image, and a sheet of some images.

    :func:`write_plane` describes the maps; a grid has one file per axis, ``NAME_AXIS.png``. The table has the mean KL
    divergence over the pixels of each image with a known target.
    """

    @override
    def write(self, data: Any, index: int, output: dict[str, Tensor], labels: LabelSpace) -> float:
        images = planes(output["prediction"], output.get("predicted_value"), labels)
        for axis, (file, plane) in enumerate(zip(self._files(data, index, labels), images)):
            write_plane(file, plane, labels, axis)
        target = output.get("target")
        return math.nan if target is None else float(kl(output["prediction"].double(), target.double()).mean())

    @override
    def finish(self, trainer: pl.Trainer, task: Any, index: np.ndarray, result: np.ndarray) -> None:
        if not trainer.is_global_zero:
            return
        data, labels = data_of(trainer), task.labels
        columns: dict[str, list[Any]] = {"index": index.tolist(), "name": [name_of(data, row) for row in index]}
        if not np.isnan(result).all():
            columns["kl"] = result.tolist()
        for axis, plane in enumerate(plane_names(labels)):
            files = [self._files(data, row, labels)[axis] for row in index]
            columns[f"map_{plane}" if plane else "map"] = [file.relative_to(self.folder).as_posix() for file in files]
        table = [list(row) for row in zip(*columns.values())]
        write_csv(self.folder / "predictions.csv", list(columns), table, self.quote)
        log_table(trainer.loggers, list(columns), table[:TABLE_ROWS])

    @override
    def sheets(self, trainer: pl.Trainer, task: Any) -> dict[str, Path]:
        data, index = data_of(trainer), self.index
        if not isinstance(data, LDLDataModule):
            return {}
        paths: dict[str, Path] = {}
        with warn_on_error("charts/maps.png"):
            paths["maps"] = self._sheet(data, task.labels, index[spread(len(index), SHEET_IMAGES)])
        return paths | head_charts(self.folder / "charts", trainer, task, data, index)

    def _sheet(self, data: LDLDataModule, labels: LabelSpace, rows: np.ndarray) -> Path:
        panels, titles = [], ["image"]
        for row in rows:
            batch = instances(data, np.array([row]))
            shown = {"image": _image(batch)}
            files = self._files(data, row, labels)
            maps = {"prediction": [read_plane(file, labels, axis) for axis, file in enumerate(files)]}
            if "target" in batch:
                value = batch["value"][0] if "value" in batch else None
                maps = {"truth": planes(batch["target"][0], value, labels), **maps}
            for kind, each in maps.items():
                shown |= {f"{kind} {name}".rstrip(): plane for name, plane in zip(plane_names(labels), each)}
            titles = list(shown)
            panels.append((name_of(data, row), list(shown.values())))
        return charts.maps(self.folder / "charts" / "maps.png", panels, titles, labels)

    def _files(self, data: Any, row: int, labels: LabelSpace) -> list[Path]:
        stem = self.folder / "maps" / below(name_of(data, row))
        return [Path(f"{stem}_{plane}.png" if plane else f"{stem}.png") for plane in plane_names(labels)]


def _image(batch: dict[str, Tensor]) -> np.ndarray | None:
    """Return the image (H, W, 3) or (H, W) of a batch of one, if its input is one in uint8."""
    image = batch.get("input")
    if image is None or image.dtype != torch.uint8 or image.ndim != 4 or image.shape[1] not in (1, 3):
        return None
    return image[0].permute(1, 2, 0).squeeze(-1).numpy()


def plane_names(labels: LabelSpace) -> list[str]:
    """Return the names of the planes of a map: an empty one, or the axes of a grid."""
    return [""] if labels.ndim < 2 else list(labels.axis_names or ("0", "1"))


def planes(distribution: Tensor, value: Tensor | None, labels: LabelSpace) -> list[np.ndarray]:
    """Return the planes, (H, W) each, of a map of distributions (H, W, C).

    For labels with values they are the ``value`` along each axis, (H, W) or (H, W, 2), or None to decode the
    distributions; for two nominal labels the probability of the second; for more the index of the likeliest.
    """
    if labels.has_values:
        value = labels.decode(distribution) if value is None else value
        maps = [value] if labels.ndim == 1 else list(value.unbind(-1))
    else:
        maps = [distribution[..., 1] if len(labels) == 2 else distribution.argmax(-1)]
    return [(plane.double() if plane.is_floating_point() else plane).cpu().numpy() for plane in maps]


def write_plane(path: Path, plane: np.ndarray, labels: LabelSpace, axis: int = 0) -> None:
    """Write a plane as PNG, whose ``Description`` explains its numbers.

    Values are grey of 16 bits from the first to the last label; the probability of the second of two labels is grey of
    8 bits; the index of the likeliest label is a colour of a palette, or grey of 16 bits with more than 256 labels.
    """
    if labels.has_values:
        low, high = labels.axes[axis][0], labels.axes[axis][-1]
        scaled = (plane - low) / max(high - low, 1e-300)
        image = Image.fromarray(np.round(LARGEST_GREY * scaled.clip(0, 1)).astype(np.uint16))
        text = f"0 is {low:g} {labels.unit}".rstrip() + f", {LARGEST_GREY} is {high:g} {labels.unit}".rstrip()
    elif len(labels) == 2:
        image = Image.fromarray(np.round(255 * plane).astype(np.uint8))
        text = f"255 is {labels.names[1]} for certain, 0 is {labels.names[0]}"
    else:
        small = len(labels) <= 256
        image = Image.fromarray(plane.astype(np.uint8 if small else np.uint16))
        if small:
            image.putpalette(label_colors(len(labels)).tobytes())
        text = ", ".join(f"{number} is {name}" for number, name in enumerate(labels.names))
    about = PngInfo()
    about.add_itxt("Description", text)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, pnginfo=about)


def read_plane(path: Path, labels: LabelSpace, axis: int = 0) -> np.ndarray:
    """Return the plane of a file of :func:`write_plane`, (H, W), as exact as the file."""
    plane = np.asarray(open_picture(path))
    if labels.has_values:
        low, high = labels.axes[axis][0], labels.axes[axis][-1]
        return low + (high - low) * (plane / LARGEST_GREY)
    return plane / 255 if len(labels) == 2 else plane
