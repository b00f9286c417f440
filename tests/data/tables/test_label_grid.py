"""Labels for values of any size: the step, the deviation, their bounds, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.data import TabularValues
from ldl.data.tables.tabular_values import MOST_CHOSEN, choose_grid
from ldl.errors import LDLError
from ldl.metrics.functional import kl

RNG = np.random.default_rng(0)


def made(folder: Path, values: np.ndarray, **options: object) -> TabularValues:
    np.savez(folder / "values.npz", features=RNG.normal(size=(len(values), 2)), value=values)
    data = TabularValues(path=str(folder / "values.npz"), folds=3, **options)  # type: ignore[arg-type]
    data.setup()
    return data


@pytest.mark.parametrize(
    ("values", "step", "low", "high", "count"),
    [
        (RNG.integers(0, 70, 300), 1, 0, 69, 70),  # ages
        (RNG.integers(1, 6, 99), 1, 1, 5, 5),  # stars
        (RNG.integers(2, 10, 99) / 10, 0.1, 0.2, 0.9, 8),
        (np.float32(RNG.integers(2, 10, 99) / 10), 0.1, 0.2, 0.9, 8),  # not quite the numbers that were typed
        (np.linspace(0, 1e5, 778), 1000, 0, 1e5, 101),
        (np.linspace(0, 1e-7, 60), 1e-9, 0, 1e-7, 101),
        (np.full(9, 3), 1, 3, 3, 1),
    ],
)
def test_grid_follows_the_values(values: np.ndarray, step: float, low: float, high: float, count: int) -> None:
    grid = choose_grid(np.asarray(values, float))
    assert (grid.step, grid.low, grid.high) == pytest.approx((step, low, high)) and grid.count == count
    assert grid.sigma == pytest.approx(step if count < 20 else 2 * step)
    assert len(grid.labels()) == count and grid.labels().axes[0][-1] == pytest.approx(high)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 0.7, 3.0, 1e4, 1e9])
@pytest.mark.parametrize("draw", ["normal", "uniform", "lognormal"])
def test_rows_differ_whatever_the_unit(draw: str, scale: float) -> None:
    values = scale * getattr(np.random.default_rng(1), draw)(size=400)
    grid = choose_grid(values)
    assert 40 <= grid.count <= MOST_CHOSEN
    # 1, 2 or 5 times a power of ten.
    assert f"{grid.step:.6e}"[0] in "125" and set(f"{grid.step:.6e}"[2:8]) == {"0"}
    target = grid.labels().encode(torch.tensor(values / 1.0, dtype=torch.float32), grid.sigma)
    assert float(kl(target.mean(0).expand_as(target), target).mean()) > 0.3
    decoded = grid.labels().decode(target.double())
    np.testing.assert_allclose(decoded, values, rtol=2e-6, atol=2e-4 * grid.step)


def test_what_is_given_is_kept() -> None:
    grid = choose_grid(RNG.uniform(0.2, 0.9, 50), low=0.0, high=1.0, step=0.25, sigma=0.3)
    assert (grid.low, grid.high, grid.step, grid.sigma, grid.count) == (0.0, 1.0, 0.25, 0.3, 5)
    assert choose_grid(RNG.uniform(0, 1e5, 50), sigma=7.0).sigma == 7.0
    # To the last bit what such a step gave before steps were chosen: checkpoints name their labels.
    old = choose_grid(np.array([0.31, 0.9]), step=0.1, sigma=0.1).labels().axes[0]
    assert old == tuple(np.floor(0.31 / 0.1) * 0.1 + number * 0.1 for number in range(7))
    with pytest.raises(LDLError, match=r"there would be 99,999 labels, more than 10,000; widen data.step \(null"):
        choose_grid(np.array([1.0, 100000.0]), step=1.0)


def test_one_line_says_what_was_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = made(tmp_path, np.linspace(0.2, 0.9, 60))
    taken, line = capsys.readouterr().out.splitlines()
    assert "value 'value'" in taken
    assert line.endswith(
        "values.npz: 0.2 to 0.9 in steps of 0.01 (71), sigma 0.02; data.step and data.sigma chosen from the file's "
        "values"
    )
    first = data.columns["target"].clone()
    data.select_fold(2)
    assert torch.equal(first, data.columns["target"]) and not capsys.readouterr().out
    made(tmp_path, np.linspace(0.2, 0.9, 60), step=0.1, sigma=0.1)
    assert "chosen" not in capsys.readouterr().out


def test_a_checkpoint_is_tested_with_its_own_labels(tmp_path: Path) -> None:
    labels = made(tmp_path, np.linspace(0.2, 0.9, 60)).labels
    np.savez(tmp_path / "new.npz", features=np.ones((4, 2)), value=[0.3, 0.5, 0.6, 0.71])
    data = TabularValues(path=str(tmp_path / "new.npz"), folds=2, val_fraction=0)
    data.follow(labels, (2,), None)
    data.setup()
    assert data.labels == labels and data.grid.sigma == pytest.approx(0.02)
    np.savez(tmp_path / "new.npz", features=np.ones((4, 2)), value=[0.3, 0.5, 0.6, 0.91])
    data = TabularValues(path=str(tmp_path / "new.npz"), folds=2, val_fraction=0)
    data.follow(labels, (2,), None)
    with pytest.raises(LDLError, match="row 3 has value 0.91, outside the labels 0.2..0.9"):
        data.setup()
