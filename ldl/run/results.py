"""``results.json`` and the final table: metrics, protocol, leakage audit and versions of a run."""

from __future__ import annotations

import math
import platform
import statistics
from importlib.metadata import version
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.labels import LabelSpace
from ldl.metrics import Metric, metrics_for
from ldl.metrics.registry import ordered
from ldl.reports.card import FinishedRun, write_card
from ldl.reports.files import write_json
from ldl.reports.votes import raters_in_words
from ldl.task import Task

FEW_FOLDS = 10
"""With more folds than this, or folds of unequal size, the table shows pooled metrics too."""

_VERSIONED = ("pytorch-lightning", "torch", "timm", "numpy", "scikit-learn")


def served(data: LDLDataModule, limit: int | float, batches: int | float) -> int:
    """Return the number of tested or predicted instances, which Lightning's ``limit`` of batches may reduce."""
    # A data module may have loaders of its own with batches of any size.
    is_whole = isinstance(limit, float) and limit == 1
    return len(data.split.test) if is_whole else min(len(data.split.test), int(batches) * data.eval_batch_size)


def fold_result(data: LDLDataModule, logged: dict[str, Tensor], tested: int | None = None) -> dict[str, Any]:
    """Return the entry of one fold: number, sizes of the sets, leakage audits and metrics.

    Args:
        data: The data module, set up.
        logged: Logged metrics; metrics that begin with ``test_`` are used.
        tested: Number of tested instances; None for the whole test set.
    """
    metrics = {name.removeprefix("test_"): float(value) for name, value in logged.items() if name.startswith("test_")}
    return {
        "fold": data.fold,
        "n_train": len(data.split.train),
        "n_val": len(data.split.val),
        "n_test": len(data.split.test) if tested is None else tested,
        "leak": data.leak,
        **({} if data.copied is None else {"copied": data.copied}),
        "metrics": ordered(metrics),
    }


