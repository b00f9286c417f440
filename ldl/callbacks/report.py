"""Predictions and charts of the test instances."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl import charts
from ldl.collective import current_collective
from ldl.heads.ldlf import LDLF
from ldl.labels import LabelSpace
from ldl.tracking import log_images, log_table

PANELS = 9
TABLE_ROWS = 200


class Report(pl.Callback):
    """Writes ``predictions.csv`` and ``charts/`` after a test or prediction, and shows them to the loggers.

    Args:
        folder: The run directory.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._batches: list[dict[str, Tensor]] = []

    def on_test_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        # numpy has no bfloat16.
        half = (torch.bfloat16, torch.float16)
        columns = {name: column.float() if column.dtype in half else column for name, column in outputs.items()}
        self._batches.append({name: column.detach().cpu() for name, column in columns.items()})

    def on_predict_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        self.on_test_batch_end(trainer, pl_module, outputs)

    def on_test_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        rows = self._collect(pl_module.device)
        if trainer.is_global_zero:
            header, table = tabulate(rows, pl_module.labels)
            write_csv(self.folder / "predictions.csv", header, table)
            paths = self._draw(rows, pl_module, trainer)
            log_images(trainer.loggers, paths)
            log_table(trainer.loggers, header, table[:TABLE_ROWS])

    def on_predict_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self.on_test_end(trainer, pl_module)

    def _collect(self, device: torch.device) -> dict[str, np.ndarray]:
        """All ranks' rows, in the order of the data set."""
        collective = current_collective()
        rows = {}
        for name in self._batches[0]:
            column = torch.cat([batch[name] for batch in self._batches])
            gathered = collective.gather(column.to(device)) if collective.world_size > 1 else [column]
            rows[name] = torch.cat([part.cpu() for part in gathered]).numpy()
        self._batches.clear()
        order = np.argsort(rows["index"], kind="stable")
        return {name: column[order] for name, column in rows.items()}

    def _draw(self, rows: dict[str, np.ndarray], task: Any, trainer: pl.Trainer) -> dict[str, Path]:
        folder = self.folder / "charts"
        paths = {}
        if "target" in rows:
            # Evenly spaced over the rows, so that the picture is the same from run to run.
            picked = np.unique(np.linspace(0, len(rows["index"]) - 1, PANELS).round().astype(int))
            titles = [f"instance {rows['index'][row]}" for row in picked]
            paths["distributions"] = charts.distributions(
                folder / "distributions.png", rows["prediction"][picked], rows["target"][picked], task.labels, titles
            )
        if "value" in rows and "predicted_value" in rows:
            paths["values"] = charts.values(folder / "values.png", rows["predicted_value"], rows["value"], task.labels)
        if isinstance(task.head, LDLF):
            paths["leaves"] = charts.leaves(
                folder / "leaves.png",
                task.head.leaves[0].float().cpu().numpy(),
                task.labels,
                self._leaf_usage(task, trainer),
            )
        if (log := self.folder / "metrics.csv").is_file():
            curves = charts.learning_curves(folder / "learning_curves.png", log)
            paths.update({"learning_curves": curves} if curves else {})
        return paths

    @staticmethod
    @torch.no_grad()
    def _leaf_usage(task: Any, trainer: pl.Trainer) -> np.ndarray:
        # One batch is enough for a picture, and costs no second pass over the data.
        loader: Any = trainer.test_dataloaders or trainer.predict_dataloaders
        batch = next(iter(loader))
        batch = trainer.precision_plugin.convert_input(batch)
        routing = task.head.route(task.backbone(batch["input"].to(task.device)))
        return routing[:, 0].mean(0).float().cpu().numpy()


def tabulate(rows: dict[str, np.ndarray], labels: LabelSpace) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of ``predictions.csv``: index, group, values, then both distributions label by label."""
    columns: dict[str, np.ndarray] = {name: rows[name] for name in ("index", "group") if name in rows}
    for name in ("value", "predicted_value"):
        if name in rows:
            parts = rows[name].reshape(len(rows["index"]), -1).T
            columns.update({name if len(parts) == 1 else f"{name}_{axis}": part for axis, part in enumerate(parts)})
    for name in ("target", "prediction"):
        if name in rows:
            columns.update({f"{name}:{label}": rows[name][:, number] for number, label in enumerate(labels.names)})
    return list(columns), [list(row) for row in zip(*(column.tolist() for column in columns.values()))]


def write_csv(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    """Write a CSV file; numbers keep seven digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([f"{item:.7g}" if isinstance(item, float) else item for item in row] for row in rows)
