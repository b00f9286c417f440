"""``--stage compare``: from a file of candidates to a configuration that trains, and on where it stopped."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from blank import save_blank
from matplotlib.figure import Figure

from ldl import charts
from ldl.cells.store import Store
from ldl.cli import main
from ldl.heads import AAKNN
from ldl.progress import stop
from ldl.running import candidates as made

QUICK = {"inner_folds": 1, "val_fraction": 0.2}
TWO = ["--data.folds=2"]
QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
CANDIDATES = {
    "AA-kNN": {"run": "tabular/aaknn", "grid": {"model.head.neighbours": [3, 10, 500], "data.scaling": ["standard"]}},
    "MaxEnt": {"run": "tabular/maxent", "options": {"model.head.l2": 0.001, "model.head.iterations": 100}},
    "trees": {
        "run": "tabular/structrf",
        "options": {"model.head.trees": 25},
        "grid": {"model.head.min_leaf": [1, 4]},
        "tuning": {"model.head.trees": 3},
    },
}
Compare = Callable[..., dict]


def softmax(scores: np.ndarray) -> np.ndarray:
    grown = np.exp(scores - scores.max(1, keepdims=True))
    return grown / grown.sum(1, keepdims=True)


def targets(kind: str, features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Distributions of three natures: smooth in the features, jumping with two of them, and of nothing."""
    if kind == "smooth":
        return softmax(features @ rng.normal(size=(features.shape[1], 4)))
    if kind == "trees":
        corner = (features[:, 0] > 0).astype(int) + 2 * (features[:, 1] > 0.3)
        return 0.8 * np.eye(4)[(corner * 3) % 4] + 0.05
    return rng.dirichlet(np.ones(4), len(features))


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    def make(kind: str = "smooth", seed: int = 0, size: int = 90) -> Path:
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(size, 4))
        np.savez(tmp_path / "table.npz", features=features, labels=targets(kind, features, rng))
        return tmp_path / "table.npz"

    return make


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Compares candidates on a table; returns comparison.json."""

    def go(path: Path, candidates: dict = CANDIDATES, *more: str, **others: object) -> dict:
        file = tmp_path / "compare.yaml"
        file.write_text(yaml.safe_dump({"candidates": candidates, "choose": QUICK, **others}, sort_keys=False))
        place = ["--data.path", str(path), "--data.folds=3", "--run_dir", str(tmp_path / "run")]
        main(["--stage", "compare", "-c", str(file), *place, *QUIET, *more])
        return json.loads((tmp_path / "run" / "comparison.json").read_text())

    return go


@pytest.fixture(autouse=True)
def draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chart of ranks is drawn in a test of its own."""
    monkeypatch.setattr(Figure, "savefig", save_blank)


def lines(run: Path) -> list[dict]:
    return Store(run / "cells").rows


def refusal(capsys: pytest.CaptureFixture[str], act: Callable[[], object]) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        act()
    said = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 2 and said[-1].startswith("error: ")
    return said[-1]


def test_smooth(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compare(table("smooth"))
    assert found["recommended"] == found["best"] == "MaxEnt"
    by_name = {candidate["name"]: candidate for candidate in found["candidates"]}
    assert list(by_name) == ["MeanPredictor", "AA-kNN", "MaxEnt", "trees"]
    assert by_name["MeanPredictor"]["kl"]["mean"] > 5 * by_name["MaxEnt"]["kl"]["mean"]
    assert by_name["MeanPredictor"]["p"] < 0.05
    said = capsys.readouterr().out
    assert "recommended: MaxEnt" in said and f"-c {tmp_path / 'run' / 'recommended.yaml'}" in said
    text = (tmp_path / "run" / "table.md").read_text()
    assert "| MaxEnt | " in text and "AA-kNN failed with model.head.neighbours 500" not in text
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        *("cells", "comparison.json", "ranks.png", "recommended.yaml", "table.md")
    }


def test_trees_and_the_recommended_run(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compare(table("trees"), {name: CANDIDATES[name] for name in ("MaxEnt", "trees")}, "--jobs=2")
    assert found["recommended"] == "trees" and found["setting"]["model.head.min_leaf"] in (1, 4)
    config = tmp_path / "run" / "recommended.yaml"
    own = [cell for cell in lines(tmp_path / "run") if cell["candidate"] == "trees" and cell["fold"] != "all"]
    cell = next(cell for cell in own if cell["setting"] == found["setting"])
    assert yaml.safe_load(config.read_text())["model"]["head"]["init_args"]["trees"] == 25
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})
    main(["-c", str(config), *QUIET, "--data.fold", str(cell["fold"]), "--run_dir", str(tmp_path / "first")])
    results = json.loads((tmp_path / "first" / "results.json").read_text())
    assert results["mean"] == cell["measures"]


