"""Charts: every function writes an image, for every kind of labels."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import fake_pictures
import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from matplotlib.image import imread

from ldl import charts
from ldl.backbones.haar import Haar
from ldl.bags import MILBoost, MPLBoost
from ldl.bags.pooling import locate
from ldl.charts.results import intervals, leaf_order
from ldl.data import MixedDigits, ShiftedDigits
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.reports.rows import Report
from ldl.task import Task

SPACES = {
    "nominal": LabelSpace.nominal(["happy", "sad", "angry", "calm"]),
    "many names": LabelSpace.nominal([f"name {k}" for k in range(130)]),
    "ordinal": LabelSpace.ordinal(range(101), "years"),
    "one value": LabelSpace.ordinal([3.0]),
    "grid": LabelSpace.grid([-30, 0, 30], [-20, -10, 0, 10], "degrees"),
    "some of a grid": LabelSpace.grid([0, 1], [0, 1, 2], "", ("up", "across"), [(0, 0), (1, 0), (1, 2)]),
}
RNG = np.random.default_rng(0)


def size(path: Path) -> tuple[int, int]:
    """Height and width of an image that is not of one colour."""
    image = imread(path)
    assert image[..., :3].std() > 0.01
    return image.shape[0], image.shape[1]


@pytest.mark.parametrize(("name", "count"), [*((name, 1) for name in SPACES), ("grid", 5)])
def test_distributions(tmp_path: Path, name: str, count: int) -> None:
    labels = SPACES[name]
    predicted, target = RNG.dirichlet(np.ones(len(labels)), (2, count))
    titles = [f"instance {number}" for number in range(count)]
    path = charts.distributions(tmp_path / "new" / "d.png", predicted, target, labels, titles)
    assert path == tmp_path / "new" / "d.png"
    rows, columns = -(-count // 3), min(count, 3)
    assert size(path) == (pytest.approx(120 * 2.6 * rows, abs=1), pytest.approx(120 * 4.2 * columns, abs=1))


@pytest.mark.parametrize(("name", "count"), [("many names", 2), ("ordinal", 600)])
def test_leaves(tmp_path: Path, name: str, count: int) -> None:
    labels = SPACES[name]
    rows = RNG.dirichlet(np.ones(len(labels)), count)
    path = charts.leaves(tmp_path / "l.png", rows, labels, RNG.dirichlet(np.ones(count)))
    assert size(path) == (pytest.approx(120 * (1.5 + 0.09 * min(count, 512)), abs=1), 960)


@pytest.mark.parametrize("name", ["ordinal", "one value", "grid"])
def test_values(tmp_path: Path, name: str) -> None:
    labels = SPACES[name]
    shape = (40,) if labels.ndim == 1 else (40, 2)
    path = charts.values(tmp_path / "v.png", RNG.uniform(0, 9, shape), RNG.uniform(0, 9, shape), labels)
    assert size(path) == (pytest.approx(552, abs=1), 600 * labels.ndim)


def test_learning_curves(tmp_path: Path) -> None:
    table = tmp_path / "metrics.csv"
    table.write_text("epoch,step,train_loss,val_kl\n0,9,1.5,\n0,9,,1.2\n1,19,0.7,\n1,19,,0.9\n")
    path = charts.learning_curves(tmp_path / "c.png", table)
    assert path is not None
    assert size(path) == (480, 720)


AGES = SPACES["ordinal"]


def ages(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True values, decoded values and distributions."""
    true = RNG.uniform(0, 100, count)
    predicted = np.clip(true + RNG.normal(0, 5, count), 0, 100)
    distribution = np.exp(-((np.arange(101) - predicted[:, None]) ** 2) / 50)
    return true, predicted, distribution / distribution.sum(1, keepdims=True)


def red_and_blue(count: int) -> np.ndarray:
    """Pictures, red and blue by turns."""
    pictures = np.zeros((count, 40, 30, 3), np.uint8)
    pictures[::2, ..., 0] = pictures[1::2, ..., 2] = 255
    return pictures


def share_of(path: Path, colour: tuple[int, int, int]) -> float:
    return float((imread(path)[..., :3] == colour).all(-1).mean())


def test_cumulative_score_and_calibration(tmp_path: Path) -> None:
    true, predicted, distribution = ages(200)
    assert size(charts.cumulative_score(tmp_path / "s.png", predicted, true, AGES)) == (480, 648)
    assert size(charts.calibration(tmp_path / "c.png", distribution, true, AGES)) == (504, 1080)


