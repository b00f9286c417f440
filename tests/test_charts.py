"""Charts: every function writes an image, for every kind of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from ldl import charts
from ldl.labels import LabelSpace

SPACES = {
    "nominal": LabelSpace.nominal(["happy", "sad", "angry", "calm"]),
    "many names": LabelSpace.nominal([f"name {k}" for k in range(30)]),
    "ordinal": LabelSpace.ordinal(range(101), "years"),
    "one value": LabelSpace.ordinal([3.0]),
    "grid": LabelSpace.grid([-30, 0, 30], [-20, -10, 0, 10], "degrees"),
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
    assert not (tmp_path / "c.png").exists()
