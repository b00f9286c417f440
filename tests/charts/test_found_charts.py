"""Charts of two labels, of boosting, and of what was found in pictures."""

from __future__ import annotations

from pathlib import Path

import fake_pictures
import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from matplotlib.image import imread

from ldl import charts
from ldl.backbones.haar import Haar
from ldl.data import MixedDigits, ShiftedDigits
from ldl.heads import MILBoost, MPLBoost
from ldl.labels import LabelSpace
from ldl.methods.boosting.places import locate
from ldl.reports.rows import Report
from ldl.task import Task

RNG = np.random.default_rng(0)


def _colors(path: Path) -> np.ndarray:
    image = imread(path)[..., :3]
    assert image.std() > 0.01
    return image


def test_roc_draws_every_curve(tmp_path: Path) -> None:
    positive = np.arange(40) % 2 == 0
    score = positive + RNG.normal(0, 0.5, 40)
    one = _colors(charts.roc(tmp_path / "1.png", {"a": (score, positive)}))
    two = _colors(charts.roc(tmp_path / "2.png", {"a": (score, positive), "b": (-score, positive)}))
    assert one.shape == two.shape == (600, 648, 3)
    assert np.abs(one - two).max() > 0.3


def test_likelihood_leaves_out_what_was_not_held_out(tmp_path: Path) -> None:
    curve = np.stack([np.geomspace(1, 0.01, 9), np.full(9, np.nan)], 1)
    alone = _colors(charts.likelihood(tmp_path / "a.png", curve))
    curve[:6, 1] = 0.5
    both = _colors(charts.likelihood(tmp_path / "b.png", curve))
    assert np.abs(alone - both).max() > 0.3
    curve[-1, 0] = 0  # no logarithm of a likelihood that is perfect
    assert _colors(charts.likelihood(tmp_path / "c.png", curve)).shape == alone.shape


def test_error_curves(tmp_path: Path) -> None:
    assert _colors(charts.error_curves(tmp_path / "e.png", {"a": np.linspace(0.5, 0.1, 64)}, "t")).shape[:2] == (
        480,
        720,
    )


def test_a_sheet_has_one_row_a_group_and_empty_groups_stay_empty(tmp_path: Path) -> None:
    pictures = np.zeros((30, 8, 8, 3), np.uint8)
    pictures[:20, ..., 0] = pictures[20:, ..., 2] = 255
    group = np.repeat([0, 2], [20, 10])
    image = _colors(charts.groups(tmp_path / "g.png", pictures, group))
    red, blue = ((image == color).all(-1) for color in ((1, 0, 0), (0, 0, 1)))
    assert np.flatnonzero(red.any(1)).max() < np.flatnonzero(blue.any(1)).min()
    assert blue.sum() / red.sum() == pytest.approx(10 / 12, abs=0.1)


def test_score_maps_mark_the_found_and_the_true_window(tmp_path: Path) -> None:
    pictures, maps = np.zeros((3, 20, 20), np.uint8), RNG.normal(size=(3, 11, 11))
    found = locate(maps)
    alone = _colors(charts.score_maps(tmp_path / "a.png", pictures, maps, found, 10))
    both = _colors(charts.score_maps(tmp_path / "b.png", pictures, maps, found, 10, 1, found[::-1], ["x", "y", "z"]))
    green = (both[..., 1] > both[..., 0] + 0.3) & (both[..., 1] > both[..., 2] + 0.3)
    assert green.sum() > ((alone[..., 1] > alone[..., 0] + 0.3) & (alone[..., 1] > alone[..., 2] + 0.3)).sum() + 100


def test_locate_is_the_mean_place_under_the_odds() -> None:
    maps = np.full((3, 17, 13), -20.0)
    maps[0, 14, 2] = 3
    maps[1, 3:8, 9:12] = 1
    maps[2, 4, 6], maps[2, 8, 6] = 0.5 * np.log(3), 0  # odds of 3 to 1
    np.testing.assert_allclose(locate(maps), [[14, 2], [5, 10], [5, 6]], atol=1e-6)


def test_overview_draws_roc_of_two_labels_only(tmp_path: Path) -> None:
    rows = {"index": np.arange(40), "prediction": RNG.dirichlet(np.ones(2), 40), "target": np.eye(2)[np.arange(40) % 2]}
    assert "roc" in charts.overview(tmp_path / "a", rows, LabelSpace.nominal(["no", "yes"]))
    one_class = {**rows, "target": np.eye(2)[np.zeros(40, int)]}
    assert "roc" not in charts.overview(tmp_path / "b", one_class, LabelSpace.nominal(["no", "yes"]))


def test_a_run_draws_what_its_head_found(tmp_path: Path) -> None:
    fake_pictures.mnist(tmp_path)
    options = {"root": str(tmp_path), "pictures": 40, "train_fraction": 0.5}
    for data, head, haar, expected in (
        (ShiftedDigits(**options), MILBoost(rounds=4), Haar(20, window=28, stride=4), "score_maps"),
        (MixedDigits(**options), MPLBoost(rounds=4), Haar(20), "groups"),
    ):
        torch.manual_seed(0)
        folder = tmp_path / expected
        trainer = pl.Trainer(
            max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
            use_distributed_sampler=False, callbacks=[Report(folder)],
        )  # fmt: skip
        task = Task(head, haar)
        trainer.fit(task, datamodule=data)
        trainer.test(task, datamodule=data, verbose=False)
        drawn = {path.stem for path in (folder / "charts").glob("*.png")}
        assert drawn == {"distributions", "likelihood", "roc", expected}
