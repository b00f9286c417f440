"""``--stage tune``: from a search space to a tested setting, and on where it stopped."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from blank import save_blank
from matplotlib.figure import Figure
from places import CONFIGS

from ldl import charts
from ldl.cli import main
from ldl.cli.training import parse_anew
from ldl.progress import stop
from ldl.protocols import kfold
from ldl.running import trial as trials_module
from ldl.running.trial import ALL, held_out
from ldl.running.tune import _spec
from ldl.running.tune_file import TuneFile
from ldl.tuning.claims import Claim
from ldl.tuning.plan import Plan
from ldl.tuning.space import Dimension

QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
KNN = {"model.head.neighbours": {"min": 2, "max": 15}}
Tune = Callable[..., dict]


@pytest.fixture(autouse=True)
def draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Figure, "savefig", save_blank)
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
    other = tune(folder="other", **plan)
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
    assert names == {*("best.yaml", "results.json", "trials.csv", "history.png", "journals", "fold_0", "model_card.md")}


def test_it_goes_on_where_it_stopped(
    tune: Tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = {"trials": 2, "sampler": "random"}
    measure, calls = trials_module._measure, []

    def told(*arguments: object) -> float:
        calls.append(1)
        if len(calls) == 2:
            stop.signal = 2
            stop.leave()
        return measure(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(trials_module, "_measure", told)
    with pytest.raises(SystemExit) as ended:
        tune(**plan)
    assert ended.value.code == 130 and not (tmp_path / "run" / "results.json").exists()
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.endswith(f"the same command with --run_dir {tmp_path / 'run'} goes on")
    again = tune(**plan)
    assert len(calls) == 3 and again["tuning"]["trials"]["0"] == {**_none(), "complete": 2, "lost": 1}
    states = [row["state"] for row in rows(tmp_path / "run")]
    assert states == ["complete", "lost", "complete"]
    weights = tmp_path / "run" / "fold_0" / "checkpoints" / "last.ckpt"
    trained = weights.stat().st_mtime_ns
    assert tune(**plan) == again
    assert len(calls) == 3 and weights.stat().st_mtime_ns == trained  # nothing is done twice


def test_what_fails_is_told_and_what_is_behind_is_given_up(
    tune: Tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[tuple[float, int]] = []

    def report(claim: Claim, value: float, step: int) -> bool:
        reported.append((value, step))
        return claim.number == 1

    monkeypatch.setattr(Claim, "report", report)
    space = {"model.optimizer.lr": {"values": [0.1, 0.01, 1e30]}}
    options = ["--trainer.max_epochs=2", "--model.head.hidden=[]", "--data.scaling=standard"]
    found = tune(space, *options, run="tabular/softmax", trials=3, inner_folds=2, sampler="grid")
    assert [row["state"] for row in rows(tmp_path / "run")] == ["complete", "pruned", "failed"]
    assert "error" not in rows(tmp_path / "run")[0]["error"] and rows(tmp_path / "run")[2]["error"]
    # Every epoch of every inner fold; then one of the trial that is given up at once.
    assert [step for _, step in reported[:5]] == [0, 1, 2, 3, 0]
    assert reported[3][0] == pytest.approx(found["folds"][0]["val_kl"])


@pytest.mark.parametrize("limits", [["--trainer.max_epochs=-1"], ["--trainer.max_epochs=9"]])
def test_the_last_of_all_steps_is_not_given_up(
    limits: list[str], tune: Tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twice 15 training rows in batches of 8, six steps are three epochs."""
    steps: list[int] = []

    def report(claim: Claim, value: float, step: int) -> bool:
        steps.append(step)
        return step == 5

    monkeypatch.setattr(Claim, "report", report)
    options = ["--trainer.max_steps=6", "--data.batch_size=8", "--model.head.hidden=[]", "--data.scaling=standard"]
    space = {"model.optimizer.lr": {"values": [0.1, 0.2]}}
    tune(space, *limits, *options, run="tabular/softmax", trials=1, inner_folds=2, sampler="grid")
    assert [row["state"] for row in rows(tmp_path / "run")][:1] == ["complete"]
    assert steps[:6] == list(range(6))


