"""``ldl runs``, of runs that were made and of directories that are damaged."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ldl import charts
from ldl.command import main
from ldl.command.console import command
from ldl.labels import LabelSpace
from ldl.metrics import higher_is_better, metrics_for
from ldl.search.runs import comparison, read_run, unpaired
from ldl.search.statistics import p_value

RNG = np.random.default_rng(0)
OPTIONS = ["--trainer.max_epochs=1", "--trainer.enable_checkpointing=false", "--wandb.mode=disabled", "--data.folds=2"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cross-validations on the same folds, one run on others."""
    folder = tmp_path_factory.mktemp("runs")
    np.savez(folder / "votes.npz", features=RNG.normal(size=(45, 3)), labels=RNG.dirichlet(np.ones(3), 45))
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(charts, "overview", lambda *_: {})
    monkeypatch.setattr("ldl.jobs.crossval.MAX_DRAWN", 0)
    common = ["--data.path", str(folder / "votes.npz"), *OPTIONS]
    for name, head, more in (
        ("mean", "meanpredictor", ["--stage=crossval"]),
        ("near", "aaknn", ["--stage=crossval", "--model.head.neighbours=3"]),
        ("once", "meanpredictor", ["--data.fold_seed=1"]),
    ):
        main(["-c", f"tabular_{head}", *common, *more, "--run_dir", str(folder / "made" / name)])
    monkeypatch.undo()
    return folder / "made"


def said(capsys: pytest.CaptureFixture[str], *args: Any) -> list[str]:
    capsys.readouterr()
    command(["runs", *map(str, args)])
    return capsys.readouterr().out.splitlines()


def results(run: Path) -> Any:
    return json.loads((run / "results.json").read_text())


