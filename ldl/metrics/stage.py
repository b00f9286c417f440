"""Accumulate metrics and losses over a stage as torchmetrics, exact over any number of processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torchmetrics import Metric as TorchMetric
from torchmetrics import MetricCollection
from torchmetrics.utilities import dim_zero_cat
from typing_extensions import override

from ldl.batch import without_half
from ldl.collective import Collective
from ldl.labels import LabelSpace
from ldl.metrics.metric import MetricInput
from ldl.metrics.ordinal import OrdinalPredictions, line_results
from ldl.metrics.registry import metrics_for, ordered

COMPARED: dict[MetricInput, tuple[str, ...]] = {
    "distribution": ("prediction", "target"),
    "class": ("prediction", "target"),
    "value": ("predicted_value", "value"),
    "interval": ("interval", "value"),
    "set": ("set", "target"),
    "votes": ("prediction", "target", "votes"),
    "rater": ("rater_scores",),
}
"""Columns that metrics compare, by kind."""

LINE_COLUMNS = ("index", "prediction", "predicted_value", "value", "train_count", "weight")
"""Columns that are kept of all rows."""


class Sums(nn.Module):
    """A module that follows the device of its model, but keeps its own precision."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        return super()._apply(lambda state: state.to(fn(state).device), recurse)


class StageMetrics(Sums):
    """All metrics of one stage.

    Args:
        labels: The label space.
        prefix: Prefix of the names, such as ``val_``.
        maps: Whether every pixel has a distribution.
        details: Compute details too.

    Attributes:
        means: Collections of the metrics that are means over rows, by kind.
        line: Metrics that need all rows at once, or None.
    """

    def __init__(self, labels: LabelSpace, prefix: str = "", maps: bool = False, details: bool = True) -> None:
        super().__init__()
        self.prefix = prefix
        self.means = nn.ModuleDict()
        wanted = [metric for metric in metrics_for(labels, maps) if details or not metric.detail]
        for kind in COMPARED:
            metrics = {metric.name: metric.metric() for metric in wanted if metric.of == kind}
            if metrics:
                # Compute groups would share the state of metrics that differ only in their function.
                self.means[kind] = MetricCollection(metrics, prefix=prefix, compute_groups=False)  # type: ignore[arg-type]
        self.line = LineMetrics(labels, details) if any(metric.of == "line" for metric in wanted) else None

    def update(self, output: dict[str, Tensor]) -> None:
        """Add the output of ``Task.predict_step`` for a batch."""
        for kind, columns in COMPARED.items():
            # Intervals and sets exist only after calibration, and few data have votes.
            if kind in self.means and all(name in output for name in columns):
                metrics = self.means[kind]
                assert isinstance(metrics, MetricCollection)
                metrics.update(*(output[name] for name in columns), weight=output.get("weight"))
        if self.line is not None:
            self.line.update(output)

    def finish(self) -> dict[str, TorchMetric | float]:
        """Return the metrics that have rows, to log at the end of a stage. Every process calls it.

        Means are metrics, which Lightning computes and resets. Logged at every batch, they would take most of the time
        of a validation. Metrics of all rows at once are results, and are reset here.
        """
        logged: dict[str, TorchMetric | float] = {}
        for means in self.means.values():
            assert isinstance(means, MetricCollection)
            logged |= {name: mean for name, mean in means.items() if mean.update_called}
        if self.line is not None and self.line.value:
            results = self.line.compute()
            self.line.reset()
            logged |= {self.prefix + name: result for name, result in results.items()}
        return logged


class LineMetrics(TorchMetric):
    """Keeps all rows of ordinal labels, for metrics of :class:`ldl.metrics.ordinal.OrdinalPredictions`."""

    full_state_update = False
    value: list[Tensor]

    def __init__(self, labels: LabelSpace, details: bool = True) -> None:
        super().__init__()
        self.labels = labels
        self.details = details
        for name in LINE_COLUMNS:
            self.add_state(name, [], dist_reduce_fx="cat")

    def update(self, output: dict[str, Tensor]) -> None:
        """Add ``index``, ``prediction``, ``predicted_value``, ``value`` and any ``train_count`` and ``weight``."""
        for name in LINE_COLUMNS:
            if name in output:
                getattr(self, name).append(without_half(output[name].detach()))

    def compute(self) -> dict[str, float]:
        """Return the results by name, over the rows in the order of the data set."""
        columns = {name: getattr(self, name) for name in LINE_COLUMNS}
        rows = {name: dim_zero_cat(column).cpu() for name, column in columns.items() if len(column)}
        order = torch.argsort(rows.pop("index"), stable=True)
        columns = {name: column[order].numpy() for name, column in rows.items()}
        wanted = [m for m in metrics_for(self.labels) if m.of == "line" and (self.details or not m.detail)]
        return line_results(OrdinalPredictions(labels=self.labels, **columns), wanted)


