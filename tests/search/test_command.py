"""``ldl runs`` lists, filters and sorts runs, and writes them as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from fakes.run_lists import list_runs, read_results

from ldl.command.console import command


def test_list(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = list_runs(capsys, runs)
    assert header.split() == ["when", "data", "protocol", "head", "stage", "folds", "kl", "folder"]
    assert {line.rpartition("/")[2] for line in lines} == {"mean", "near", "once"}
    (line,) = [line for line in lines if line.endswith("near")]
    content = read_results(runs / "near")
    assert line.split()[2:7] == ["votes", "random_kfold", "AAKNN", "crossval", "2"]
    assert f"{content['mean']['kl']:.4f} ± {content['std']['kl']:.4f}" in line


def test_filters_and_order(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def names(*args: str) -> list[str]:
        return [line.rpartition("/")[2] for line in list_runs(capsys, runs, *args)[1:]]

    assert set(names("--head", "meanpredictor")) == {"mean", "once"}
    assert names("--stage", "fit") == ["once"] and set(names("--stage", "crossval")) == {"mean", "near"}
    assert names("--where", "model.head.neighbours=3") == ["near"]
    assert names("--where", "data.fold_seed=1", "--where", "data=TabularLDL") == ["once"]
    assert names("--data", "elsewhere") == names("--head", "AAKNN", "--stage", "fit") == []
    by_kl = sorted(("mean", "near", "once"), key=lambda name: read_results(runs / name)["mean"]["kl"])
    assert names("--sort", "kl") == by_kl
    by_cosine = sorted(("mean", "near", "once"), key=lambda name: -read_results(runs / name)["mean"]["cosine"])
    assert names("--sort", "cosine") == by_cosine
    for args, reason in ((["--sort", "kll"], "did you mean 'kl'"), (["--where", "x"], "must be option=value")):
        with pytest.raises(SystemExit):
            list_runs(capsys, runs, *args)
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


def test_csv(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "runs.csv"
    assert str(file) in list_runs(capsys, runs, "--csv", file)[-1]
    with file.open(newline="") as stream:
        rows = {Path(row["folder"]).name: row for row in csv.DictReader(stream)}
    content = read_results(runs / "near")
    assert float(rows["near"]["kl"]) == content["mean"]["kl"] and float(rows["near"]["kl_std"]) == content["std"]["kl"]
    assert rows["once"]["kl_std"] == "" and rows["once"]["folds"] == "1" and rows["once"]["seed"] == "0"
