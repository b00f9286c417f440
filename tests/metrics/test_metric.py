"""A metric of a user: logged, written and printed; a plain trainer evaluates all rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch

from ldl import plugins
from ldl.backbones.base import Identity
from ldl.command import main
from ldl.data.synthetic import RotatedDigits
from ldl.heads import Softmax
from ldl.metrics import metrics_for
from ldl.task import Task

PLUGIN = '''
"""The share of the true distribution that the three likeliest labels hold, and how wide predictions are."""

import numpy as np
from torch import Tensor

from ldl.metrics import Metric, register


def top3(prediction: Tensor, target: Tensor) -> Tensor:
    """Mass of the target on the three likeliest labels; in [0, 1]."""
    return target.gather(-1, prediction.topk(3).indices).sum(-1)


def spread(rows) -> float:
    """Mean standard deviation of the predictions, in the labels' unit."""
    mean = rows.prediction @ rows.axis
    return float(np.sqrt((rows.prediction * (rows.axis - mean[:, None]) ** 2).sum(1)).mean())


register(Metric("top3", top3, higher_is_better=True))
register(Metric("spread", spread, None, unit=True, of="line"))
register(Metric("worst", lambda rows: float(abs(rows.error).max()), unit=True, detail=True, of="line"))
'''


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldl.metrics.registry._registered", {})


@pytest.mark.usefixtures("blank")
def test_a_measure_of_ones_own_is_logged_written_and_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(PLUGIN.strip().splitlines()) <= 40
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "my_measures.py").write_text(PLUGIN)
    monkeypatch.setattr(plugins, "plugin_folders", [])
    assert plugins.discover(folder)[:1] == ["ldl_plugins.my_measures"]
    main(
        [
            "--model.head=Softmax", "--model.backbone=Identity", "--model.backbone.flatten=true",
            "--data=RotatedDigits", "--data.turns=1", "--data.folds=5", "--trainer.max_epochs=1",
            "--trainer.enable_progress_bar=false",
            "--wandb.mode=disabled", f"--run_dir={tmp_path / 'run'}",
        ]
    )  # fmt: skip
    figures = json.loads((tmp_path / "run/results.json").read_text())["mean"]
    assert 0 < figures["top3"] <= 1 and figures["spread"] > 0 and figures["worst"] >= figures["mae"]
    printed = capsys.readouterr().out
    assert "\n top3 " in printed and "\n spread [" in printed and "worst" not in printed
    rows = list(csv.DictReader((tmp_path / "run/metrics.csv").open()))
    assert any(row["val_top3"] for row in rows) and any(row["val_spread"] for row in rows)
    assert "val_worst" not in rows[0] and any(row["test_worst"] for row in rows)


def test_a_plain_trainer_measures_all_rows(tmp_path: Path) -> None:
    torch.manual_seed(0)
    data = RotatedDigits(turns=1, folds=5)
    task = Task(Softmax(), Identity(flatten=True))
    trainer = pl.Trainer(
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        use_distributed_sampler=False, default_root_dir=str(tmp_path),
    )  # fmt: skip
    trainer.fit(task, datamodule=data)
    assert {"val_kl", "val_crps", "val_mae_few"} <= trainer.callback_metrics.keys()
    assert not {"val_cs4", "val_n_few"} & trainer.callback_metrics.keys()
    (first,) = trainer.test(task, datamodule=data, verbose=False)
    assert {
        f"test_{measure.name}" for measure in metrics_for(data.labels) if measure.of not in ("votes", "rater")
    } == first.keys()
    assert sum(first[f"test_n_{shot}"] for shot in ("many", "medium", "few")) == len(data.split.test)
    (again,) = trainer.test(task, datamodule=data, verbose=False)
    assert again == pytest.approx(first, nan_ok=True)
