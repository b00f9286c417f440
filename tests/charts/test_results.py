"""Charts of results: every function writes an image, for every kind of labels."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from fakes.charts import AGES, SPACES, ages, colors, red_and_blue, size

from ldl import charts
from ldl.charts.results import intervals, leaf_order
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal

RNG = np.random.default_rng(0)


def test_roc_draws_every_curve(tmp_path: Path) -> None:
    positive = np.arange(40) % 2 == 0
    score = positive + RNG.normal(0, 0.5, 40)
    one = colors(charts.roc(tmp_path / "1.png", {"a": (score, positive)}))
    two = colors(charts.roc(tmp_path / "2.png", {"a": (score, positive), "b": (-score, positive)}))
    assert one.shape == two.shape == (600, 648, 3)
    assert np.abs(one - two).max() > 0.3


@pytest.mark.parametrize(("labels", "inches"), [("nominal", 4.4), ("many names", 15.2)])
def test_confusion(labels: str, inches: float, tmp_path: Path) -> None:
    space = SPACES[labels]
    prediction, target = RNG.dirichlet(np.ones(len(space)), (2, 50))
    one = charts.confusion(tmp_path / "1.png", space, prediction, target)
    assert size(one)[0] == pytest.approx(120 * inches, abs=1)
    other = charts.confusion(tmp_path / "2.png", space, target, target)
    assert np.abs(colors(one) - colors(other)).max() > 0.3


@pytest.mark.usefixtures("pixel_charts")
def test_nominal_labels_have_a_confusion_matrix(tmp_path: Path) -> None:
    space = SPACES["nominal"]
    prediction, target = RNG.dirichlet(np.ones(len(space)), (2, 30))
    rows = {"index": np.arange(30), "prediction": prediction, "target": target}
    assert list(charts.overview(tmp_path, rows, space)) == ["distributions", "confusion"]
    with pytest.warns(UserWarning, match=r"charts/confusion.png is left out: LDLError: a prediction is not finite"):
        assert "confusion" not in charts.overview(tmp_path, {**rows, "prediction": np.full((30, 4), np.nan)}, space)


def test_likelihood_leaves_out_what_was_not_held_out(tmp_path: Path) -> None:
    curve = np.stack([np.geomspace(1, 0.01, 9), np.full(9, np.nan)], 1)
    alone = colors(charts.likelihood(tmp_path / "a.png", curve))
    curve[:6, 1] = 0.5
    both = colors(charts.likelihood(tmp_path / "b.png", curve))
    assert np.abs(alone - both).max() > 0.3
    curve[-1, 0] = 0  # no logarithm of a likelihood that is perfect
    assert colors(charts.likelihood(tmp_path / "c.png", curve)).shape == alone.shape


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


@pytest.mark.usefixtures("pixel_charts")
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
