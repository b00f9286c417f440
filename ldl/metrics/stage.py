"""All measures of one stage as torchmetrics, exact over any number of processes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.utilities import dim_zero_cat

from ldl.labels import LabelSpace
from ldl.metrics.measure import Kind
from ldl.metrics.ordinal import Rows, measure_rows
from ldl.metrics.registry import measures
from ldl.metrics.sums import Sums

COMPARED: dict[Kind, tuple[str, str]] = {
    "distribution": ("prediction", "target"),
    "class": ("prediction", "target"),
    "value": ("predicted_value", "value"),
    "interval": ("interval", "value"),
    "set": ("set", "target"),
}
"""The columns that means are taken of."""

LINE_COLUMNS = ("index", "prediction", "predicted_value", "value", "train_count")
"""The columns that are kept of all rows."""


class StageMetrics(Sums):
    """What is measured of the instances of one stage.

    Args:
        labels: The label space.
        prefix: What names begin with, such as ``val_``.
        maps: Whether every pixel has a distribution.
        details: Measure details too.

    Attributes:
        means: Collections of the measures that are means over rows, by kind.
        line: What needs all rows at once, or None.
    """

    def __init__(self, labels: LabelSpace, prefix: str = "", maps: bool = False, details: bool = True) -> None:
        super().__init__()
        self.prefix = prefix
        self.means = nn.ModuleDict()
        wanted = [measure for measure in measures(labels, maps) if details or not measure.detail]
        for kind in COMPARED:
            metrics = {measure.name: measure.metric() for measure in wanted if measure.of == kind}
            if metrics:
                # Compute groups would share the state of metrics that differ in nothing but their measure.
                self.means[kind] = MetricCollection(metrics, prefix=prefix, compute_groups=False)  # type: ignore[arg-type]
        self.line = LineMetrics(labels, details) if any(measure.of == "line" for measure in wanted) else None

    def update(self, output: dict[str, Tensor]) -> list[MetricCollection]:
        """Take what ``Task.predict_step`` gives of a batch; returns the means, which are to be logged."""
        updated = []
        for kind, columns in COMPARED.items():
            # Intervals and sets are there where they are calibrated.
            if kind in self.means and all(name in output for name in columns):
                metrics = self.means[kind]
                assert isinstance(metrics, MetricCollection)
                metrics.update(*(output[name] for name in columns))
                updated.append(metrics)
        if self.line is not None:
            self.line.update(output)
        return updated

    def finish(self) -> dict[str, float]:
        """What all rows at once tell; the next row begins anew. Every process calls it."""
        if self.line is None or not self.line.value:
            return {}
        figures = self.line.compute()
        self.line.reset()
        return {self.prefix + name: figure for name, figure in figures.items()}


class LineMetrics(Metric):
    """Keeps all rows of ordinal labels, for the measures of :class:`ldl.metrics.ordinal.Rows`, maybe with details."""

    full_state_update = False
    value: list[Tensor]

    def __init__(self, labels: LabelSpace, details: bool = True) -> None:
        super().__init__()
        self.labels = labels
        self.details = details
        for name in LINE_COLUMNS:
            self.add_state(name, [], dist_reduce_fx="cat")

    def update(self, output: dict[str, Tensor]) -> None:
        """Take ``index``, ``prediction``, ``predicted_value``, ``value`` and, where it is known, ``train_count``."""
        for name in LINE_COLUMNS:
            if name in output:
                column = output[name].detach()
                # numpy has no bfloat16.
                half = column.dtype in (torch.bfloat16, torch.float16)
                getattr(self, name).append(column.float() if half else column)

    def compute(self) -> dict[str, float]:
        """The measures by name, of the rows in the order of the data set."""
        columns = {name: getattr(self, name) for name in LINE_COLUMNS}
        rows = {name: dim_zero_cat(column).cpu() for name, column in columns.items() if len(column)}
        order = torch.argsort(rows.pop("index"), stable=True)
        columns = {name: column[order].numpy() for name, column in rows.items()}
        wanted = [m for m in measures(self.labels) if m.of == "line" and (self.details or not m.detail)]
        return measure_rows(Rows(labels=self.labels, **columns), wanted)
