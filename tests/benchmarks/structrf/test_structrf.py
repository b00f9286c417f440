"""StructRF's tables, figure, settings and times, on small sets."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import fake_pictures
import numpy as np
import pytest

from benchmarks.structrf import adaptive_step, criterion, figure4, speed, tables, tuning


def test_tables(command: Callable[..., str], small_sets: Path, page: Callable[[str], Path]) -> None:
    path = page("structrf_tables")
    text = command(tables, "--sets", "SJAFFE", "Yeast_spoem", "--folds", 2, "--trees", 2, "--page", path)
    assert text.count("chebyshev") == 2 and "Yeast, constant:" in text
    written = path.read_text()
    assert "over 2 folds" in written and written.count("| SJAFFE | ") == 6 and "Yeast: " in written
    assert "| SJAFFE | kl | " in written and "| 0.0544 ± 0.0117 |" in written


@pytest.mark.parametrize(
    ("measure", "mean", "word"),
    [
        ("kl", 0.1, "better"),
        ("kl", 0.12, "within"),
        ("kl", 0.16, "worse"),
        ("cosine", 0.12, "better"),
        ("cosine", 0.04, "worse"),
    ],
)
def test_verdicts(measure: str, mean: float, word: str) -> None:
    assert tables.verdict(measure, mean, 0.1, 0.05) == word


def test_figure4(command: Callable[..., str], small_sets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure4, "DEPTHS", (1, 6))
    monkeypatch.setattr(figure4, "PANELS", (("trees", "trees", (1, 3), {"sampling": 0.8}),) * 2)
    lines = command(figure4, "--set", "SJAFFE", "--folds", 2).splitlines()
    assert lines[0].split() == ["trees", "depth", "1", "depth", "6"]
    shallow, deep = map(float, lines[2].split()[1:])
    assert deep < shallow and Path("figure4.png").stat().st_size > 10_000


def test_tuning(command: Callable[..., str], small_sets: Path) -> None:
    lines = command(tuning, "SJAFFE", "--folds", 1, "--trees", 2).splitlines()
    figures = [float(line.split()[0]) for line in lines]
    assert len(lines) == 36 and figures == sorted(figures, reverse=True)


def test_criterion(command: Callable[..., str], small_sets: Path, page: Callable[[str], Path]) -> None:
    path = page("structrf_criterion")
    command(criterion, "--sets", "SJAFFE", "--search", "random", "--trees", 3, "--inner", 1, "--page", path)
    assert "| SJAFFE | random | 0." in path.read_text() and "3 trees" in path.read_text()


def test_adaptive_step(command: Callable[..., str], small_sets: Path) -> None:
    fake_pictures.mnist(small_sets)
    text = command(
        adaptive_step, "--rows", 200, "--seeds", 1, "--sets", "SJAFFE", "--paired", 2, "--folds", 1
    )  # fmt: skip
    rows = [line.rsplit(None, 5) for line in text.splitlines() if line.startswith(("exact, every", "adaptive  "))]
    assert len(rows) == 4
    for exact, adaptive in (rows[:2], rows[2:]):
        assert float(exact[3]) == 1 and float(adaptive[1]) < float(exact[1]) and float(adaptive[3]) <= 1
    assert text.splitlines()[-1].startswith("SJAFFE")


def test_speed_of_one_model(small_sets: Path) -> None:
    options = Namespace(trees=2, depth=4, threads=1, rows=50, singles=2)
    features, target = speed.load("SJAFFE", 50)
    assert features.shape == (50, 5) and np.allclose(target.sum(1), 1, atol=1e-6)
    for kind in speed.MODELS:
        model = speed.Competitor(kind, options, 1, (5, 4))
        model.fit(features, target)
        assert np.abs(model.predict(features) - target).mean() < np.abs(target.mean(0) - target).mean()
