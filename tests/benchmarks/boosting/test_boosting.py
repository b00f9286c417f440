"""Bags, found places and groups: the commands on small data, and the measures."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import fake_pictures
import numpy as np
import pytest

from benchmarks.boosting import mixed_digits, musk, shifted_digits, speed
from ldl.data import MixedDigits


@pytest.fixture
def digits(small_sets: Path) -> Path:
    return fake_pictures.mnist(small_sets)


def test_musk(command: Callable[..., str], small_sets: Path, page: Callable[[str], Path]) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(24, 3, 4))
    label = (features[..., 0].max(1) > 0.9).astype(int)
    rows = [[label[bag], bag, *row] for bag in range(24) for row in features[bag]]
    lines = ["label,bag,a,b,c,d", *(",".join(map(str, row)) for row in rows)]
    (small_sets / "bags.csv").write_text("\n".join(lines) + "\n")
    options = ("--path", "bags.csv", "--seeds", 2, "--folds", 2, "--inner", 2, "--methods", "AdaBoost")
    text = command(musk, *options, "--page", page("musk"))
    assert "24 bags, 2 folds by bag, 2 seeds" in text and "4 of 4 folds chose" in text
    written = (small_sets / "page.md").read_text()
    assert "over 2 seeds" in written and "| AdaBoost | 0." in written and written.count("±") == 3
    text = command(musk, *options[:2], "--seeds", 1, *options[4:], "--page", page("musk"))
    assert "nan" not in text + (small_sets / "page.md").read_text() and "AdaBoost   accuracy 0." in text


def test_groups_are_measured_once(command: Callable[..., str], digits: Path, page: Callable[[str], Path]) -> None:
    options = ("--trials", 2, "--methods", "isr", "AdaBoost", "--out", digits / "out")
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setitem(mixed_digits.DATA, "digits", lambda **more: MixedDigits(pictures=80, **more))
        patched.setitem(mixed_digits.HEAD, "rounds", 4)
        first = command(mixed_digits, *options)
        again = command(mixed_digits, *options, "--page", page("mixed_digits"))
        other = command(mixed_digits, *options, "--draw_seed", 1)
    assert first.count("trial ") == 4 and first.endswith(again) and other.count("trial ") == 4
    assert again.startswith("| method | grouping accuracy | AUC |\n|---|---|---|\n| isr | ") and "± " in again
    assert "| AdaBoost |  | " in again and again.strip() in (digits / "page.md").read_text()
    assert (digits / "out" / "roc.png").stat().st_size > 1000


def test_grouping_is_under_the_best_matching() -> None:
    assert mixed_digits.grouping(np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 0, 0, 1, 0])) == pytest.approx(5 / 6)


def test_equal_error_rate() -> None:
    positive = np.array([1, 1, 1, 1, 0, 0, 0, 0], bool)
    assert shifted_digits.equal_error_rate(np.arange(8)[::-1], positive) == 0
    rng = np.random.default_rng(0)
    positive = np.repeat([True, False], 2000)
    score = rng.normal(size=4000) + 2 * positive
    # Two normal distributions that are two deviations apart cross at one: 15.9% lie beyond.
    assert shifted_digits.equal_error_rate(score, positive) == pytest.approx(0.159, abs=0.015)


def test_speed(capsys: pytest.CaptureFixture[str]) -> None:
    speed.compare(Namespace(rows=40, features=5, stumps=2, rounds=2))
    assert capsys.readouterr().out.count("times as fast as scikit-learn") == 3