def test_list(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = said(capsys, runs)
    assert header.split() == ["when", "data", "protocol", "head", "stage", "folds", "kl", "folder"]
    assert {line.rpartition("/")[2] for line in lines} == {"mean", "near", "once"}
    (line,) = [line for line in lines if line.endswith("near")]
    content = results(runs / "near")
    assert line.split()[2:7] == ["votes", "random_kfold", "AAKNN", "crossval", "2"]
    assert f"{content['mean']['kl']:.4f} ± {content['std']['kl']:.4f}" in line


def test_filters_and_order(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def names(*args: str) -> list[str]:
        return [line.rpartition("/")[2] for line in said(capsys, runs, *args)[1:]]

    assert set(names("--head", "meanpredictor")) == {"mean", "once"}
    assert names("--stage", "fit") == ["once"] and set(names("--stage", "crossval")) == {"mean", "near"}
    assert names("--where", "model.head.neighbours=3") == ["near"]
    assert names("--where", "data.fold_seed=1", "--where", "data=TabularLDL") == ["once"]
    assert names("--data", "elsewhere") == names("--head", "AAKNN", "--stage", "fit") == []
    by_kl = sorted(("mean", "near", "once"), key=lambda name: results(runs / name)["mean"]["kl"])
    assert names("--sort", "kl") == by_kl
    by_cosine = sorted(("mean", "near", "once"), key=lambda name: -results(runs / name)["mean"]["cosine"])
    assert names("--sort", "cosine") == by_cosine
    for args, reason in ((["--sort", "kll"], "did you mean 'kl'"), (["--where", "x"], "must be option=value")):
        with pytest.raises(SystemExit):
            said(capsys, runs, *args)
        assert reason in capsys.readouterr().err


def test_filters_that_no_run_has_are_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args, reason in (
        (["--where", "modle.head=AAKNN"], "--where modle.head: no run has this option; did you mean 'model.head'?"),
        (["--head", "AAKN"], "--head AAKN: no run has it; did you mean 'AAKNN'?; there are AAKNN, MeanPredictor"),
        (["--head", "AAKNN", "--stage", "fit"], ""),
    ):
        command(["runs", str(runs), *args])
        said = capsys.readouterr()
        assert said.out == f"none of the 3 runs in {runs} matches\n" and said.err == (reason and f"{reason}\n")


def test_compare(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, runs, "--compare", "mean", runs / "near")
    folds = np.array([[fold["metrics"]["kl"] for fold in results(runs / name)["folds"]] for name in ("mean", "near")])
    (row,) = [line.split() for line in lines if line.startswith("kl ")]
    difference = np.mean(folds[0]) - np.mean(folds[1])
    assert float(row[3]) == pytest.approx(difference, abs=6e-5) and row[5] == ("A" if difference < 0 else "B")
    assert float(row[4]) == pytest.approx(p_value(*folds), rel=1e-2)
    (row,) = [line.split() for line in lines if line.startswith("cosine ")]
    assert row[5] == ("A" if float(row[3]) > 0 else "B")
    assert any(line.split() == ["model.head.neighbours", "-", "3"] for line in lines)
    lines = said(capsys, runs, "--compare", "mean", "once")
    assert lines[-1] == "not paired: both must be cross-validations"
    with pytest.raises(SystemExit):
        said(capsys, runs, "--compare", "mean", "elsewhere")
    assert "no run has this name" in capsys.readouterr().err


def test_what_decides_the_folds_keeps_runs_unpaired(runs: Path) -> None:
    run = read_run(runs / "mean")
    assert unpaired(run, run) is None
    for name in ("data.step", "data.value_key", "data.split_list", "data.digit"):
        assert unpaired(run, replace(run, options={**run.options, name: "other"})) == f"{name} is None and other"
    other = replace(run, options={**run.options, "data.target_key": "other"})
    assert unpaired(run, other) == "data.target_key is labels and other"
    unknown = replace(run, options={})
    assert unpaired(unknown, unknown) == f"the options of {run.folder} are not known"
    assert comparison(run, unknown)[3] == "the options are not known"


def test_csv(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "runs.csv"
    assert str(file) in said(capsys, runs, "--csv", file)[-1]
    with file.open(newline="") as stream:
        rows = {Path(row["folder"]).name: row for row in csv.DictReader(stream)}
    content = results(runs / "near")
    assert float(rows["near"]["kl"]) == content["mean"]["kl"] and float(rows["near"]["kl_std"]) == content["std"]["kl"]
    assert rows["once"]["kl_std"] == "" and rows["once"]["folds"] == "1" and rows["once"]["seed"] == "0"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"head": "Softmax", "folds": [', "JSONDecodeError"),
        ('{"folds": [{"fold": 0}]}', "KeyError 'metrics'"),
    ],
)
def test_a_damaged_run_is_named(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, reason: str
) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text((runs / "once/config.yaml").read_text())
    (tmp_path / "bad/results.json").write_text(content)
    command(["runs", str(tmp_path)])
    out, err = capsys.readouterr()
    assert err.startswith(f"left out: {tmp_path / 'bad/results.json'}") and reason in err and err.count("\n") == 1
    assert str(tmp_path / "good") in out and str(tmp_path / "bad") not in out


def test_a_comparison_and_an_unfinished_cross_validation(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "chosen").mkdir()
    folds = [{"fold": 0, "setting": {}, "measures": {"kl": 0.25}}]
    taken = {"name": "AAKNN", "kl": {"mean": 0.25, "std": 0.1}, "folds": folds}
    written = {
        "data": "TabularLDL some/votes.npz",
        "protocol": "shuffled",
        "recommended": "AAKNN",
        "candidates": [taken],
    }
    (tmp_path / "chosen/comparison.json").write_text(json.dumps(written))
    read = read_run(tmp_path / "chosen")
    assert (read.data, read.head, read.stage, read.mean) == ("votes", "AAKNN", "compare", {"kl": 0.25})
    (tmp_path / "begun/fold_0").mkdir(parents=True)
    options = yaml.safe_load((runs / "once/config.yaml").read_text())
    (tmp_path / "begun/fold_0/config.yaml").write_text(yaml.safe_dump(options))
    read = read_run(tmp_path / "begun")
    assert (read.data, read.head, read.stage, read.folds) == ("votes", "MeanPredictor", "crossval", [])


def test_directions_of_metrics() -> None:
    spaces = LabelSpace.ordinal(range(40), "years"), LabelSpace.nominal(["no", "yes"])
    for metric in [metric for space in spaces for metric in metrics_for(space)]:
        assert higher_is_better(metric.name) == metric.higher_is_better, metric.name
    assert higher_is_better("cs10") and higher_is_better("cs5")
    assert higher_is_better("unknown") is False and higher_is_better("n_test") is None