def test_intervals(tmp_path: Path) -> None:
    true, _, distribution = ages(50)
    conformal = Conformal.fit(AGES, distribution[:20], true[:20])  # too few for 95%
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert size(intervals(tmp_path / "i.png", distribution[20:], true[20:], AGES, conformal)) == (504, 1080)


def test_bands(tmp_path: Path) -> None:
    true, width = np.arange(100) * 0.999, 1.6 + 0.62 * 10
    path = charts.bands(tmp_path / "b.png", true + 1, true, AGES)
    assert path is not None and size(path) == (672, pytest.approx(120 * width, abs=1))


def test_faces(tmp_path: Path) -> None:
    count = 5
    true, predicted, distribution = ages(count)
    titles = [f"face {number}" for number in range(count)]
    path = charts.faces(tmp_path / "f.png", red_and_blue(count), distribution, true, predicted, AGES, titles)
    rows, columns = -(-count // 3), min(count, 3)
    assert size(path) == (pytest.approx(120 * (2.1 * rows + 0.35), abs=1), pytest.approx(552 * columns, abs=1))
    red, blue = share_of(path, (1, 0, 0)), share_of(path, (0, 0, 1))
    assert red > 0.02
    assert blue == pytest.approx(red * 2 / 3, rel=0.1)


@pytest.mark.usefixtures("blank")
def test_overview_draws_what_there_is(tmp_path: Path) -> None:
    true, predicted, distribution = ages(30)
    rows = {"index": np.arange(30), "prediction": distribution}
    assert charts.overview(tmp_path / "none", rows, AGES) == {}
    rows |= {"value": true, "predicted_value": predicted}
    drawn = charts.overview(
        tmp_path / "all", {**rows, "target": distribution}, AGES, lambda index: red_and_blue(30)[index]
    )
    assert list(drawn) == ["distributions", "values", "cumulative_score", "bands", "calibration", "pictures"]
    assert all(path == tmp_path / "all" / f"{name}.png" and path.is_file() for name, path in drawn.items())
    few = {name: column[:29] for name, column in rows.items()}
    assert list(charts.overview(tmp_path / "few", few, AGES, lambda index: None)) == ["values"]


def test_leaves_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinal, nominal = LabelSpace.ordinal([0, 10, 20]), LabelSpace.nominal(["a", "b", "c"])
    rows = np.array([[0.0, 0.2, 0.8], [0.6, 0.0, 0.4], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0], [0.9, 0.1, 0.0]])
    assert leaf_order(rows, ordinal).tolist() == [4, 1, 2, 0, 3]  # means 18, 8, 9, 20, 1
    assert leaf_order(rows, nominal).tolist() == [4, 1, 2, 3, 0]


def test_a_box_of_folds(tmp_path: Path) -> None:
    columns = {f"metric {number}": RNG.normal(size=5).tolist() for number in range(9)}
    columns["metric 0"][2] = np.nan
    path = charts.folds(tmp_path / "f.png", columns)
    assert path is not None and size(path) == (pytest.approx(120 * 5.4, abs=1), pytest.approx(120 * 9.2, abs=1))
    assert charts.folds(tmp_path / "g.png", {"kl": [1.0, 2.0]}) is None and charts.folds(tmp_path / "g.png", {}) is None


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


@pytest.mark.parametrize(
    ("data", "head", "haar", "expected"),
    [
        (ShiftedDigits, MILBoost, {"window": 28, "stride": 4}, "score_maps"),
        (MixedDigits, MPLBoost, {}, "groups"),
    ],
)
@pytest.mark.slow
@pytest.mark.usefixtures("blank")
def test_a_run_draws_what_its_head_found(data: Any, head: Any, haar: Any, expected: str, tmp_path: Path) -> None:
    fake_pictures.mnist(tmp_path)
    torch.manual_seed(0)
    trainer = pl.Trainer(
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        use_distributed_sampler=False, callbacks=[Report(tmp_path)],
    )  # fmt: skip
    task, digits = Task(head(rounds=4), Haar(20, **haar)), data(root=str(tmp_path), pictures=40, train_fraction=0.5)
    trainer.fit(task, datamodule=digits)
    trainer.test(task, datamodule=digits, verbose=False)
    drawn = {path.stem for path in (tmp_path / "charts").glob("*.png")}
    assert drawn == {"distributions", "likelihood", "roc", expected}
