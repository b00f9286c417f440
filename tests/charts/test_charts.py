"""Charts: every function writes an image, for every kind of labels."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from ldl import charts
from ldl.charts.drawing import captioned, draw_distribution, new_figure
from ldl.charts.reliability import intervals
from ldl.charts.training import _order
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal

SPACES = {
    "nominal": LabelSpace.nominal(["happy", "sad", "angry", "calm"]),
    "many names": LabelSpace.nominal([f"name {k}" for k in range(30)]),
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


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("count", [1, 3, 5])
def test_distributions(tmp_path: Path, name: str, count: int) -> None:
    labels = SPACES[name]
    predicted, target = RNG.dirichlet(np.ones(len(labels)), (2, count))
    titles = [f"instance {number}" for number in range(count)]
    path = charts.distributions(tmp_path / "new" / "d.png", predicted, target, labels, titles)
    assert path == tmp_path / "new" / "d.png"
    rows, columns = -(-count // 3), min(count, 3)
    assert size(path) == (pytest.approx(120 * 2.6 * rows, abs=1), pytest.approx(120 * 4.2 * columns, abs=1))


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("count", [2, 64])
def test_leaves(tmp_path: Path, name: str, count: int) -> None:
    labels = SPACES[name]
    rows = RNG.dirichlet(np.ones(len(labels)), count)
    path = charts.leaves(tmp_path / "l.png", rows, labels, RNG.dirichlet(np.ones(count)))
    assert size(path) == (pytest.approx(120 * (1.5 + 0.09 * count), abs=1), 960)


@pytest.mark.parametrize("name", ["ordinal", "one value", "grid"])
def test_values(tmp_path: Path, name: str) -> None:
    labels = SPACES[name]
    shape = (40,) if labels.ndim == 1 else (40, 2)
    path = charts.values(tmp_path / "v.png", RNG.uniform(0, 9, shape), RNG.uniform(0, 9, shape), labels)
    assert size(path) == (pytest.approx(552, abs=1), 600 * labels.ndim)


def test_the_chart_shows_what_it_is_given(tmp_path: Path) -> None:
    labels = SPACES["ordinal"]
    true = np.eye(101)[[20]]
    images = [
        imread(charts.distributions(tmp_path / f"{k}.png", np.eye(101)[[k]], true, labels, ["same"])) for k in (20, 80)
    ]
    assert images[0].shape == images[1].shape
    assert np.abs(images[0] - images[1]).max() > 0.3


def test_learning_curves(tmp_path: Path) -> None:
    table = tmp_path / "metrics.csv"
    table.write_text("epoch,step,train_loss,val_kl\n0,9,1.5,\n0,9,,1.2\n1,19,0.7,\n1,19,,0.9\n")
    path = charts.learning_curves(tmp_path / "c.png", table)
    assert path is not None
    assert size(path) == (480, 720)


def test_no_learning_curves_without_losses(tmp_path: Path) -> None:
    table = tmp_path / "metrics.csv"
    table.write_text("epoch,step,test_kl\n0,9,1.5\n")
    assert charts.learning_curves(tmp_path / "c.png", table) is None
    table.write_text("epoch,step,val_kl\n0,9,1.5\n")  # a head that was fitted at once
    assert charts.learning_curves(tmp_path / "c.png", table) is None
    assert not (tmp_path / "c.png").exists()


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


def test_calibration_of_masses_at_a_point(tmp_path: Path) -> None:
    true = np.array([0.0, 100.0, 7.0])
    assert size(charts.calibration(tmp_path / "c.png", np.eye(101)[[0, 100, 50]], true, AGES)) == (504, 1080)


@pytest.mark.parametrize(("top", "width"), [(100, 1.6 + 0.62 * 10), (25, 5.0)])
def test_bands(tmp_path: Path, top: int, width: float) -> None:
    true = np.arange(top) * 0.999
    path = charts.bands(tmp_path / "b.png", true + 1, true, AGES)
    assert path is not None and size(path) == (672, pytest.approx(120 * width, abs=1))


def test_no_bands_of_a_narrow_scale(tmp_path: Path) -> None:
    assert charts.bands(tmp_path / "b.png", np.zeros(3), np.ones(3), LabelSpace.ordinal([0, 1])) is None
    assert not (tmp_path / "b.png").exists()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_faces(tmp_path: Path, count: int) -> None:
    true, predicted, distribution = ages(count)
    titles = [f"face {number}" for number in range(count)]
    path = charts.faces(tmp_path / "f.png", red_and_blue(count), distribution, true, predicted, AGES, titles)
    rows, columns = -(-count // 3), min(count, 3)
    assert size(path) == (pytest.approx(120 * (2.1 * rows + 0.35), abs=1), pytest.approx(552 * columns, abs=1))
    red, blue = share_of(path, (1, 0, 0)), share_of(path, (0, 0, 1))
    assert red > 0.02
    if count > 1:
        assert blue == pytest.approx(red * (count // 2) / (count - count // 2), rel=0.1)


@pytest.mark.parametrize("name", SPACES)
def test_one_prediction(tmp_path: Path, name: str) -> None:
    labels = SPACES[name]
    distribution = RNG.dirichlet(np.ones(len(labels)))
    value = float(labels.axes[0][0]) if labels.kind == "ordinal" else None
    path = charts.prediction(tmp_path / "p.png", red_and_blue(1)[0], distribution, value, labels)
    assert size(path) == (384, 900)
    assert share_of(path, (1, 0, 0)) > 0.1


def test_overview_draws_what_there_is(tmp_path: Path) -> None:
    true, predicted, distribution = ages(30)
    rows = {"index": np.arange(30), "prediction": distribution}
    assert charts.overview(tmp_path / "none", rows, AGES) == {}
    rows |= {"value": true, "predicted_value": predicted}
    drawn = charts.overview(
        tmp_path / "all", {**rows, "target": distribution}, AGES, lambda index: red_and_blue(30)[index]
    )
    assert list(drawn) == ["distributions", "values", "cumulative_score", "bands", "calibration", "pictures"]
    assert all(path == tmp_path / "all" / f"{name}.png" and size(path) for name, path in drawn.items())
    few = {name: column[:29] for name, column in rows.items()}
    assert list(charts.overview(tmp_path / "few", few, AGES, lambda index: None)) == ["values"]


def test_overview_shows_the_pictures_of_its_rows_from_young_to_old(tmp_path: Path) -> None:
    true, predicted, distribution = ages(30)
    rows = {"index": np.arange(100, 130), "prediction": distribution, "value": true, "predicted_value": predicted}
    asked: list[np.ndarray] = []
    charts.overview(tmp_path, rows, AGES, asked.append)  # type: ignore[arg-type]
    shown = true[asked[0] - 100]
    assert len(shown) == 9 and (np.diff(shown) > 0).all()
    assert (shown[0], shown[-1]) == (true.min(), true.max())


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (LabelSpace.nominal([str(number) for number in range(3000)]), "3,000 labels, 30 a bar"),
        (LabelSpace.ordinal(range(90_000), "years"), "years (highest of 45)"),
        (LabelSpace.grid(range(200), range(200), "degrees"), "second axis degrees"),
    ],
    ids=["nominal", "ordinal", "grid"],
)
def test_what_is_drawn_of_thousands_of_labels_is_bounded(labels: LabelSpace, said: str) -> None:
    # A mark for each took longer than anybody waits.
    figure, axis = new_figure(4, 3)
    rows = RNG.dirichlet(np.ones(len(labels)), 2)
    for filled, row in zip((True, False), rows):
        draw_distribution(axis, row, labels, "tab:blue", "true", filled)
    drawn = [len(shape.get_offsets()) for shape in axis.collections if labels.kind == "grid"]
    drawn += [len(line.get_xdata()) for line in axis.lines] + [len(axis.patches) // 2]
    assert max(drawn) in (100, 2000) and axis.get_xlabel() == said
    if labels.kind == "nominal":
        assert sum(bar.get_height() for bar in axis.patches) == pytest.approx(2)
    if labels.kind == "ordinal":
        assert axis.lines[0].get_ydata().max() == rows[1].max()  # no peak falls between two points
    if labels.kind == "grid":
        np.testing.assert_allclose(axis.collections[0].get_sizes().max(), 700 * rows[0].max())


def test_of_many_leaves_those_that_hold_most_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldl.charts.training.MOST_LEAVES", 4)
    labels, of_a_leaf = SPACES["nominal"], np.eye(4)[[0, 1, 3, 2]]

    def drawn(places: list[int], used: np.ndarray) -> np.ndarray:
        rows, usage = np.zeros((2**10, 4)), np.zeros(2**10)
        rows[places], usage[places] = used, 0.25
        return imread(charts.leaves(tmp_path / "l.png", rows, labels, usage))

    first = drawn([3, 5, 77, 900], of_a_leaf)
    assert first.shape[0] == pytest.approx(120 * (1.5 + 0.09 * 4), abs=1)
    np.testing.assert_array_equal(drawn([0, 500, 501, 1023], of_a_leaf[::-1]), first)  # sorted, wherever they are
    assert (drawn([3, 5, 77, 900], np.eye(4)[[0, 1, 3, 3]]) != first).any()


def test_leaves_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinal, nominal = LabelSpace.ordinal([0, 10, 20]), LabelSpace.nominal(["a", "b", "c"])
    rows = np.array([[0.0, 0.2, 0.8], [0.6, 0.0, 0.4], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0], [0.9, 0.1, 0.0]])
    assert _order(rows, ordinal).tolist() == [4, 1, 2, 0, 3]  # means 18, 8, 9, 20, 1
    assert _order(rows, nominal).tolist() == [4, 1, 2, 3, 0]


def test_captions_stand_above_every_chart_that_is_saved_inside(tmp_path: Path) -> None:
    rows = np.full((2, 4), 0.25)
    plain = imread(charts.leaves(tmp_path / "a.png", rows, SPACES["nominal"], np.ones(2)))
    with captioned("LDLF on digits, fold 3"):
        said = imread(charts.leaves(tmp_path / "b.png", rows, SPACES["nominal"], np.ones(2)))
    again = imread(charts.leaves(tmp_path / "c.png", rows, SPACES["nominal"], np.ones(2)))
    assert said.shape == plain.shape and (said != plain).any()
    np.testing.assert_array_equal(plain, again)


def test_a_box_of_folds(tmp_path: Path) -> None:
    columns = {f"metric {number}": RNG.normal(size=5).tolist() for number in range(9)}
    columns["metric 0"][2] = np.nan
    path = charts.folds(tmp_path / "f.png", columns)
    assert path is not None and size(path) == (pytest.approx(120 * 5.4, abs=1), pytest.approx(120 * 9.2, abs=1))
    assert charts.folds(tmp_path / "g.png", {"kl": [1.0, 2.0]}) is None and charts.folds(tmp_path / "g.png", {}) is None


@pytest.mark.parametrize(("span", "reach"), [(0.7, 0.035), (69, 10.0), (100000, 5000.0)])
def test_tolerances_reach_as_far_as_the_scale_asks(span: float, reach: float, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("ldl.charts.errors.save", lambda figure, path: seen.append(figure.axes[0]) or path)
    charts.cumulative_score(Path("s.png"), np.zeros(40), np.linspace(0, span, 40), LabelSpace.ordinal([0, span], "m"))
    assert seen[0].get_xlim() == pytest.approx((-0.02 * reach, 1.02 * reach))
    assert seen[0].get_xlabel() == "tolerance (m)" and seen[0].texts[0].get_text().startswith(f"CS({reach / 2:.3g})")
