"""Runs of ``train.py``, from their configurations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ldl.cli import main

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def run_config(data: str, head: str) -> Path:
    """The configuration of a head on a data set."""
    return CONFIGS / "runs" / data / f"{head}.yaml"


def quiet_trainer(epochs: int) -> dict[str, Any]:
    """Arguments of a trainer on the CPU that shows nothing."""
    return {
        "max_epochs": epochs, "accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False,
    }  # fmt: skip


def tested(folder: Path, config: Path, arguments: list[str]) -> dict[str, float]:
    """Mean test metrics of a run with the configuration; one that its folder holds already is read."""
    results = folder / "results.json"
    if not results.is_file():
        main(["-c", str(config), *arguments, "--run_dir", str(folder)])
    return json.loads(results.read_text(encoding="utf-8"))["mean"]
