"""The callbacks that write checkpoints and reports, and the choice of the best weights."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

from ldl.command import main
from ldl.data.synthetic import RotatedDigits
from ldl.edges import BSDS500
from ldl.edges.report import EdgeReport
from ldl.errors import LDLError
from ldl.reports.maps import MapReport
from ldl.reports.rows import Report
from ldl.run.signals import StopCheckpoint
from ldl.run.training import best_weights, make_checkpoints, make_report


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_best_weights_are_kept_with_a_validation_set(share: float, tmp_path: Path) -> None:
    data = RotatedDigits(val_fraction=share)
    data.setup()
    callbacks = make_checkpoints(tmp_path, data)
    names = [each.filename for each in callbacks if isinstance(each, ModelCheckpoint)]
    assert names == (["best", "last"] if share else ["last"])
    stop = next(each for each in callbacks if isinstance(each, StopCheckpoint))
    assert callbacks.index(stop) > len(names) - 1
    if not share:
        with pytest.raises(LDLError, match="--select best needs a validation set"):
            make_checkpoints(tmp_path, data, "best")


def test_nothing_is_best_before_a_validation(tmp_path: Path) -> None:
    checkpoint = ModelCheckpoint(tmp_path, monitor="val_kl", mode="min")
    trainer = pl.Trainer(logger=False, callbacks=[checkpoint], accelerator="cpu", enable_progress_bar=False)
    with pytest.raises(LDLError, match="nothing is validated, so no weights are best"):
        best_weights(trainer)
    checkpoint.best_model_path = "best.ckpt"
    assert best_weights(trainer) == "best.ckpt"


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
