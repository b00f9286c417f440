"""``--stage tune``: from a search space to a tested setting, and on where it stopped."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fakes.blank_charts import save_blank
from fakes.inline_executor import run_inline
from matplotlib.backends.backend_agg import FigureCanvasAgg
from optuna.trial import Trial

from ldl import charts
from ldl.command import main
from ldl.data.tables.tabular import TabularLDL
from ldl.options import option, options, role_of
from ldl.progress import stop
from ldl.protocols import kfold
from ldl.search import tune as tuning
from ldl.search.tune import ALL, validation_splits

QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
KNN = {"model.head.neighbours": {"min": 2, "max": 15}}
Tune = Callable[..., dict]


@options
class Reversing(TabularLDL):
    """A plugin.

    Args:
        reverse: Whether labels are in reverse order.
    """

    reverse: bool = False
    fold_seed: int = option(default=0, least=0)

    def load(self) -> Any:
        loaded = super().load()
        target = loaded.columns["target"]
        return replace(loaded, columns=loaded.columns | {"target": target.flip(-1) if self.reverse else target})


@pytest.fixture(autouse=True)
def draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FigureCanvasAgg, "print_png", save_blank)
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 4))
    scores = np.exp(features @ rng.normal(size=(4, 3)))
    path = tmp_path / "table.npz"
    np.savez(path, features=features, labels=scores / scores.sum(1, keepdims=True))
    return path


@pytest.fixture
def tune(tmp_path: Path, table: Path) -> Tune:
    """Searches; returns results.json."""

    def go(space: dict = KNN, *more: str, run: str = "tabular/aaknn", folder: str = "run", **plan: object) -> dict:
        file = tmp_path / "tune.yaml"
        file.write_text(yaml.safe_dump({"tune": {"space": space, **plan}}, sort_keys=False))
        place = [
            "--data.path",
            str(table),
            "--data.folds=2",
            "--data.val_fraction=0.2",
            "--run_dir",
            str(tmp_path / folder),
        ]
        main(["--stage", "tune", "-c", run, "-c", str(file), *place, *QUIET, *more])
        return json.loads((tmp_path / folder / "results.json").read_text())

    return go


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "trials.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def refusal(capsys: pytest.CaptureFixture[str], act: Callable[[], object]) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        act()
    said = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 2 and said[-1].startswith("error: "), said
    return said[-1]


@pytest.mark.slow
def test_nested_and_blind_to_the_test_rows(tune: Tune, table: Path, tmp_path: Path) -> None:
    """Other labels in the test rows of fold 0 change its test, and nothing else of it."""
    plan = {"trials": 2, "nested": True}
    found = tune(**plan)
    assert [fold["fold"] for fold in found["folds"]] == [0, 1] and "pooled" in found
    assert found["tuning"]["trials"] == {key: {**_none(), "complete": 2} for key in ("0", "1", ALL)}
    arrays = dict(np.load(table))
    tested = kfold(60, 2, 0).test
    arrays["labels"][tested] = arrays["labels"][tested][::-1]
    np.savez(table, **arrays)
    other = tune(folder="other", trials=2)
    mine, its = ([_timeless(row) for row in rows(tmp_path / name) if row["fold"] == "0"] for name in ("run", "other"))
    assert mine == its and len(mine) == 2
    first, second = found["folds"][0], other["folds"][0]
    assert first["setting"] == second["setting"] and first["val_kl"] == second["val_kl"]
    assert first["metrics"]["kl"] != second["metrics"]["kl"]
    best = min(mine, key=lambda row: float(row["val_kl"]))
    assert {name: str(value) for name, value in first["setting"].items()} == {name: best[name] for name in KNN}


def test_the_best_is_the_run_that_it_names(tune: Tune, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = tune(KNN, "--tune.trials", "2", metric="val_cosine")
    said = capsys.readouterr().out
    config = tmp_path / "run" / "best.yaml"
    assert f"-c {config}" in said and "val_cosine" in said
    assert found["folds"][0]["val_cosine"] == max(float(row["val_cosine"]) for row in rows(tmp_path / "run"))
    main(["-c", str(config), *QUIET, "--run_dir", str(tmp_path / "again")])
    again = json.loads((tmp_path / "again" / "results.json").read_text())
    assert again["mean"] == found["mean"]
    names = {path.name for path in (tmp_path / "run").iterdir() if not path.name.startswith(".")}
    tables = {"classes.csv", "confusion.csv", "trials.csv"}
    assert names == tables | {"best.yaml", "results.json", "history.png", "journals", "fold_0", "model_card.md"}


def test_it_goes_on_where_it_stopped(
    tune: Tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = {"trials": 2, "sampler": "random"}
    evaluate, calls = tuning.evaluate, []

    def stopped(*arguments: object) -> float:
        calls.append(1)
        if len(calls) == 2:
            stop.signal = 2
            stop.leave()
        return evaluate(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(tuning, "evaluate", stopped)
    with pytest.raises(SystemExit) as ended:
        tune(**plan)
    assert ended.value.code == 130 and not (tmp_path / "run" / "results.json").exists()
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.endswith(f"the same command with --run_dir {tmp_path / 'run'} resumes it")
    again = tune(**plan)
    assert len(calls) == 3 and again["tuning"]["trials"]["0"] == {**_none(), "complete": 2, "lost": 1}
    first, lost, second = rows(tmp_path / "run")
    assert [first["state"], lost["state"], second["state"]] == ["complete", "lost", "complete"]
    assert [second[name] for name in KNN] == [lost[name] for name in KNN]


SOFTMAX = ["--model.head.hidden=[]", "--data.scaling=standard"]


def watch(monkeypatch: pytest.MonkeyPatch, prune: Callable[[Trial], bool]) -> list[tuple[float, int]]:
    """Record what trials report, and decide which are pruned."""
    reported: list[tuple[float, int]] = []
    monkeypatch.setattr(Trial, "report", lambda trial, value, step: reported.append((value, step)))
    monkeypatch.setattr(Trial, "should_prune", prune)
    return reported


@pytest.mark.slow
def test_failed_and_pruned_trials(tune: Tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = watch(monkeypatch, lambda trial: trial.params["model.optimizer.lr"] == 0.01)
    space = {"model.optimizer.lr": {"values": [0.1, 0.01, 1e30]}}
    options = ["--trainer.max_epochs=2", *SOFTMAX]
    found = tune(space, *options, run="tabular/softmax", trials=3, sampler="grid")
    by_rate = {float(row["model.optimizer.lr"]): row for row in rows(tmp_path / "run")}
    assert [by_rate[rate]["state"] for rate in (0.1, 0.01, 1e30)] == ["complete", "pruned", "failed"]
    assert by_rate[0.1]["error"] == "" != by_rate[1e30]["error"]
    assert (pytest.approx(found["folds"][0]["val_kl"]), 1) in reported


@pytest.mark.slow
def test_the_last_step_is_not_pruned(tune: Tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twice 15 training rows in batches of 8, six steps are three epochs."""
    reported = watch(monkeypatch, lambda trial: len(reported) >= 6)
    options = ["--trainer.max_epochs=-1", "--trainer.max_steps=6", "--data.batch_size=8", *SOFTMAX]
    space = {"model.optimizer.lr": {"values": [0.1, 0.2]}}
    tune(space, *options, run="tabular/softmax", trials=1, inner_folds=2, sampler="grid")
    assert [row["state"] for row in rows(tmp_path / "run")][:1] == ["complete"]
    assert [step for _, step in reported[:6]] == list(range(6))


