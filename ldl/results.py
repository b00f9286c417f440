"""``results.json``: what a run measured, under which protocol, with which versions."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from torch import Tensor

from ldl.data.base import LDLDataModule
from ldl.metrics import DISTRIBUTION_METRICS
from ldl.task import Task

_VERSIONED = ("pytorch-lightning", "torch", "timm", "numpy", "scikit-learn")


def fold_result(data: LDLDataModule, logged: dict[str, Tensor]) -> dict[str, Any]:
    """The entry of one fold: its number, the sizes of its parts, the leak audit, the logged ``test_`` metrics."""
    metrics = {name.removeprefix("test_"): float(value) for name, value in logged.items() if name.startswith("test_")}
    order = {name: number for number, name in enumerate(DISTRIBUTION_METRICS)}
    metrics = dict(sorted(metrics.items(), key=lambda item: order.get(item[0], len(order))))
    return {
        "fold": data.fold,
        "n_train": len(data.split.train),
        "n_val": len(data.split.val),
        "n_test": len(data.split.test),
        "leak": data.leak,
        "metrics": metrics,
    }


def summarize(
    task: Task, data: LDLDataModule, folds: list[dict[str, Any]], seed: int | None, fit_seconds: float
) -> dict[str, Any]:
    """The content of ``results.json``: means and standard deviations (n - 1; 0 for one fold) over ``folds``."""
    names = list(folds[0]["metrics"])
    columns = {name: [fold["metrics"][name] for fold in folds] for name in names}
    return {
        "head": type(task.head).__name__,
        "backbone": type(task.backbone).__name__,
        "data": type(data).__name__,
        "protocol": data.protocol,
        "leaky": data.leaky,
        "decoder": task.decoder if task.labels.has_values else None,
        "seed": seed,
        "folds": folds,
        "mean": {name: statistics.fmean(column) for name, column in columns.items()},
        "std": {name: statistics.stdev(column) if len(column) > 1 else 0.0 for name, column in columns.items()},
        "fit_seconds": round(fit_seconds, 3),
        "versions": {"ldl": version("ldl"), "python": platform.python_version()}
        | {name: version(name) for name in _VERSIONED},
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write through a temporary file, so that there is never half a result; NaN and infinities become null."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(_finite(content), indent=2, allow_nan=False) + "\n")
    os.replace(temporary, path)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(results: dict[str, Any], unit: str, console: Console | None = None) -> None:
    """The final table of a run: every metric, its mean and, over several folds, its standard deviation."""
    folds = results["folds"]
    several = len(folds) > 1
    leak = max(fold["leak"] for fold in folds)
    title = f"{results['head']} on {results['data']}, {results['protocol']}, {len(folds)} fold{'s' if several else ''}"
    caption = f"{sum(fold['n_test'] for fold in folds)} test instances; {leak:.1%} of them share a group with training"
    table = Table(title=title, caption=caption)
    table.add_column("metric")
    for column in ("mean", "std") if several else ("test",):
        table.add_column(column, justify="right")
    for name, mean in results["mean"].items():
        label = f"{name} [{unit}]" if unit and name in ("mae", "rmse") else name
        table.add_row(label.replace("[", r"\["), f"{mean:.4f}", *([f"{results['std'][name]:.4f}"] if several else []))
    (console or Console()).print(table)
