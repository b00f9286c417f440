"""The choice of the report of a run: that of the data module, or one by the kind of predictions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytorch_lightning as pl

from ldl.data.base import LDLDataModule
from ldl.reports.maps import MapReport
from ldl.reports.rows import Report
from ldl.task import Task


def make_report(task: Task, data: LDLDataModule, folder: Path, draw: bool = True, quote: bool = False) -> pl.Callback:
    """Return the callback that writes the results of a test or prediction.

    Args:
        task: The task, built.
        data: The data module; see ``LDLDataModule.report_class``.
        folder: The run directory.
        draw: Draw charts.
        quote: Write names that spreadsheet programs read as formulas with an apostrophe before them.
    """
    usual = MapReport if task.gives_maps else Report
    report: Callable[..., pl.Callback] = data.report_class(task.gives_maps) or usual
    return report(folder, draw, quote)
