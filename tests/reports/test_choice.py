"""The report of a run: the usual ones, and that of a data module."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytorch_lightning as pl

from ldl.command import main
from ldl.data import RotatedDigits
from ldl.edges import BSDS500
from ldl.edges.report import EdgeReport
from ldl.reports.choice import make_report
from ldl.reports.maps import MapReport
from ldl.reports.rows import Report


class CountReport(Report):
    """A report of a plugin: the number of test rows."""

    def write(self, trainer: pl.Trainer, task: Any) -> None:
        (self.folder / "count.txt").write_text(str(len(self.rows["index"])))

    def on_test_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        pass


class CountedDigits(RotatedDigits):
    """Data of a plugin with a report of their own."""

    def report_class(self, maps: bool) -> type[CountReport]:
        return CountReport


@pytest.mark.parametrize(
    ("data", "maps", "wanted"),
    [
        (RotatedDigits(), False, Report),
        (RotatedDigits(), True, MapReport),
        (BSDS500(), True, EdgeReport),
        (BSDS500(), False, Report),
        (CountedDigits(), False, CountReport),
    ],
)
def test_data_choose_the_report(data: Any, maps: bool, wanted: type, tmp_path: Path) -> None:
    report: Any = make_report(SimpleNamespace(gives_maps=maps), data, tmp_path, False, True)  # type: ignore[arg-type]
    assert type(report) is wanted and (report.folder, report.draw, report.quote) == (tmp_path, False, True)


@pytest.mark.parametrize(("stage", "folders"), [("fit", ["."]), ("crossval", ["fold_0", "fold_1"])])
def test_runs_of_a_plugin_get_its_report(stage: str, folders: list[str], tmp_path: Path) -> None:
    main(
        [
            f"--data={__name__}.CountedDigits", "--data.turns=1", "--data.folds=2", "--data.val_fraction=0",
            "--model.head=MeanPredictor", "--model.backbone=Identity", "--model.backbone.flatten=true",
            "--trainer.enable_progress_bar=false", "--wandb.mode=disabled", f"--stage={stage}",
            f"--run_dir={tmp_path / 'run'}",
        ]
    )  # fmt: skip
    counts = [int((tmp_path / "run" / folder / "count.txt").read_text()) for folder in folders]
    assert min(counts) > 0 and not list((tmp_path / "run").rglob("predictions.csv"))