def test_groups_that_folds_keep_apart_are_kept_apart_inside(tune: Tune, table: Path, tmp_path: Path) -> None:
    from ldl.data import TabularLDL

    arrays = dict(np.load(table))
    np.savez(table, **arrays, group=np.arange(60) // 5)
    data = TabularLDL(path=str(table), folds=3, val_fraction=0.2)
    data.setup()
    assert data.groups is not None and data.leak == 0
    for part, inner in ((0, 1), (0, 3), (ALL, 3)):
        for cut in held_out(data, inner, part):
            assert not set(data.groups[cut.train]) & set(data.groups[cut.val])
            assert (len(cut.test) == 0) == (part == ALL)
            assert not set(data.split.test) & {*cut.train, *cut.val} or part == ALL


FAST = {"trials": 1}
WRONG: dict[str, tuple[dict, list[str], dict, list[str]]] = {
    "unknown option": ({"model.head.trees": {"min": 1, "max": 3}}, [], FAST, ["AAKNN has no option 'trees'"]),
    "a bad end": (
        {"model.head.neighbours": {"min": 0, "max": 3}}, [], FAST,
        ["tune.space.model.head.neighbours: ", "AAKNN.neighbours 0 must be at least 1"],
    ),
    "metric": (KNN, [], {**FAST, "metric": "kll"}, ["tune.metric 'kll' is not one of", "did you mean 'kl'"]),
    "no grid": ({"model.optimizer.lr": {"min": 0.1, "max": 1.0}}, [], {**FAST, "sampler": "grid"}, ["give a step"]),
    "no validation": (KNN, ["--data.val_fraction=0"], FAST, ["tune.inner_folds 1", "data.val_fraction above 0"]),
    "many folds": (KNN, [], {"inner_folds": 80}, ["folds 80 must be in 2..30", "in fold 0"]),
    "all given": (KNN, [f"--{name}={value}" for name, value in zip(KNN, (3,))], FAST, ["all options"]),
    "a checkpoint": (KNN, ["--ckpt_path", "x.ckpt"], FAST, ["leave --ckpt_path out"]),
    "the best": (KNN, ["--select", "best"], FAST, ["leave --select best out"]),
    "processes": (KNN, ["--trainer.devices=2"], FAST, ["--trainer.devices 2"]),
    "another stage": (KNN, ["--stage", "crossval"], FAST, ["--stage is crossval"]),
    "ours": (KNN, ["--tune.trails=3"], FAST, ["tune has no option 'trails'"]),
    "no YAML": (KNN, ["--tune.metric=["], FAST, ["--tune.metric '[' is no YAML: line 1, column 2: "]),
    "a date": ({"model.head.neighbours": {"values": [dt.date(2020, 1, 2)]}}, [], FAST, ["2020-01-02"]),
    "jobs": (KNN, ["--jobs", "0"], FAST, ["jobs"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str, tune: Tune, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space, options, plan, words = WRONG[case]
    said = refusal(capsys, lambda: tune(space, *options, **plan))
    assert all(word in said for word in words), said
    assert not (tmp_path / "run").exists()


def test_the_shipped_file(tune: Tune, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one trial; its space is that of the run it stands beside."""
    content = yaml.safe_load((CONFIGS / "tune" / "tabular_ldlf.yaml").read_text())
    plan = content["tune"] | {"trials": 1, "inner_folds": 1}
    quick = ["--trainer.max_epochs=1", "--model.head.trees=2"]
    found = tune(plan.pop("space"), *quick, run="tabular/ldlf", **plan)
    assert found["head"] == "LDLF" and set(found["folds"][0]["setting"]) == set(content["tune"]["space"])


def test_another_folder_and_two_files(tune: Tune, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.json").touch()
    assert "has results.json of a run" in refusal(capsys, lambda: tune(**FAST))
    assert "and here is none" in refusal(capsys, lambda: main(["--stage", "tune", "-c", "tabular/aaknn"]))


def test_files_that_are_tried_count(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are named, and those that are found by a name."""
    monkeypatch.setenv("LDL_WEIGHTS", str(tmp_path))
    own, found = tmp_path / "own.ckpt", tmp_path / "resnet34.a1.safetensors"
    run = yaml.safe_dump({"model": {"backbone": {"class_path": "Timm", "init_args": {"pretrained": "auto"}}}})
    space = [Dimension("model.start", (str(own),)), Dimension("model.backbone.name", ("resnet34",))]
    file = TuneFile(Plan(), space, ["-c", "tabular/softmax", "-c", run, "--data.path", str(table)])
    cli = parse_anew(file.command({}))
    data = cli.make_data(cli.config)
    data.setup()
    specs = [_spec(cli, file, parse_anew, data)]
    for changed, content in ((own, "one"), (own, "two"), (found, "one")):
        changed.write_text(content)
        specs.append(_spec(cli, file, parse_anew, data))
    assert len(set(specs)) == 4


def _none() -> dict[str, int]:
    return {"complete": 0, "pruned": 0, "failed": 0, "lost": 0}


def _timeless(row: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in row.items() if name != "seconds"}
