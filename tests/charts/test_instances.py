"""Charts of single instances: distributions and faces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes.charts import AGES, SPACES, ages, red_and_blue, size
from matplotlib.image import imread

from ldl import charts

RNG = np.random.default_rng(0)


def share_of(path: Path, colour: tuple[int, int, int]) -> float:
    return float((imread(path)[..., :3] == colour).all(-1).mean())


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


@pytest.mark.parametrize(("name", "count"), [*((name, 1) for name in SPACES), ("grid", 5)])
def test_distributions(tmp_path: Path, name: str, count: int) -> None:
    labels = SPACES[name]
    predicted, target = RNG.dirichlet(np.ones(len(labels)), (2, count))
    titles = [f"instance {number}" for number in range(count)]
    path = charts.distributions(tmp_path / "new" / "d.png", predicted, target, labels, titles)
    assert path == tmp_path / "new" / "d.png"
    rows, columns = -(-count // 3), min(count, 3)
    assert size(path) == (pytest.approx(120 * 2.6 * rows, abs=1), pytest.approx(120 * 4.2 * columns, abs=1))
