"""Figures, tables, blocks of pages, turns, folds and the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from places import BENCHMARKS
from sklearn.model_selection import KFold

from benchmarks.common.command import launch
from benchmarks.common.folds import data_file, fit_rows, inputs_of, read_set, score_folds
from benchmarks.common.tables import show, write_block
from benchmarks.common.timing import seconds, take_turns
from ldl.collective import Collective
from ldl.comparison.figures import mean_and_deviation, spread
from ldl.data import TabularLDL, TabularValues
from ldl.errors import LDLError
from ldl.heads import AAKNN, CostSensitiveForest, MeanPredictor
from ldl.metrics.functional import kl
from ldl.reports.files import markdown

SCRIPTS = sorted(path for path in BENCHMARKS.rglob("*.py") if "    launch(main)\n" in path.read_text())


def test_deviation_is_that_of_a_sample() -> None:
    values = [1.0, 2.0, 4.0]
    mean, deviation = mean_and_deviation(np.array(values, np.float32))
    assert mean == pytest.approx(7 / 3) and deviation == pytest.approx(np.std(values, ddof=1))
    assert spread(values) == "2.333 ± 1.528" and spread(values, 1) == "2.3 ± 1.5"
    assert spread([0.5]) == "0.500" and spread(iter([])) == ""


def test_tables() -> None:
    assert markdown(["a", "b"], [["1", ""], ["2", "x"]]) == "| a | b |\n|---|---|\n| 1 |  |\n| 2 | x |"


def test_console(capsys: pytest.CaptureFixture[str]) -> None:
    show("title", ["name", "figure"], [["ridge", "0.5"]])
    text = capsys.readouterr().out
    assert all(word in text for word in ("title", "name", "figure", "ridge", "0.5"))


def test_a_block_is_replaced(page: Callable[[str], Path]) -> None:
    path = page("musk")
    for text in ("| ± |\n", "second \\1"):
        write_block(path, "musk", text)
        written = path.read_text(encoding="utf-8")
        assert written == f"before\n<!-- begin musk -->\n{text.strip()}\n<!-- end musk -->\nafter\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- end musk -->\n<!-- begin musk -->\n",
        "<!-- begin musk -->\n<!-- end musk -->\n" * 2,
        "<!-- begin musk -->\n",
    ],
)
def test_a_page_without_the_block(text: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    with pytest.raises(LDLError, match="no page .*page.md: give a Markdown file"):
        write_block(path, "musk", "table")
    path.write_text(text)
    with pytest.raises(LDLError, match="needs one line <!-- begin musk -->"):
        write_block(path, "musk", "table")
    assert path.read_text() == text


def test_turns_go_back_and_forth() -> None:
    order = []
    measured = take_turns("abc", 3, lambda name, turn: order.append(name) or (name, turn))
    assert "".join(order) == "abccbaabc"
    assert measured == {name: [(name, turn) for turn in range(3)] for name in "abc"}


def test_seconds() -> None:
    done = []
    took = seconds(lambda: done.append(sum(range(200_000))), per=2)
    assert len(done) == 1 and took.processor > 0 and 0 < took.clock < 5


def test_folds_are_those_of_the_protocol(small_sets: Path) -> None:
    features, target = read_set("SJAFFE")
    measured = score_folds(AAKNN(neighbours=3), features, target, ("kl", "chebyshev"), 3)
    assert measured.shape == (3, 2)
    splits = list(KFold(10, shuffle=True, random_state=0).split(np.arange(60)))
    for (train, test), row in zip(splits, measured):
        near = torch.cdist(features[test], features[train]).argsort(1)[:, :3]
        expected = kl(target[train][near].mean(1).double(), target[test].double()).mean()
        assert row[0] == pytest.approx(float(expected), rel=1e-5)


def test_validation_parts_are_tested_instead(small_sets: Path) -> None:
    made = []
    features, target = read_set("SJAFFE")
    whole = score_folds(MeanPredictor(), features, target, ("kl",), 2)
    part = score_folds(lambda fold: made.append(fold) or MeanPredictor(), features, target, ("kl",), 2, 0.2)
    assert made == [0, 1] and not np.allclose(whole, part)


def test_missing_data_are_named(small_sets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LDLError, match=r"no data file .*ldl/Nowhere.mat: let LDL_DATA name the folder"):
        read_set("Nowhere")
    monkeypatch.delenv("LDL_DATA")
    with pytest.raises(
        LDLError,
        match=r"no MNIST at /.*data/mnist.npz: .* \(LDL_DATA is not set\); get it",
    ):
        data_file("mnist.npz")


def test_heads_are_fitted_on_rows_of_a_module(small_sets: Path) -> None:
    data = TabularLDL(path="ldl/SJAFFE.mat", fold=2, scaling="standard")
    data.setup()
    features, train = inputs_of(data), data.split.train
    assert features.shape == (60, 5)
    torch.manual_seed(0)
    drawn = torch.rand(1)
    torch.manual_seed(0)
    inputs_of(data)
    assert torch.rand(1) == drawn, "reading moves the seed of a run"
    torch.testing.assert_close(features[train].mean(0), torch.zeros(5), atol=1e-5, rtol=0)
    head = fit_rows(MeanPredictor(), data, features, train)
    torch.testing.assert_close(head(features[:1])[0], data.columns["target"][train].mean(0))


def test_heads_that_want_values_get_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 4))
    np.savez(tmp_path / "people.npz", features=features, value=np.round(30 + 8 * features[:, 0]))
    data = TabularValues(path=str(tmp_path / "people.npz"), folds=3, val_fraction=0, scaling="none")
    data.setup()
    settings = {"trees": 2, "depth": 3, "features": 1.0}
    head = fit_rows(CostSensitiveForest(**settings, seed=0), data, inputs_of(data), data.split.train)
    own = CostSensitiveForest(**settings, seed=0)
    own.build(4, data.labels)
    columns, train = data.columns, torch.from_numpy(data.split.train)
    own.fit(inputs_of(data)[train], columns["target"][train], Collective(), value=columns["value"][train])
    torch.testing.assert_close(head.point_estimate(inputs_of(data)), own.point_estimate(inputs_of(data)))


def test_errors_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        raise LDLError("no data file")

    with pytest.raises(SystemExit) as stopped:
        launch(main)
    assert stopped.value.code == 2 and capsys.readouterr().err == "error: no data file\n"


def test_scripts_run_from_anywhere(tmp_path: Path) -> None:
    path = BENCHMARKS / "structrf" / "speed.py"
    done = subprocess.run(
        [sys.executable, str(path), "--help"], cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "python benchmarks/structrf/speed.py" in done.stdout and "--trees" in done.stdout


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_are_found(path: Path) -> None:
    """Each begins with the line that finds the others, names its own command, and is in the table."""
    text, place = path.read_text(), path.relative_to(BENCHMARKS)
    assert f"\nsys.path.insert(0, str(Path(__file__).parents[{len(place.parts)}]))\n" in text
    assert f"    python benchmarks/{place}" in text
    assert f"| `{place}` |" in (BENCHMARKS / "README.md").read_text()
