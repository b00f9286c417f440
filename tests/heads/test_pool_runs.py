"""Pools from YAML: folds, checkpoints, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from processes import run_here
from some_pool import RUN, pool_run

from ldl.cli import main

pytestmark = pytest.mark.usefixtures("blank_charts")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return pool_run(tmp_path)


def test_folds_and_a_test_of_one_of_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_here(["-c", "run.yaml", "--stage", "crossval", "--run_dir", "folds"], folder)
    results = json.loads((folder / "folds/results.json").read_text())
    assert results["head"] == "Pool" and len(results["folds"]) == 2
    last = ["--ckpt_path", "folds/fold_1/checkpoints/last.ckpt"]
    run_here(["-c", "run.yaml", "--stage", "test", *last, "--data.fold", "1", "--run_dir", "test"], folder)
    again = json.loads((folder / "test/results.json").read_text())
    assert again["mean"]["kl"] == pytest.approx(results["folds"][1]["metrics"]["kl"], abs=1e-6)
    other = RUN.replace("hidden: [4]", "hidden: [5]")
    (folder / "other.yaml").write_text(other)
    with pytest.raises(SystemExit):
        main(["-c", str(folder / "other.yaml"), "--data.path", str(folder / "table.npz"), "--data.fold", "1",
              "--ckpt_path", str(folder / last[1]), "--run_dir", str(folder / "other")])  # fmt: skip
    assert "members[1].head.hidden [4] instead of [5]" in capsys.readouterr().err


def test_a_member_that_is_none_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.yaml").write_text(RUN.replace("- MaxEnt", "- {class_path: MaxEnt, init_args: {l2: -1}}"))
    with pytest.raises(SystemExit):
        main(
            ["-c", str(folder / "wrong.yaml"), "--data.path", str(folder / "table.npz"), "--run_dir", str(folder / "w")]
        )
    assert "Pool.members[2] MaxEnt: MaxEnt.l2 -1.0 must be at least 0" in capsys.readouterr().err
