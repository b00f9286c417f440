"""Bags, found places and groups: the commands on small data, and the measures."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import fake_pictures
import numpy as np
import pytest

from benchmarks.boosting import alignment, grouping, groups, musk, places, soft_maxima, speed, trials
from benchmarks.boosting.published import GROUPING
from benchmarks.common.claims import Statement
from benchmarks.common.items import Work


@pytest.fixture
def digits(small_sets: Path) -> Path:
    return fake_pictures.mnist(small_sets, 45)


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


@pytest.fixture
def work(digits: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    monkeypatch.setenv("LDL_DATA", str(digits))
    trials.opened.cache_clear()
    trials.features.cache_clear()
    return Work(digits / "out" / "item", quick=True)


def test_groups_are_measured_once(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = list(grouping.accuracies(work, "digits"))
    judged = [claim.name for claim in claims if claim.verdict]
    assert judged == [*GROUPING["digits"], *(f"as printed: {name}" for name in GROUPING["digits"])]
    assert sum(claim.attempt for claim in claims) == len(grouping.WAYS)
    monkeypatch.setattr(groups, "fit_rows", None)
    assert list(grouping.accuracies(work, "digits")) == claims
    curves = list(grouping.curves(work, "digits"))
    assert sum(isinstance(claim, Statement) for claim in curves) == 4
    assert (work.folder / "roc.png").stat().st_size > 1000
    assert len(list((work.folder.parent / "groups_digits").glob("*.png"))) == 8 + len(grouping.WAYS)


def test_of_each_way_the_best_elsewhere_is_taken(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def found(work, kind, methods, draws=(0,)):  # type: ignore[no-untyped-def]
        asked.append((kind, draws))
        return {name: [{"grouping": float("0.03" in name or "bound" in name)}] for name in methods}

    monkeypatch.setattr(grouping, "found_groups", found)
    names = " ".join(grouping.tried(work))
    assert "0.03" in names and "0.1" not in names and "discrete" not in names and "Eq. 22" in names
    assert asked == [("digits", trials.DRAWS)] and 0 not in trials.DRAWS


def test_places(work: Work) -> None:
    claims = list(alignment.alignment(work, "digits"))
    judged = [claim.name for claim in claims if claim.verdict]
    assert judged[:2] == ["MIL-Boost", "MIL-Boost aligns better than AdaBoost"] and len(judged) == 4
    rates = list(alignment.errors(work, "digits"))
    assert isinstance(rates[1], Statement) and "after 4" in rates[1].measured
    assert len(list((work.folder.parent / "places_digits").glob("*.png"))) == 8


def test_peaks_are_those_of_the_smoothed_map() -> None:
    maps = np.full((1, 24, 24), -5.0)
    maps[0, 3, 4] = 2.0
    maps[0, 10:15, 11:16] = 1.0
    assert places.peaks(maps).tolist() == [[12, 13]]


def test_grouping_is_under_the_best_matching() -> None:
    table = groups.kinds_of_groups(np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 0, 0, 1, 0]))
    assert groups.grouping(table) == pytest.approx(5 / 6)


def test_printed_formulae_are_the_code_and_a_wrong_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(tmp_path, quick=True)
    items = soft_maxima.table_1, soft_maxima.table_2, soft_maxima.figure_4
    claims = [claim for item in items for claim in item(work)]
    assert len(claims) == 12 + 8 + 4 and all(claim.verdict == "repeated" for claim in claims)
    monkeypatch.setitem(soft_maxima.SOFT_MAXIMA, "LSE", lambda v: soft_maxima.lse(v, soft_maxima.R + 1))
    wrong = [claim.name for claim in soft_maxima.table_1(work) if claim.verdict != "repeated"]
    assert wrong == ["LSE, g: code and print agree", "LSE, its derivative: code and print agree"]


def test_equal_error_rate() -> None:
    positive = np.array([1, 1, 1, 1, 0, 0, 0, 0], bool)
    assert places.equal_error_rate(np.arange(8)[::-1], positive) == 0
    rng = np.random.default_rng(0)
    positive = np.repeat([True, False], 2000)
    score = rng.normal(size=4000) + 2 * positive
    # Two normal distributions that are two deviations apart cross at one: 15.9% lie beyond.
    assert places.equal_error_rate(score, positive) == pytest.approx(0.159, abs=0.015)


def test_speed(capsys: pytest.CaptureFixture[str]) -> None:
    speed.compare(Namespace(rows=40, features=5, stumps=2, rounds=2))
    assert capsys.readouterr().out.count("times as fast as scikit-learn") == 3
