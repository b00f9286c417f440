"""``metrics.csv``, which kills do not damage."""

from __future__ import annotations

import codecs
import csv
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.loggers.csv_logs import ExperimentWriter
from pytorch_lightning.loggers.logger import rank_zero_experiment

from ldl.checkpoint import replacing


class _Writer(ExperimentWriter):
    """Appends to ``metrics.csv``; Lightning's deletes it first, and writes it anew in place for new columns."""

    def __init__(self, log_dir: str, first_step: int) -> None:
        super().__init__(log_dir)
        path = Path(self.metrics_file_path)
        if path.is_file():
            # A row that a kill or a full disk cut off has no end.
            whole = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
            rows = [row for row in csv.DictReader(whole) if row.get("step") and int(row["step"]) < first_step]
            self.metrics_keys = [name for name in (whole and next(csv.reader(whole))) if any(row[name] for row in rows)]
            self._write(rows)

    def _check_log_dir_exists(self) -> None:
        pass

    def _rewrite_with_new_header(self, fieldnames: list[str]) -> None:
        with open(self.metrics_file_path, newline="", encoding="utf-8") as file:
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
