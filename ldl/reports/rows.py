"""Predictions and charts of the test rows of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytorch_lightning as pl
import torch
from torch import Tensor
from typing_extensions import override

from ldl import charts
from ldl.batch import Batch, without_half
from ldl.charts.drawing import captioned, warn_on_error
from ldl.collective import current_collective
from ldl.data.base import LDLDataModule
from ldl.data.loader import Guarded, collate
from ldl.data.sampler import Draws
from ldl.head import Head
from ldl.inference.predictions import Predictions
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.metrics.registry import INTERVAL_LEVELS
from ldl.reports.files import below, lines, log_images, log_table, write_csv
from ldl.reports.raters import describe_model, summarize_raters, write_raters
from ldl.reports.votes import compare_with_raters, power_columns, worth_in_words

TABLE_ROWS = 200
"""Rows of the table of predictions for loggers."""

MOST_DRAWN = 1000
"""Largest number of images that get a chart each; a thousand take some minutes."""

INTERVAL_LEVEL = 0.9
"""Level of the interval that is written beside a value."""


class Report(pl.Callback):
    """Write ``predictions.csv`` and ``charts/`` after a test or prediction, and send them to the loggers.

    Args:
        folder: The run directory.
        draw: Draw charts.
        quote: Write names that spreadsheet programs read as formulas with an apostrophe before them.

    Attributes:
        rows: Columns of all rows of the last test or prediction, over all processes, in the order of the data set: the
            outputs of the steps of ``Task``, and the power curves of votes.
        raters: The comparison of the last test with annotators, or None; see :mod:`ldl.reports.votes`.
        rater_table: The raters of the model after a test, or None; see :mod:`ldl.reports.raters`.
    """

    def __init__(self, folder: Path, draw: bool = True, quote: bool = False) -> None:
        self.folder, self.draw, self.quote = folder, draw, quote
        self.rows: dict[str, np.ndarray] = {}
        self.raters: dict[str, Any] | None = None
        self.rater_table: pd.DataFrame | None = None
        self._batches: list[dict[str, Tensor]] = []

    @override
    def on_test_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        self._batches.append({name: without_half(column.detach()).cpu() for name, column in outputs.items()})

    on_predict_batch_end = on_test_batch_end  # type: ignore[assignment]

    @override
    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        collective = current_collective()
        rows = {}
        for name in self._batches[0]:
            column = torch.cat([batch[name] for batch in self._batches])
            gathered = collective.gather(column.to(pl_module.device)) if collective.world_size > 1 else [column]
            rows[name] = torch.cat([shard.cpu() for shard in gathered]).numpy()
        self._batches.clear()
        order = np.argsort(rows["index"], kind="stable")
        self.rows = {name: column[order] for name, column in rows.items()}
        if "votes" in self.rows and trainer.testing:
            self.rows |= power_columns(data_of(trainer), self.rows, pl_module.model_votes)
            self.raters = compare_with_raters(self.rows, pl_module.labels)
        self.rater_table = describe_model(trainer, pl_module) if trainer.testing else None
        if trainer.is_global_zero:
            self.write(trainer, pl_module)

    on_predict_epoch_end = on_test_epoch_end

    def write(self, trainer: pl.Trainer, task: Any) -> None:
        """Write ``predictions.csv`` and ``raters.csv``; a subclass that only collects ``rows`` writes nothing."""
        columns = self._columns(trainer, task)
        write_csv(self.folder / "predictions.csv", list(columns), lines(columns.values()), self.quote)
        if self.rater_table is not None:
            write_raters(self.folder / "raters.csv", self.rater_table, self.quote)

    def entries(self, task: Any) -> dict[str, Any]:
        """Return entries of the last test for its fold in ``results.json``: annotators, and the model of raters."""
        entries = {} if self.raters is None else {"raters": self.raters}
        if self.rater_table is not None:
            entries["rater_model"] = summarize_raters(task.raters, self.rater_table)
        return entries

    def _columns(self, trainer: pl.Trainer, task: Any) -> dict[str, np.ndarray]:
        data, levels = data_of(trainer), INTERVAL_LEVELS if trainer.predicting else ()
        names, facts, groups = (getattr(data, name, None) for name in ("names", "facts", "group_names"))
        return tabulate(self.rows, task.labels, names, levels, facts, self._calibration(task), groups)

    def _calibration(self, task: Any) -> Conformal | None:
        """Return the calibration of the rows; it does not hold for predictions of single raters."""
        calibration: Conformal | None = task.calibration
        return None if "as_rater" in self.rows else calibration

    @override
    def on_test_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if trainer.is_global_zero:
            with captioned(caption(pl_module.head, data_of(trainer), self.folder)):
                paths = self._draw(pl_module, trainer) if self.draw else {}
            log_images(trainer.loggers, paths)
            columns = self._columns(trainer, pl_module)
            log_table(trainer.loggers, list(columns), list(islice(lines(columns.values()), TABLE_ROWS)))

    @override
    def on_predict_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self.on_test_end(trainer, pl_module)
        if trainer.is_global_zero and self.draw and "target" not in self.rows:
            with captioned(caption(pl_module.head, data_of(trainer), self.folder)), warn_on_error("charts/pictures"):
                draw_each(self.folder, data_of(trainer), self.rows, pl_module.labels, self._calibration(pl_module))

    def _draw(self, task: Any, trainer: pl.Trainer) -> dict[str, Path]:
        folder, data = self.folder / "charts", data_of(trainer)
        fetch, names = partial(images_of, data), data and data.names
        paths = charts.overview(folder, self.rows, task.labels, fetch, names, self._calibration(task))
        if isinstance(data, LDLDataModule):
            order = task.head.chart_order(torch.from_numpy(self.rows["prediction"])).numpy()
            paths.update(head_charts(folder, trainer, task, data, self.rows["index"][order]))
        if self.rater_table is not None:
            with warn_on_error("charts/raters.png"):
                paths["raters"] = charts.rater_differences(folder / "raters.png", self.rater_table, task.labels)
        return paths | draw_raters(self.folder, self.raters) | draw_learning(self.folder)


def data_of(trainer: pl.Trainer) -> Any:
    """Return the data module of a run, or None if the trainer got loaders."""
    return getattr(trainer, "datamodule", None)


def name_of(data: Any, row: int) -> str:
    """Return the name of an instance, or its number."""
    names = getattr(data, "names", None)
    return str(row) if names is None else names[row]


def caption(head: Head, data: Any, folder: Path, folds: int | None = None) -> str:
    """Return the caption of a run's charts: head, data, protocol with its fold or all ``folds``, and run."""
    text = type(head).__name__
    if isinstance(data, LDLDataModule):
        several = getattr(data, "folds", 0) and data.protocol != "none"
        which = f", {folds} folds together" if folds else f", fold {data.fold}" if several else ""
        text += f" on {data.title}, {data.protocol}{which}"
    run = folder.parent.name if folder.name.startswith("fold_") else folder.name
    return f"{text}  ·  {run}"


