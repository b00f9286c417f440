"""A checkpoint knows what it was trained on: that is no test of it, and leaks are counted against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from ldl.command import main
from ldl.run.record import ROWS_KEY

QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(80, 2)), columns=["dose", "size"])
TABLE = TABLE.assign(value=TABLE.sum(axis=1).round(2), person=np.arange(80) // 4)


@pytest.fixture(scope="module")
def last(tmp_path_factory: pytest.TempPathFactory, blank_charts: None) -> Path:
    folder = tmp_path_factory.mktemp("run")
    TABLE.to_csv(folder / "table.csv", index=False)
    options = ["-c", "configs/runs/tabular/softmax.yaml", "--data=TabularValues", "--data.low=-5", "--data.high=5"]
    options += ["--data.step=1", "--data.sigma=1", f"--data.path={folder / 'table.csv'}", "--trainer.max_epochs=1"]
    main([*options, "--data.val_fraction=0.2", *QUIET, f"--run_dir={folder}"])
    return folder / "checkpoints" / "last.ckpt"


def results_of(checkpoint: Path, out: Path, *options: str) -> dict[str, Any]:
    run = ["-c", str(checkpoint.parent.parent / "config.yaml"), "--stage=test", f"--ckpt_path={checkpoint}"]
    main([*run, *options, *QUIET, f"--run_dir={out}"])
    content: dict[str, Any] = json.loads((out / "results.json").read_text())
    return {**content, **content["folds"][0]}


def test_the_test_part_of_the_run(last: Path, tmp_path: Path) -> None:
    """What was for training is what the run had, whatever the options say now."""
    run = json.loads((last.parent.parent / "results.json").read_text())
    again = results_of(last, tmp_path, "--data.val_fraction=0")
    assert again["folds"] == run["folds"] and again["leaky"] is False
    assert again["leak"] == 0 and again["n_val"] > 0


@pytest.mark.parametrize(
    ("option", "stage"),
    [
        ("--data.fold=1", "test"),
        ("--data.fold_seed=2", "test"),
        ("--data.protocol=random_kfold", "test"),
        ("--data.val_fraction=.5", "fit"),
    ],
)
def test_what_was_trained_on_is_no_test(
    option: str, stage: str, last: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    longer = ["--trainer.max_epochs=2"] if stage == "fit" else []
    with pytest.raises(SystemExit):
        results_of(last, tmp_path / "out", option, f"--stage={stage}", *longer)
    error = capsys.readouterr().err
    assert f"{last} was trained on " in error and " instances that fold " in error and error.count("\n") == 1
    assert "give the data.fold, folds, fold_seed, val_fraction and protocol of its run" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("old", [False, True])
def test_of_other_data_no_leak_is_known(
    old: bool, last: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor of those of an old checkpoint, which does not say."""
    given = []
    if old:
        content = torch.load(last, weights_only=True)
        del content[ROWS_KEY]
        torch.save(content, last.parent / "old.ckpt")
    else:
        TABLE[40:].to_csv(tmp_path / "half.csv", index=False)
        given = [f"--data.path={tmp_path / 'half.csv'}"]
    found = results_of(last.parent / "old.ckpt" if old else last, tmp_path / "out", *given)
    assert found["leak"] is None and found["leaky"] is None
    assert (
        "group leakage cannot be counted: the weights are not known to be trained on these data"
        in capsys.readouterr().out
    )
