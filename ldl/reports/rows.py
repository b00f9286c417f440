"""Predictions and charts of the test instances."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl import charts
from ldl.batch import Batch
from ldl.charts.drawing import captioned
from ldl.collective import current_collective
from ldl.data.base import LDLDataModule
from ldl.data.instances import Guarded, collate
from ldl.data.sampler import Draws
from ldl.head import Head
from ldl.inference.predictions import Predictions
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.metrics.intervals import INTERVAL_LEVELS
from ldl.reports.caption import caption
from ldl.reports.files import lines, write_csv
from ldl.reports.loggers import log_images, log_table
from ldl.reports.photographs import MOST_DRAWN, Photographs, draw_photographs

TABLE_ROWS = 200


class Report(pl.Callback):
    """Writes ``predictions.csv`` and ``charts/`` after a test or prediction, and shows them to the loggers.

    Args:
        folder: The run directory.
        draw: Draw charts; without, only ``predictions.csv`` is written.

    Attributes:
        rows: Columns of all rows of the last test or prediction, over all processes, in the order of the data set:
            what the steps of ``Task`` give.
    """

    def __init__(self, folder: Path, draw: bool = True) -> None:
        self.folder = folder
        self.draw = draw
        self.rows: dict[str, np.ndarray] = {}
        self._batches: list[dict[str, Tensor]] = []

    def on_test_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        # numpy has no bfloat16.
        half = (torch.bfloat16, torch.float16)
        columns = {name: column.float() if column.dtype in half else column for name, column in outputs.items()}
        self._batches.append({name: column.detach().cpu() for name, column in columns.items()})

    on_predict_batch_end = on_test_batch_end  # type: ignore[assignment]

    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        collective = current_collective()
        rows = {}
        for name in self._batches[0]:
            column = torch.cat([batch[name] for batch in self._batches])
            gathered = collective.gather(column.to(pl_module.device)) if collective.world_size > 1 else [column]
            rows[name] = torch.cat([part.cpu() for part in gathered]).numpy()
        self._batches.clear()
        order = np.argsort(rows["index"], kind="stable")
        self.rows = {name: column[order] for name, column in rows.items()}

    on_predict_epoch_end = on_test_epoch_end

    def on_test_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if trainer.is_global_zero:
            data, levels = data_of(trainer), INTERVAL_LEVELS if trainer.predicting else ()
            names, facts = getattr(data, "names", None), getattr(data, "facts", None)
            columns = tabulate(self.rows, pl_module.labels, names, levels, facts, pl_module.calibration)
            write_csv(self.folder / "predictions.csv", list(columns), lines(columns.values()))
            with captioned(caption(pl_module.head, data, self.folder)):
                paths = self._draw(pl_module, trainer) if self.draw else {}
            log_images(trainer.loggers, paths)
            log_table(trainer.loggers, list(columns), list(islice(lines(columns.values()), TABLE_ROWS)))

    def on_predict_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self.on_test_end(trainer, pl_module)
        if trainer.is_global_zero and self.draw and "target" not in self.rows:
            with captioned(caption(pl_module.head, data_of(trainer), self.folder)):
                self._draw_each(data_of(trainer), pl_module.labels, pl_module.calibration)

    def _draw(self, task: Any, trainer: pl.Trainer) -> dict[str, Path]:
        folder, data = self.folder / "charts", data_of(trainer)
        fetch, names = partial(pictures, data), data and data.names
        paths = charts.overview(folder, self.rows, task.labels, fetch, names, task.calibration)
        if isinstance(data, LDLDataModule):
            order = task.head.chart_order(torch.from_numpy(self.rows["prediction"])).numpy()
            paths.update(head_charts(folder, trainer, task, data, self.rows["index"][order]))
        return paths | draw_learning(self.folder)

    def _draw_each(self, data: Any, labels: LabelSpace, calibration: Conformal | None) -> None:
        """One chart a picture, of pictures of which nothing else is known, up to ``MOST_DRAWN``."""
        if isinstance(data, Photographs) and "face" in data.facts:
            draw_photographs(self.folder / "charts" / "pictures", data, self.rows, labels, calibration)
            return
        values, index = self.rows.get("predicted_value"), self.rows["index"]
        if len(index) > MOST_DRAWN:
            print(f"charts/pictures: the first {MOST_DRAWN} of {len(index):,} pictures; predictions.csv has all")
        for row, number in enumerate(index[:MOST_DRAWN]):
            picture = pictures(data, np.array([number]))
            if picture is not None:
                path = self.folder / "charts" / "pictures" / f"{name_of(data, number)}.png"
                value = None if values is None else values[row]
                charts.prediction(path, picture[0], self.rows["prediction"][row], value, labels)


def data_of(trainer: pl.Trainer) -> Any:
    """The data module of a run; None where it was given loaders."""
    return getattr(trainer, "datamodule", None)


def name_of(data: Any, row: int) -> str:
    """What an instance of a data set is called, or its number."""
    names = getattr(data, "names", None)
    return str(row) if names is None else names[row]


def draw_learning(folder: Path) -> dict[str, Path]:
    """The learning curves of a run that has trained, from its ``metrics.csv``."""
    log = folder / "metrics.csv"
    curves = charts.learning_curves(folder / "charts" / "learning_curves.png", log) if log.is_file() else None
    return {"learning_curves": curves} if curves else {}


@torch.no_grad()
def head_charts(
    folder: Path, trainer: pl.Trainer, task: Any, data: LDLDataModule, index: np.ndarray
) -> dict[str, Path]:
    """What the head draws of the first of the test instances ``index`` (n,): see ``Head.charts``."""
    head: Head = task.head
    if type(head).charts is Head.charts:
        return {}
    # No more than a batch, which is known to fit, and no second pass over the data.
    rows = index[: max(1, data.eval_batch_size // trainer.world_size)]
    batch = instances(data, rows)
    if data.backbone_features is not None:
        batch["features"] = data.backbone_features[torch.from_numpy(rows)]
    if data.truth is not None:
        batch["truth"] = torch.from_numpy(data.truth[rows])
    batch = {name: column.to(task.device) for name, column in trainer.precision_plugin.convert_input(batch).items()}
    batch["features"] = task.features(batch)
    batch["prediction"] = head(batch["features"])
    boxes = task.backbone.boxes(tuple(data.input_shape))
    return head.charts(folder, batch if boxes is None else {**batch, "boxes": boxes})


def instances(data: LDLDataModule, index: np.ndarray) -> Batch:
    """A batch of the instances ``index`` (n,) of a data set, as evaluation sees them."""
    draws = Draws(np.arange(len(index)))
    batch: Batch = collate(Guarded(data.dataset(index, train=False)).__getitems__(draws))
    return batch


def pictures(data: Any, index: np.ndarray) -> np.ndarray | None:
    """The inputs of instances ``index`` (n,), (n, H, W, 3) uint8, where those of the data module are pictures.

    These are of three channels or of one, in uint8 or from 0 to 1.
    """
    if not isinstance(data, LDLDataModule) or len(data.input_shape) != 3 or data.input_shape[0] not in (1, 3):
        return None
    images = instances(data, index).get("input")
    if images is not None and images.is_floating_point() and 0 <= float(images.min()) <= float(images.max()) <= 1:
        images = (255 * images).round().to(torch.uint8)
    if images is None or images.dtype != torch.uint8:
        return None
    return images.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).numpy()


def tabulate(
    rows: dict[str, np.ndarray],
    labels: LabelSpace,
    names: list[str] | None = None,
    levels: Sequence[int] = (),
    facts: dict[str, np.ndarray] | None = None,
    calibration: Conformal | None = None,
) -> dict[str, np.ndarray]:
    """The columns of ``predictions.csv``: index, name, facts, group, values, then both distributions by label.

    ``names`` and ``facts`` have one entry an instance of the data set. With ``levels``, in percent, come the standard
    deviation, ``value_std``, and an interval each, such as ``lower_90`` and ``upper_90``, where labels have values,
    calibrated where there is a calibration; of nominal labels the names of a calibrated set, such as ``set_90``.
    """
    columns: dict[str, np.ndarray] = {"index": rows["index"]}
    if names is not None:
        columns["name"] = np.array(names, dtype=object)[rows["index"]]
    columns.update({name: fact[rows["index"]] for name, fact in (facts or {}).items()})
    if "group" in rows:
        columns["group"] = rows["group"]
    for name in ("value", "predicted_value"):
        if name in rows:
            columns.update(_by_axis(name, rows[name], labels))
    if levels:
        found = Predictions(rows["prediction"], rows.get("predicted_value"), labels, calibration=calibration)
        columns.update(_spread(found, levels))
    for name in ("target", "prediction"):
        if name in rows:
            columns.update({f"{name}:{label}": rows[name][:, number] for number, label in enumerate(labels.names)})
    return columns


def _spread(found: Predictions, levels: Sequence[int]) -> dict[str, np.ndarray]:
    """Deviation and intervals of labels with values, calibrated sets of nominal ones, their names between bars."""
    labels, columns = found.labels, {}
    if found.std is not None:
        columns.update(_by_axis("value_std", found.std, labels))
        for level in levels:
            ends = found.interval(level / 100)
            columns.update(_by_axis(f"lower_{level}", ends[..., 0], labels))
            columns.update(_by_axis(f"upper_{level}", ends[..., 1], labels))
    elif found.calibration is not None:
        for level in levels:
            sets = found.label_set(level / 100)
            texts = ["|".join(name for name, held in zip(labels.names, row) if held) for row in sets]
            columns[f"set_{level}"] = np.array(texts, dtype=object)
    return columns


def _by_axis(name: str, column: np.ndarray, labels: LabelSpace) -> dict[str, np.ndarray]:
    """A column (n,), or one an axis of (n, 2)."""
    parts = column.reshape(len(column), -1).T
    axes = labels.axis_names or range(len(parts))
    return {name if len(parts) == 1 else f"{name}_{axis}": part for axis, part in zip(axes, parts)}