def draw_raters(folder: Path, raters: dict[str, Any] | None) -> dict[str, Path]:
    """Draw the comparison of a run with annotators, if there is one."""
    with warn_on_error("charts/rater_equivalence.png"):
        if raters is not None:
            path = folder / "charts" / "rater_equivalence.png"
            return {path.stem: charts.rater_equivalence(path, raters, f"The model is worth {worth_in_words(raters)}")}
    return {}


def draw_learning(folder: Path) -> dict[str, Path]:
    """Draw the learning curves of a run from its ``metrics.csv``."""
    log = folder / "metrics.csv"
    with warn_on_error("charts/learning_curves.png"):
        curves = charts.learning_curves(folder / "charts" / "learning_curves.png", log) if log.is_file() else None
        return {"learning_curves": curves} if curves else {}
    return {}


@torch.no_grad()
def head_charts(
    folder: Path, trainer: pl.Trainer, task: Any, data: LDLDataModule, index: np.ndarray
) -> dict[str, Path]:
    """Draw the charts of the head for the first of the test instances ``index`` (n,); see ``Head.charts``."""
    head: Head = task.head
    if type(head).charts is Head.charts:
        return {}
    with warn_on_error(f"charts of {type(head).__name__}"):
        # Evaluation has shown that one batch fits into memory.
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
    return {}


def instances(data: LDLDataModule, index: np.ndarray) -> Batch:
    """Return a batch of the instances ``index`` (n,), as for evaluation."""
    batch: Batch = collate(Guarded(data.dataset(index, train=False)).__getitems__(Draws(np.arange(len(index)))))
    return batch


def images_of(data: Any, index: np.ndarray) -> np.ndarray | None:
    """Return the inputs of instances ``index`` (n,) as images, (n, H, W, 3) uint8, or None if they are no images.

    Images have one or three channels, in uint8 or from 0 to 1.
    """
    if not isinstance(data, LDLDataModule) or len(data.input_shape) != 3 or data.input_shape[0] not in (1, 3):
        return None
    images = instances(data, index).get("input")
    if images is not None and images.is_floating_point() and 0 <= float(images.min()) <= float(images.max()) <= 1:
        images = (255 * images).round().to(torch.uint8)
    if images is None or images.dtype != torch.uint8:
        return None
    return images.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).numpy()