def test_a_gradient_head_is_the_run_it_names(compare: Compare, table: Callable[..., Path], tmp_path: Path) -> None:
    options = {"model.head.hidden": [], "trainer.max_epochs": 9, "model.optimizer.lr": 0.1}
    found = compare(table(), {"Softmax": {"run": "tabular/softmax", "options": options}}, *TWO)
    assert found["recommended"] == "Softmax"
    main(["-c", str(tmp_path / "run" / "recommended.yaml"), *QUIET, "--run_dir", str(tmp_path / "first")])
    results = json.loads((tmp_path / "first" / "results.json").read_text())
    assert results["mean"] == found["candidates"][1]["folds"][0]["measures"]


def test_noise(compare: Compare, table: Callable[..., Path]) -> None:
    found = compare(table("noise"), {"AA-kNN": "tabular/aaknn", "MaxEnt": CANDIDATES["MaxEnt"]})
    assert found["recommended"] == "MeanPredictor"


def test_it_goes_on_where_it_stopped(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path, run, one = table(), tmp_path / "run", grid(neighbours=[3, 10])
    whole = compare(path, one, *TWO)
    shutil.copytree(run, tmp_path / "whole")
    shutil.rmtree(run)
    fits, fit = [], made.fit_and_test

    def told(*arguments: object) -> object:
        fits.append(1)
        if len(fits) == 5:
            stop.signal = 2
        return fit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(made, "fit_and_test", told)
    with pytest.raises(SystemExit) as ended:
        compare(path, one, *TWO)
    assert ended.value.code == 130
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last == f"stopped by SIGINT; the same command with --run_dir {run} goes on"
    before = lines(run)
    assert len(before) == 2 and not (run / "comparison.json").exists()
    fits[:] = [1] * 5
    again = compare(path, one, *TWO)
    after = lines(run)
    assert after[: len(before)] == before
    drop = ("seconds",)
    for mine, its in zip(again["candidates"], whole["candidates"], strict=True):
        assert {k: v for k, v in mine.items() if k not in drop} == {k: v for k, v in its.items() if k not in drop}
    fits.clear()
    compare(path, one, *TWO)
    assert not fits and lines(run) == after


def test_what_changed_is_measured_anew(compare: Compare, table: Callable[..., Path], tmp_path: Path) -> None:
    def measured() -> list[str]:
        return [cell["candidate"] for cell in lines(tmp_path / "run") if cell["fold"] != "all"]

    one, other = ({"MaxEnt": {"run": "tabular/maxent", "options": {"model.head.l2": l2}}} for l2 in (0.001, 0.1))
    compare(table(), one, *TWO)
    compare(table(), other, *TWO)
    assert measured() == ["MeanPredictor", "MaxEnt"] * 2 + ["MaxEnt"] * 2
    compare(table(seed=1), one, *TWO)
    assert len(measured()) == 10
    compare(table(), one, *TWO)  # the first cells are there yet
    assert len(measured()) == 10


def test_a_candidate_that_fails_is_in_the_table(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **more: object) -> None:
        raise ValueError("no\nneighbours")

    monkeypatch.setattr(AAKNN, "fit", fail)
    found = compare(table(), {"AA-kNN": "tabular/aaknn", "MaxEnt": CANDIDATES["MaxEnt"]}, *TWO)
    assert found["recommended"] == "MaxEnt"
    assert found["candidates"][1]["error"] == "fold 0: ValueError: no neighbours"
    assert "| AA-kNN | failed | " in (tmp_path / "run" / "table.md").read_text()


def test_values_and_what_the_command_line_fixes(compare: Compare, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features, group = rng.normal(size=(60, 3)), np.arange(60) // 5
    value = np.clip(np.round(5 + 2 * features[:, 0]), 0, 10)
    np.savez(tmp_path / "values.npz", features=features, value=value, group=group)
    found = compare(tmp_path / "values.npz", {"AA-kNN": CANDIDATES["AA-kNN"]}, "--data", "TabularValues", *TWO)
    assert found["protocol"] == "group_exclusive" and found["leak"] == 0
    cell = found["candidates"][1]["folds"][0]
    assert cell["setting"]["data.scaling"] == "standard" and cell["measures"]["mae"] > 0


def test_options_of_the_command_line_leave_the_grid(compare: Compare, table: Callable[..., Path]) -> None:
    grid = {"data.init_args.scaling": ["none", "standard"], "model.head.neighbours": [5, 10]}
    candidates = {
        "AA-kNN": {"run": "tabular/aaknn", "grid": grid},
        "mean": {"run": "tabular/structrf", "options": {"model.head": "MeanPredictor"}},
    }
    found = compare(table(), candidates, "--data.scaling=none", *TWO, choose={"inner_folds": 2})
    assert [candidate["name"] for candidate in found["candidates"]] == ["mean", "AA-kNN"]
    assert "2 inner folds" in found["choice"]
    assert all(list(fold["setting"]) == ["model.head.neighbours"] for fold in found["candidates"][1]["folds"])


def grid(**values: object) -> dict:
    """A candidate with the head's options to choose from."""
    return {"a": {"run": "tabular/aaknn", "grid": {f"model.head.{name}": value for name, value in values.items()}}}


ONE = {"a": "tabular/aaknn"}
LDFL = {"a": {"run": {"model": {"head": "LDFL"}}}}
OTHER_FOLDS = {"a": {"run": "tabular/aaknn", "options": {"data.fold_seed": 1}}, "b": "tabular/maxent"}
WRONG: dict[str, tuple[dict, list[str], list[str]]] = {
    "unknown head": (LDFL, [], ["candidate a: ", "'LDFL'", "did you mean 'LDLF'"]),
    "a date": (grid(neighbours=[dt.date(2020, 1, 2)]), [], ["2020-01-02"]),
    "unknown option": (grid(trees=[1]), [], ["AAKNN has no option 'trees'"]),
    "unknown key": ({"a": {"run": "tabular/aaknn", "grd": {}}}, [], ["a has no option 'grd'", "did you mean 'grid'"]),
    "no run": ({"a": {"grid": {}}}, [], ["candidate a is {'grid': {}}", "run: tabular/ldlf"]),
    "unknown run": ({"a": "tabular/aakn"}, [], ["configuration tabular/aakn does not exist", "tabular_aaknn"]),
    "no list": (grid(neighbours=3), [], ["grid.model.head.neighbours is 3", "list"]),
    "too many": (grid(neighbours=[*range(1, 50)], x=[*range(50)]), [], ["a grid of 2,450 settings", "1,000"]),
    "bad value": (grid(neighbours=[5, 0]), [], ["candidate a: AAKNN.neighbours 0 must be at least 1"]),
    "no candidates": ({}, [], ["candidates is {}"]),
    "other folds": (OTHER_FOLDS, [], ["other targets or folds"]),
    "a checkpoint": (ONE, ["--ckpt_path", "x.ckpt"], ["leave --ckpt_path out"]),
    "the best": (ONE, ["--select", "best"], ["leave --select best out"]),
    "processes": (ONE, ["--trainer.devices=2"], ["one process", "--trainer.devices 2"]),
    "another stage": (ONE, ["--stage", "crossval"], ["--stage is crossval"]),
    "one fold": (ONE, ["--data.folds=1"], ["candidate a: TabularLDL.folds 1 must be in 2..10000"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals(
    case: str, compare: Compare, table: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    candidates, options, words = WRONG[case]
    path = table()
    said = refusal(capsys, lambda: compare(path, candidates, *options))
    assert all(word in said for word in words), said
    assert not (tmp_path / "run").exists()


def test_refusals_of_files(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, one = table(), {"AA-kNN": "tabular/aaknn"}
    assert "choose has no option 'folds'" in refusal(capsys, lambda: compare(path, one, choose={"folds": 3}))
    assert "choose.inner_folds 0 must be" in refusal(capsys, lambda: compare(path, one, choose={"inner_folds": 0}))
    many = refusal(capsys, lambda: compare(path, CANDIDATES, choose={"inner_folds": 80}))
    assert "choose: folds 80 must be in 2..60" in many
    digits = tmp_path / "digits.yaml"
    digits.write_text("candidates: {a: digits_softmax}")
    said = refusal(capsys, lambda: main(["--stage", "compare", "-c", str(digits), "--data.turns=1"]))
    assert "candidate a: RotatedDigits gives inputs of shape" in said and "takes rows of features" in said
    assert "and here is none" in refusal(capsys, lambda: main(["--stage", "compare", "--data.path", str(path)]))
    compare(path, one, *TWO)
    shutil.copy(path, tmp_path / "other.npz")
    assert "has the comparison of TabularLDL" in refusal(capsys, lambda: compare(tmp_path / "other.npz", one))
    (tmp_path / "run" / "results.json").touch()
    assert "has results.json of a run" in refusal(capsys, lambda: compare(path, one))
