"""Missing values of BoostedTrees on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from places import ROOT
from processes import run_here
from some_trees import problem

pytestmark = pytest.mark.usefixtures("blank_charts")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    features, target = problem(rows=201, missing=0.1)
    np.savez(tmp_path / "table.npz", features=features.numpy(), labels=target.double().numpy())
    return tmp_path / "table.npz"


def command(table: Path, folder: str, *options: str) -> list[str]:
    run = ["-c", str(ROOT / "configs/runs/tabular/boostedtrees.yaml"), f"--data.path={table}", "--run_dir", folder]
    fast = ["--model.head.rounds=4", "--model.head.depth=2", "--trainer.enable_progress_bar=false"]
    return [*run, *fast, "--wandb.mode=disabled", "--trainer.accelerator=cpu", *options]


def test_missing_values_are_refused_unless_they_are_kept(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = ["--model.head=MeanPredictor", "--data.missing=keep", "--wandb.mode=disabled"]
    for options, said in (
        (command(table, "run"), "features row 3, column 1 is nan"),
        (command(table, "run")[:5] + other, "MeanPredictor takes no missing features, and the data have some"),
    ):
        with pytest.raises(SystemExit):
            run_here(options, tmp_path)
        assert said in capsys.readouterr().err
