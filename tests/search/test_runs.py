"""Run directories that were made and some that are damaged, and two that are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from fakes.run_lists import list_runs, read_results

from ldl.command.console import command
from ldl.labels import LabelSpace
from ldl.metrics import higher_is_better, metrics_for
from ldl.search.runs import comparison, read_run, unpaired
from ldl.search.statistics import p_value


def test_compare(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = list_runs(capsys, runs, "--compare", "mean", runs / "near")
    folds = np.array(
        [[fold["metrics"]["kl"] for fold in read_results(runs / name)["folds"]] for name in ("mean", "near")]
    )
    (row,) = [line.split() for line in lines if line.startswith("kl ")]
    difference = np.mean(folds[0]) - np.mean(folds[1])
    assert float(row[3]) == pytest.approx(difference, abs=6e-5) and row[5] == ("A" if difference < 0 else "B")
    assert float(row[4]) == pytest.approx(p_value(*folds), rel=1e-2)
    (row,) = [line.split() for line in lines if line.startswith("cosine ")]
    assert row[5] == ("A" if float(row[3]) > 0 else "B")
    assert any(line.split() == ["model.head.neighbours", "-", "3"] for line in lines)
    lines = list_runs(capsys, runs, "--compare", "mean", "once")
    assert lines[-1] == "not paired: both must be cross-validations"
    with pytest.raises(SystemExit):
        list_runs(capsys, runs, "--compare", "mean", "elsewhere")
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