def row_metrics(rows: dict[str, np.ndarray], labels: LabelSpace) -> dict[str, float]:
    """Return all metrics of collected rows, such as those of every fold, by their names in ``results.json``.

    Args:
        rows: ``prediction`` and ``target`` (n, C); for labels with values also ``predicted_value`` and ``value`` (n,)
            or (n, 2), ``train_count`` and ``votes`` (n,) and ``rater_scores`` (n, S) if known, and ``weight`` (n,) if
            rows do not count equally.
        labels: The label space.
    """
    metrics = StageMetrics(labels, maps=rows["prediction"].ndim > 2)
    for metric in metrics.modules():
        if isinstance(metric, TorchMetric):
            # The rows are those of all processes, and one process computes the metrics.
            metric.distributed_available_fn = lambda: False
    columns = {name: torch.from_numpy(column) for name, column in rows.items()}
    metrics.update({**columns, "index": torch.arange(len(rows["prediction"]))})
    results = metrics.finish()
    return ordered(
        {name: float(each.compute() if isinstance(each, TorchMetric) else each) for name, each in results.items()}
    )


class WeightedMean(TorchMetric):
    """Weighted mean. torchmetrics' own synchronises with the device at every number, and ignores NaN."""

    full_state_update = False
    mean_value: Tensor
    weight: Tensor

    def __init__(self) -> None:
        super().__init__()
        # The default type is that of the model, which may have 16 bits.
        self.add_state("mean_value", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("weight", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, value: Tensor, weight: float) -> None:
        """Add a number."""
        self.mean_value += value.to(self.mean_value.dtype) * weight
        self.weight += weight

    @override
    def compute(self) -> Tensor:
        return self.mean_value / self.weight


class LossMeans(Sums):
    """Epoch means of every training loss, weighted by rows, exact over processes and after a resume in mid-epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.means = nn.ModuleDict()

    def update(self, losses: dict[str, Tensor], rows: float) -> None:
        """Add the losses of one batch, each a mean over rows of this process with the weight ``rows``."""
        for name, value in losses.items():
            self._mean(name, value.device).update(value.detach(), rows)

    def compute(self) -> dict[str, Tensor]:
        """Return the means by name, over all processes. Every process calls it."""
        return {name: self._mean(name).compute() for name in self.means}

    def reset(self) -> None:
        """Begin a new epoch."""
        for name in self.means:
            self._mean(name).reset()

    def memory_state(self, collective: Collective) -> dict[str, Tensor]:
        """Return the sums of an unfinished epoch: per loss weighted sum and weight, (world size, 2)."""
        sums = {}
        for name in self.means:
            mean = self._mean(name)
            pair = torch.stack([torch.as_tensor(mean.mean_value), torch.as_tensor(mean.weight)])
            sums[name] = torch.cat(collective.gather(pair[None]))
        return sums

    def load_memory_state(self, state: dict[str, Tensor], collective: Collective, device: torch.device) -> None:
        """Load this process's share of :meth:`memory_state`, whatever number of processes saved it."""
        for name, sums in state.items():
            mean = self._mean(name, device)
            mine = sums[collective.rank :: collective.world_size].sum(0)
            if mine[1] > 0:
                mean.update(torch.zeros((), device=device), 0)  # or torchmetrics warns that there was no update
            mean.mean_value, mean.weight = mine.to(device)

    def _mean(self, name: str, device: torch.device | None = None) -> WeightedMean:
        if name not in self.means:
            self.means[name] = WeightedMean().to(device)
        mean = self.means[name]
        assert isinstance(mean, WeightedMean)
        return mean
