"""``model_card.md``: what a trained model is, in words that whoever gets it can read, beside its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldl.checkpoint import replacing
from ldl.data.base import LDLDataModule
from ldl.reports.card.measured import about_data, about_limits, about_protocol, about_results
from ldl.reports.card.model import (
    about_calibration,
    about_licences,
    about_model,
    about_output,
    about_preprocessing,
    about_usage,
)
from ldl.task import Task


def write_card(
    folder: Path, results: dict[str, Any], task: Task, data: LDLDataModule, checkpoint: str | None = None
) -> None:
    """Write ``model_card.md`` beside ``results.json``, whose content is ``results``, all or nothing.

    ``checkpoint`` is that of another folder, where this one has none.
    """
    with replacing(folder / "model_card.md") as file:
        file.write(model_card(results, task, data, find_checkpoint(folder) or checkpoint).encode())


def find_checkpoint(folder: Path) -> str | None:
    """The checkpoint of a run, below its folder: that of its first fold where it has folds; None of none."""
    found = sorted(folder.glob("checkpoints/last.ckpt")) or sorted(folder.glob("fold_*/checkpoints/last.ckpt"))
    return found[0].relative_to(folder).as_posix() if found else None


def model_card(results: dict[str, Any], task: Task, data: LDLDataModule, checkpoint: str | None = None) -> str:
    """The card, in Markdown.

    Args:
        results: What :func:`ldl.running.results.summarize` gives.
        task: The task, trained; of a cross-validation that of the last fold.
        data: Its data module, set up.
        checkpoint: The checkpoint, as a path from the card's folder; None where none was kept.
    """
    parts = {
        "What it predicts": about_output(task),
        "Data": about_data(results, data),
        "Protocol": about_protocol(results, data),
        "Results": about_results(results, task),
        "Model": about_model(task),
        "Preprocessing": about_preprocessing(task),
        "Calibration": about_calibration(task),
        "Licences": about_licences(task, data),
        "How to use it": about_usage(task, checkpoint, len(results["folds"])),
        "Limits": about_limits(results, task, data),
        "Versions": ", ".join(f"{name} {number}" for name, number in results["versions"].items()) + ".",
    }
    sections = "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text)
    return f"# {results['head']} on {data.title}\n\nWritten with `results.json`, from the run itself.\n\n{sections}\n"
