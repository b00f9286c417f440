"""Runs of ``train.py``, from their configurations."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import torch

from ldl.cli import main
from ldl.errors import LDLError
from ldl.running.quiet import silence

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def run_config(data: str, head: str) -> Path:
    """The configuration of a head on a data set."""
    return CONFIGS / "runs" / data / f"{head}.yaml"


def be_quiet(threads: int) -> None:
    """Let this process have so many threads, and say nothing of its runs."""
    torch.set_num_threads(threads)
    silence()
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


def quiet_trainer(epochs: int) -> dict[str, Any]:
    """Arguments of a trainer on the CPU that shows nothing."""
    return {
        "max_epochs": epochs, "accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False,
    }  # fmt: skip


def finished(folder: Path, config: Path, arguments: list[str], jobs: int | None = None) -> dict[str, Any]:
    """Results of a run with the configuration; one that its folder holds already, or that was put there, is read.

    Args:
        folder: Of the run; what was asked of it stands beside it.
        config: The configuration.
        arguments: The rest of the command line.
        jobs: Processes, on which no figure depends.

    Raises:
        LDLError: The folder holds a run of another command line, or of a configuration that was another then.
    """
    results, asked = folder / "results.json", folder.with_name(f"{folder.name}.asked")
    if results.is_file() and not asked.is_file():
        return json.loads(results.read_text(encoding="utf-8"))
    command = "\n".join([*arguments, config.name, config.read_text(encoding="utf-8")])
    if asked.is_file() and asked.read_text(encoding="utf-8") != command:
        raise LDLError(
            f"{folder} holds a run that was asked for otherwise than by {' '.join(arguments)} with {config.name} as it "
            f"is; give another --out, or delete {folder} and {asked.name} beside it"
        )
    if not results.is_file():
        asked.parent.mkdir(parents=True, exist_ok=True)
        asked.write_text(command, encoding="utf-8")
        main(["-c", str(config), *arguments, *([f"--jobs={jobs}"] if jobs else []), "--run_dir", str(folder)])
    return json.loads(results.read_text(encoding="utf-8"))


def tested(folder: Path, config: Path, arguments: list[str]) -> dict[str, float]:
    """Mean test metrics of such a run."""
    return finished(folder, config, arguments)["mean"]


def crossvalidated(folder: Path, config: Path, seed: int, jobs: int, *arguments: str) -> dict[str, Any]:
    """Results of all folds, by so many processes; a run that was stopped goes on."""
    options = ["--stage", "crossval", "--seed_everything", str(seed), "--trainer.enable_checkpointing", "false"]
    return finished(folder, config, [*options, *arguments], jobs)