def summarize(
    task: Task,
    data: LDLDataModule,
    folds: list[dict[str, Any]],
    seed: int | None,
    fit_seconds: float,
    pooled: dict[str, float] | None = None,
    raters: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the content of ``results.json``, with means and standard deviations (n - 1; 0 for one fold) over folds.

    Metrics of a group, such as ``mae_20_29``, are averaged over the folds that tested instances of the group.

    Args:
        task: The task, built.
        data: Its data module, set up.
        folds: Result of :func:`fold_result` for every fold.
        seed: Seed of the run; None for none.
        fit_seconds: Seconds of fitting, over all folds.
        pooled: The metrics over the test instances of all folds together.
        raters: The comparison with annotators over the same instances; None takes that of a single fold.
    """
    audit = data.order_audit
    raters = folds[0].get("raters") if raters is None and len(folds) == 1 else raters
    sizes = {measure.name: measure.size for measure in metrics_for(task.labels, task.gives_maps)}
    # A metric that only some folds have, such as of calibrated intervals, has no mean.
    shared = [name for name in folds[0]["metrics"] if all(name in fold["metrics"] for fold in folds)]
    columns = {name: _filled(name, sizes.get(name), folds) for name in shared}
    return {
        "head": type(task.head).__name__,
        "backbone": type(task.backbone).__name__,
        "data": type(data).__name__,
        "title": data.title,
        "protocol": data.protocol,
        "leaky": data.leaky,
        **({} if audit is None else {"order_audit": audit.as_dict()}),
        "decoder": task.decoder if task.labels.has_values else None,
        "seed": seed,
        "folds": folds,
        "mean": {name: statistics.fmean(column) if column else math.nan for name, column in columns.items()},
        "std": {name: _deviation(column) for name, column in columns.items()},
        **({"pooled": pooled} if pooled is not None else {}),
        **({"raters": raters} if raters is not None else {}),
        "fit_seconds": round(fit_seconds, 3),
        "versions": {"ldl": version("ldl"), "python": platform.python_version()}
        | {name: version(name) for name in _VERSIONED},
    }


def write_results(run: FinishedRun) -> None:
    """Write ``results.json`` and ``model_card.md`` in the first process."""
    if process_rank() == 0:
        # results.json comes last, since it marks the run as complete.
        write_card(run)
        write_json(run.folder / "results.json", run.results)


def _filled(name: str, size: str | None, folds: list[dict[str, Any]]) -> list[float]:
    # Only an empty group is left out. Any other NaN, as of a diverged fold, must show in the mean.
    return [fold["metrics"][name] for fold in folds if size is None or fold["metrics"].get(size) != 0]


def _deviation(column: list[float]) -> float:
    if not column or not all(map(math.isfinite, column)):
        return math.nan
    return statistics.stdev(column) if len(column) > 1 else 0.0


def columns(results: dict[str, Any], labels: LabelSpace) -> dict[str, list[float]]:
    """Return the metric of every fold by its name with unit: KL, metrics of point predictions, then the others."""
    known = [metric for metric in metrics_for(labels) if not metric.detail]
    known.sort(key=lambda metric: (metric.name != "kl", metric.of == "distribution"))
    folds, found = results["folds"], {}
    for metric in known:
        if metric.size is None and metric.name in folds[0]["metrics"]:
            unit = f" ({labels.unit})" if metric.unit and labels.unit else ""
            found[f"{metric.name}{unit}"] = [fold["metrics"][metric.name] for fold in folds]
    return found


def print_table(results: dict[str, Any], labels: LabelSpace, console: Console | None = None) -> None:
    """Print the final table of a run: main metrics with their mean and, over several folds, standard deviation.

    If there are many folds or folds of unequal size, another column has the metrics over all test instances. Metrics
    of groups and other details are in ``results.json`` only.
    """
    known = {metric.name: metric for metric in metrics_for(labels)}
    folds = results["folds"]
    several = len(folds) > 1
    title = f"{results['head']} on {results['title']}, {results['protocol']}, {len(folds)} fold{'s' if several else ''}"
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    columns = {"mean": results["mean"], "std": results["std"]} if several else {"test": results["mean"]}
    if "pooled" in results and (len(folds) > FEW_FOLDS or len({fold["n_test"] for fold in folds}) > 1):
        columns["pooled"] = results["pooled"]
    table.add_column("metric")
    for column in columns:
        table.add_column(column, justify="right")
    for name in results["mean"]:
        metric = known.get(name)  # None if a callback has logged it
        if metric is None or not metric.detail:
            label = name if metric is None else _label(metric, folds, labels.unit)
            cells = (_number(column.get(name, math.nan)) for column in columns.values())
            table.add_row(Text(label), *cells)
    console = console or Console()
    console.print(Text(title), soft_wrap=True)
    console.print(table)
    if "raters" in results:
        console.print(Text(raters_in_words(results["raters"])), soft_wrap=True)
    tested = sum(fold["n_test"] for fold in folds)
    console.print(Text(f"{tested} test instances; {_audit(results)}{_copied(results)}"), soft_wrap=True)


def _audit(results: dict[str, Any]) -> str:
    leaks = [fold["leak"] for fold in results["folds"]]
    if None in leaks and results["leaky"] is False:
        return f"the parts of {results['protocol']} have nothing in common, as published"
    if None in leaks:
        return "groups unknown, so group leakage cannot be audited"
    return f"{max(leaks):.1%} of them share a group with training"


def _copied(results: dict[str, Any]) -> str:
    copied = [fold["copied"] for fold in results["folds"] if "copied" in fold]
    return f"; {max(copied):.1%} of them are in training too, byte for byte" if copied else ""


def _label(metric: Metric, folds: list[dict[str, Any]], unit: str) -> str:
    label = f"{metric.name} [{unit}]" if unit and metric.unit else metric.name
    if metric.size:
        label += f", n = {sum(fold['metrics'][metric.size] for fold in folds):.0f}"
    return label


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
