"""Which report a run gets: by the kind of data and the shape of what is predicted."""

from __future__ import annotations

from pathlib import Path

import pytorch_lightning as pl

from ldl.data.base import LDLDataModule
from ldl.reports.edges import Annotated, EdgeReport
from ldl.reports.maps import MapReport
from ldl.reports.rows import Report
from ldl.task import Task


def report_for(task: Task, data: LDLDataModule, folder: Path, draw: bool = True) -> pl.Callback:
    """What writes down the outcome of a test or prediction of a built task in the run directory, ``folder``.

    Where the task gives a distribution at every pixel, every image gets a map; where annotators drew edges of the
    images, their benchmark is run.
    """
    if not task.gives_maps:
        return Report(folder, draw)
    return EdgeReport(folder, draw) if isinstance(data, Annotated) else MapReport(folder, draw)