def test_groups_that_folds_keep_apart_are_kept_apart_inside(tune: Tune, table: Path, tmp_path: Path) -> None:
    from ldl.data import TabularLDL

    arrays = dict(np.load(table))
    np.savez(table, **arrays, group=np.arange(60) // 5)
    data = TabularLDL(path=str(table), folds=3, val_fraction=0.2)
    data.setup()
    assert data.groups is not None and data.leak == 0
    for part, inner in ((0, 1), (0, 3), (ALL, 3)):
        for cut in validation_splits(data, inner, part):
            assert not set(data.groups[cut.train]) & set(data.groups[cut.val])
            assert (len(cut.test) == 0) == (part == ALL)
            assert not set(data.split.test) & {*cut.train, *cut.val} or part == ALL


FAST = {"trials": 1}
WRONG: dict[str, tuple[dict, list[str], dict, list[str]]] = {
    "a bad end": (
        {"model.head.neighbours": {"min": 0, "max": 3}}, [], FAST,
        ["tune.space.model.head.neighbours: ", "AAKNN.neighbours 0 must be at least 1"],
    ),
    "metric": (KNN, [], {**FAST, "metric": "kll"}, ["tune.metric 'kll' must be one of", "did you mean 'kl'"]),
    "no grid": ({"model.optimizer.lr": {"min": 0.1, "max": 1.0}}, [], {**FAST, "sampler": "grid"}, ["give a step"]),
    "no validation": (KNN, ["--data.val_fraction=0"], FAST, ["tune.inner_folds 1", "data.val_fraction above 0"]),
    "the best": (KNN, ["--select", "best"], FAST, ["leave --select best out"]),
    "another stage": (KNN, ["--stage", "crossval"], FAST, ["--stage is crossval"]),
    "ours": (KNN, ["--tune.trails=3"], FAST, ["tune has no option 'trails'"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str, tune: Tune, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space, options, plan, words = WRONG[case]
    said = refusal(capsys, lambda: tune(space, *options, **plan))
    assert all(word in said for word in words), said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("inline", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_jobs_share_the_trials(tune: Tune, tmp_path: Path, inline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow case has real processes."""
    if inline:
        run_inline(monkeypatch)
    found = tune(KNN, "--jobs=2", trials=3, sampler="grid")
    assert found["tuning"]["trials"]["0"] == {**_none(), "complete": 3}
    assert len({row["model.head.neighbours"] for row in rows(tmp_path / "run")}) == 3


def test_another_folder_and_two_files(tune: Tune, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.json").touch()
    assert "has results.json of a run" in refusal(capsys, lambda: tune(**FAST))
    assert "and here is none" in refusal(capsys, lambda: main(["--stage", "tune", "-c", "tabular/aaknn"]))


def _none() -> dict[str, int]:
    return {"complete": 0, "pruned": 0, "failed": 0, "lost": 0}


def _timeless(row: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in row.items() if name != "seconds"}


@pytest.mark.parametrize(
    ("option", "values", "words"),
    [
        ("data.fold", [0, 1], "which instances there are, and which of them are tested"),
        ("data.init_args.fold_seed", [2, 3], "which of them are tested"),
        ("data.fold_seed", [0, 1], "which of them are tested"),
        ("data.protocol", ["random_kfold", "group_exclusive"], "which of them are tested"),
        ("data.group_key", ["a", "b"], "which of them are tested"),
        ("data.root", ["a", "b"], "the file or folder of the instances"),
        ("data.target_key", ["labels", "other"], "the labels and targets of the instances"),
        ("data.label_values", [[1, 2, 3], [1, 2, 4]], "the labels and targets of the instances"),
        ("trainer.limit_test_batches", [1, 2], "how many instances are measured"),
        ("select", ["last", "best"], "it is no option of a model"),
        ("jobs", [1, 2], "it is no option of a model"),
    ],
)
def test_options_that_decide_what_is_measured_are_refused(
    option: str, values: list, words: str, tune: Tune, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, lambda: tune({option: {"values": values}}))
    assert f"tune.space.{option}: it " in line and words in line
    assert not (tmp_path / "run").exists()


def test_an_option_of_a_plugin_that_changes_tests_is_refused(tune: Tune, capsys: pytest.CaptureFixture[str]) -> None:
    """It declares no role, so what its values test is compared."""

    assert role_of(Reversing, "val_fraction") == "validation"
    assert role_of(Reversing, "fold_seed") == "fold" and role_of(Reversing, "reverse") == ""
    space = {"data.reverse": {"values": [False, True]}}
    line = refusal(capsys, lambda: tune(space, "--data", "Reversing"))
    assert "tune.space.data.reverse: True tests other rows, or has other labels, than the run" in line


def test_options_of_the_inputs_are_searched(tune: Tune) -> None:
    found = tune({"data.scaling": {"values": ["none", "standard"]}}, sampler="grid", pruner="none")
    assert found["tuning"]["setting"]["data.scaling"] in ("none", "standard")
