"""Charts and tables for the loggers that take them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import Logger, WandbLogger


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
