"""Loggers: a CSV file always, Weights & Biases where it is wanted."""

from __future__ import annotations

import codecs
import csv
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytorch_lightning.loggers import CSVLogger, Logger, WandbLogger
from pytorch_lightning.loggers.csv_logs import ExperimentWriter
from pytorch_lightning.loggers.logger import rank_zero_experiment
from pytorch_lightning.utilities import rank_zero_info

from ldl.checkpoint import replacing
from ldl.collective import process_rank


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
    if process_rank() != 0:
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


class _Writer(ExperimentWriter):
    """Appends to ``metrics.csv``; Lightning's deletes it first, and writes it anew in place for new columns."""

    def __init__(self, log_dir: str, first_step: int) -> None:
        super().__init__(log_dir)
        path = Path(self.metrics_file_path)
        if path.is_file():
            # A row that a kill or a full disk cut off has no end.
            whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
            rows = [row for row in csv.DictReader(whole) if row.get("step") and int(row["step"]) < first_step]
            self.metrics_keys = [name for name in (whole and next(csv.reader(whole))) if any(row[name] for row in rows)]
            self._write(rows)

    def _check_log_dir_exists(self) -> None:
        pass

    def _rewrite_with_new_header(self, fieldnames: list[str]) -> None:
        with open(self.metrics_file_path, newline="") as file:
            self._write(list(csv.DictReader(file)))

    def _write(self, rows: list[dict[str, Any]]) -> None:
        if not rows:
            Path(self.metrics_file_path).unlink()
            return
        with replacing(Path(self.metrics_file_path)) as file:
            writer = csv.DictWriter(codecs.getwriter("utf-8")(file), self.metrics_keys, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)


class MetricsFile(CSVLogger):
    """``metrics.csv``, which a resumed run continues: rows of steps that are trained again give way.

    Lightning's logger keeps up to 100 rows in memory, where a kill loses them.

    Args:
        run_dir: The run directory.
        first_step: Earlier rows of an existing file stay.
    """

    def __init__(self, run_dir: Path, first_step: int = 0) -> None:
        super().__init__(run_dir, name="", version="", flush_logs_every_n_steps=1)
        self.first_step = first_step

    @property
    @rank_zero_experiment
    def experiment(self) -> ExperimentWriter:
        if self._experiment is None:
            self._experiment = _Writer(self.log_dir, self.first_step)
        return self._experiment  # type: ignore[return-value]


def make_loggers(run_dir: Path, options: WandbOptions, config: dict[str, Any], first_step: int = 0) -> list[Logger]:
    """The loggers of one run: ``run_dir/metrics.csv``, and wandb unless disabled. Nothing is written yet.

    Args:
        run_dir: The run directory.
        options: What is said about wandb.
        config: The whole configuration, for wandb.
        first_step: Step of the checkpoint that is resumed.
    """
    loggers: list[Logger] = [MetricsFile(run_dir, first_step)]
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


def finish(loggers: Sequence[Logger]) -> None:
    """Close the runs, so that the next fold gets one of its own."""
    if any(isinstance(logger, WandbLogger) for logger in loggers) and process_rank() == 0:
        import wandb

        wandb.finish()
