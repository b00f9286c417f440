"""Loggers: a CSV file always, Weights & Biases where it is wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytorch_lightning.loggers import CSVLogger, Logger, WandbLogger
from pytorch_lightning.utilities import rank_zero_info, rank_zero_only


@dataclass
class WandbOptions:
    """Weights & Biases.

    Args:
        mode: ``auto`` is online where you are logged in, else offline; ``disabled`` switches it off.
        project: Project of the run.
        name: Name of the run; None takes the run directory's.
        group: Group of the run; cross-validation makes one of its own.
        tags: Tags of the run.
    """

    mode: Literal["auto", "online", "offline", "disabled"] = "auto"
    project: str = "ldl"
    name: str | None = None
    group: str | None = None
    tags: Sequence[str] = ()


def resolve_mode(mode: str) -> str:
    """What ``auto`` comes to; says so in one line where it falls back to offline."""
    if mode != "auto":
        return mode
    if os.environ.get("WANDB_MODE"):
        return os.environ["WANDB_MODE"]
    if rank_zero_only.rank != 0:
        return "disabled"
    import wandb

    try:
        logged_in = wandb.login(prompt=False, verify=False)
    except Exception as error:
        print(f"wandb login failed: {error}", file=sys.stderr)
        logged_in = False
    if not logged_in:
        rank_zero_info("wandb: not logged in, so the run is kept offline; `wandb login` changes that")
    return "online" if logged_in else "offline"


def make_loggers(run_dir: Path, options: WandbOptions, config: dict[str, Any]) -> list[Logger]:
    """The loggers of one run: ``run_dir/metrics.csv``, and wandb unless disabled. Nothing is written yet."""
    loggers: list[Logger] = [CSVLogger(run_dir, name="", version="")]
    mode = resolve_mode(options.mode)
    if mode != "disabled":
        loggers.append(
            WandbLogger(
                save_dir=run_dir,
                project=options.project,
                name=options.name or run_dir.name,
                group=options.group,
                tags=list(options.tags),
                mode="online" if mode == "online" else "offline",
                config=config,
            )
        )
    return loggers


def log_images(loggers: Sequence[Logger], charts: dict[str, Path]) -> None:
    """Send charts to the loggers that take images."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            for name, path in charts.items():
                logger.log_image(f"charts/{name}", [str(path)])


def log_table(loggers: Sequence[Logger], columns: list[str], rows: list[list[Any]]) -> None:
    """Send a table of predictions to the loggers that take tables."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            logger.log_table("predictions", columns=columns, data=rows)


def finish(loggers: Sequence[Logger]) -> None:
    """Close the runs, so that the next fold gets one of its own."""
    if any(isinstance(logger, WandbLogger) for logger in loggers) and rank_zero_only.rank == 0:
        import wandb

        wandb.finish()