def draw_each(
    run: Path, data: Any, rows: dict[str, np.ndarray], labels: LabelSpace, calibration: Conformal | None
) -> None:
    """Draw one chart per unlabelled image, up to ``MOST_DRAWN``.

    After face detection, ``data.facts`` has ``face`` and the box ``x0, y0, x1, y1`` of every row, in pixels, and
    ``data.photograph(row)`` returns the whole image of a row, (H, W, 3) uint8, which gets a box per face.
    """
    predictions, index = rows["prediction"], rows["index"]
    facts = getattr(data, "facts", None) or {}
    faces = "face" in facts
    if not faces and images_of(data, index[:1]) is None:
        return
    names = np.array([name_of(data, row) for row in index])
    drawn = list(dict.fromkeys(names.tolist()))
    if len(drawn) > MOST_DRAWN:
        print(f"charts/pictures: the first {MOST_DRAWN} of {len(drawn):,} images; predictions.csv has all")
    texts = in_words(Predictions(predictions, rows.get("predicted_value"), labels, calibration=calibration))
    boxes = np.empty((len(index), 0))
    if faces:
        texts = [f"{face}: {text}" for face, text in zip(facts["face"][index], texts)]
        boxes = np.stack([facts[side][index] for side in ("x0", "y0", "x1", "y1")], axis=1)
    for name in drawn[:MOST_DRAWN]:
        mine = np.flatnonzero(names == name)
        with warn_on_error(f"charts/pictures/{name}.png"):
            image = data.photograph(int(index[mine[0]])) if faces else images_of(data, index[mine[:1]])[0]  # type: ignore[index]
            path = run / "charts" / "pictures" / f"{below(name)}.png"
            shown = boxes[mine] if faces else np.empty((0, 4))
            charts.photograph(path, image, shown, predictions[mine], [texts[row] for row in mine], labels)


def in_words(predictions: Predictions) -> list[str]:
    """Return per row the value with its interval of 90%, or the likeliest label if labels have no values."""
    if predictions.value is None:
        return [f"{predictions.labels.names[row.argmax()]} ({row.max():.0%})" for row in predictions.distribution]
    values = predictions.value.reshape(len(predictions), -1)
    ends = predictions.interval(INTERVAL_LEVEL).reshape(len(predictions), -1, 2)
    return [
        ", ".join(f"{value:.3g} ({low:.3g} to {high:.3g})" for value, (low, high) in zip(*each))
        for each in zip(values, ends)
    ]


def tabulate(
    rows: dict[str, np.ndarray],
    labels: LabelSpace,
    names: list[str] | None = None,
    levels: Sequence[int] = (),
    facts: dict[str, np.ndarray] | None = None,
    calibration: Conformal | None = None,
    groups: list[str] | None = None,
) -> dict[str, np.ndarray]:
    """Return the columns of ``predictions.csv``: index, name, facts, group, values, then both distributions by label.

    Args:
        rows: Columns as in :class:`Report`.
        labels: The label space.
        names: Name of every instance of the data set, or None.
        levels: Levels in per cent: labels with values get ``value_std`` and an interval per level, such as ``lower_90``
            and ``upper_90``, calibrated if possible; nominal labels get the names of a calibrated set, such as
            ``set_90``.
        facts: Further columns, with one entry per instance of the data set.
        calibration: Calibration of the intervals, or None.
        groups: Name of each group by its number in ``rows``; None keeps the numbers.
    """
    columns: dict[str, np.ndarray] = {"index": rows["index"]}
    if names is not None:
        columns["name"] = np.array(names, dtype=object)[rows["index"]]
    columns.update({name: fact[rows["index"]] for name, fact in (facts or {}).items()})
    if "group" in rows:
        columns["group"] = rows["group"] if groups is None else np.array(groups, dtype=object)[rows["group"]]
    for name in ("value", "predicted_value"):
        if name in rows:
            columns.update(_by_axis(name, rows[name], labels))
    if levels:
        predictions = Predictions(rows["prediction"], rows.get("predicted_value"), labels, calibration=calibration)
        columns.update(_uncertainty(predictions, levels))
    for name in ("target", "prediction"):
        if name in rows:
            columns.update({f"{name}:{label}": rows[name][:, number] for number, label in enumerate(labels.names)})
    return columns


def _uncertainty(predictions: Predictions, levels: Sequence[int]) -> dict[str, np.ndarray]:
    labels, columns = predictions.labels, {}
    if predictions.std is not None:
        columns.update(_by_axis("value_std", predictions.std, labels))
        for level in levels:
            ends = predictions.interval(level / 100)
            columns.update(_by_axis(f"lower_{level}", ends[..., 0], labels))
            columns.update(_by_axis(f"upper_{level}", ends[..., 1], labels))
    elif predictions.calibration is not None:
        for level in levels:
            sets = predictions.label_set(level / 100)
            texts = ["|".join(name for name, held in zip(labels.names, row) if held) for row in sets]
            columns[f"set_{level}"] = np.array(texts, dtype=object)
    return columns


def _by_axis(name: str, column: np.ndarray, labels: LabelSpace) -> dict[str, np.ndarray]:
    """Return a column (n,), or one per axis of (n, 2)."""
    parts = column.reshape(len(column), -1).T
    axes = labels.axis_names or range(len(parts))
    return {name if len(parts) == 1 else f"{name}_{axis}": values for axis, values in zip(axes, parts)}
