"""Charts of images: sheets of groups, maps of scores, and those that a run draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from fakes import digit_images
from fakes.charts import colors

from ldl import charts
from ldl.backbones.haar import Haar
from ldl.bags import MILBoost, MPLBoost
from ldl.bags.pooling import locate
from ldl.data import MixedDigits, ShiftedDigits
from ldl.reports.rows import Report
from ldl.task import Task

RNG = np.random.default_rng(0)


def test_a_sheet_has_one_row_a_group_and_empty_groups_stay_empty(tmp_path: Path) -> None:
    pictures = np.zeros((30, 8, 8, 3), np.uint8)
    pictures[:20, ..., 0] = pictures[20:, ..., 2] = 255
    group = np.repeat([0, 2], [20, 10])
    image = colors(charts.groups(tmp_path / "g.png", pictures, group))
    red, blue = ((image == color).all(-1) for color in ((1, 0, 0), (0, 0, 1)))
    assert np.flatnonzero(red.any(1)).max() < np.flatnonzero(blue.any(1)).min()
    assert blue.sum() / red.sum() == pytest.approx(10 / 12, abs=0.1)


def test_score_maps_mark_the_found_and_the_true_window(tmp_path: Path) -> None:
    pictures, maps = np.zeros((3, 20, 20), np.uint8), RNG.normal(size=(3, 11, 11))
    corners = locate(maps)
    alone = colors(charts.score_maps(tmp_path / "a.png", pictures, maps, corners, 10))
    both = colors(charts.score_maps(tmp_path / "b.png", pictures, maps, corners, 10, 1, corners[::-1], ["x", "y", "z"]))
    green = (both[..., 1] > both[..., 0] + 0.3) & (both[..., 1] > both[..., 2] + 0.3)
    assert green.sum() > ((alone[..., 1] > alone[..., 0] + 0.3) & (alone[..., 1] > alone[..., 2] + 0.3)).sum() + 100


@pytest.mark.parametrize(
    ("data", "head", "haar", "expected"),
    [
        (ShiftedDigits, MILBoost, {"window": 28, "stride": 4}, "score_maps"),
        (MixedDigits, MPLBoost, {}, "groups"),
    ],
)
@pytest.mark.slow
@pytest.mark.usefixtures("pixel_charts")
def test_a_run_draws_what_its_head_found(data: Any, head: Any, haar: Any, expected: str, tmp_path: Path) -> None:
    digit_images.mnist(tmp_path)
    torch.manual_seed(0)
    trainer = pl.Trainer(
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        use_distributed_sampler=False, callbacks=[Report(tmp_path)],
    )  # fmt: skip
    task, digits = Task(head(rounds=4), Haar(20, **haar)), data(root=str(tmp_path), pictures=40, train_fraction=0.5)
    trainer.fit(task, datamodule=digits)
    trainer.test(task, datamodule=digits, verbose=False)
    drawn = {path.stem for path in (tmp_path / "charts").glob("*.png")}
    assert drawn == {"confusion", "distributions", "likelihood", "roc", expected}
