"""A cross-validation in several processes, or in several sittings, is that of one process in one."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from distributed import LocalCluster

from ldl.cli import main
from ldl.errors import LDLError
from ldl.running import crossval_stage
from ldl.running.folds import read_fold

pytestmark = pytest.mark.usefixtures("blank_charts")

RUN = ["--data", "RotatedDigits", "--data.turns=1", "--data.folds=3", "--model.head=AAKNN", "--trainer.max_epochs=1"]
RUN += ["--model.backbone.flatten=true", "--stage=crossval", "--trainer.enable_progress_bar=false"]
RUN += ["--wandb.mode=disabled", "--trainer.accelerator=cpu"]


def figures(folder: Path) -> dict:
    found = json.loads((folder / "results.json").read_text())
    return {name: value for name, value in found.items() if name != "fit_seconds"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    main([*RUN, "--run_dir", str(folder)])
    return folder


def test_folds_that_are_done_are_kept(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    before = (run / "fold_0" / "results.json").stat().st_mtime_ns
    (run / "results.json").unlink()
    (run / "fold_1" / "results.json").unlink()
    (run / "fold_1" / "half.tmp").touch()
    shutil.rmtree(run / "fold_2")
    capsys.readouterr()
    main([*RUN, "--run_dir", str(run)])
    assert figures(run) == figures(whole)
    assert (run / "fold_0" / "results.json").stat().st_mtime_ns == before and not (run / "fold_1" / "half.tmp").exists()
    assert (run / "model_card.md").read_text() == (whole / "model_card.md").read_text()
    said = capsys.readouterr().out
    assert "1 of 3 folds are done" in said and "fold 0:" not in said and "fold 2:" in said
    monkeypatch.setattr(crossval_stage, "make_trainer", lambda *arguments: pytest.fail("trained again"))
    main([*RUN, "--run_dir", str(run)])
    assert figures(run) == figures(whole)


@pytest.mark.parametrize(
    ("more", "what"),
    [(["--model.head.neighbours=3"], "options"), (["--data.fold_seed=1"], "options"), (["--data.turns=2"], "data")],
)
def test_other_folds_are_not_mixed_in(
    whole: Path, tmp_path: Path, more: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    with pytest.raises(SystemExit) as ended:
        main([*RUN, *more, "--run_dir", str(run)])
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert ended.value.code == 2 and what in line and "give another --run_dir" in line
    assert figures(run) == figures(whole)


@pytest.mark.parametrize("damage", [b"PK", b"PK\x03\x04 and no archive"])
def test_a_damaged_fold_is_named(whole: Path, tmp_path: Path, damage: bytes) -> None:
    key = json.loads((whole / "fold_0" / "results.json").read_text())["cell"]
    shutil.copytree(whole / "fold_0", tmp_path / "fold_0")
    (tmp_path / "fold_0" / "rows.npz").write_bytes(damage)
    with pytest.raises(LDLError, match="fold_0 cannot be read: .*; remove it"):
        read_fold(tmp_path / "fold_0", key)
    assert read_fold(tmp_path / "fold_1", key) is None


def test_jobs_are_as_one(whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main([*RUN, "--jobs=2", "--run_dir", str(tmp_path / "run")])
    assert figures(tmp_path / "run") == figures(whole)
    said = capfd.readouterr().out
    assert "3 folds of 1,797 instances, 2 processes" in said and said.count("fold 1: kl") == 1
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in whole.iterdir()}


def test_a_cluster_that_loses_a_worker_gives_the_same(whole: Path, tmp_path: Path) -> None:
    run, killed = tmp_path / "run", []

    def kill(cluster: LocalCluster) -> None:
        while not list(run.glob("fold_*/config.yaml")):
            time.sleep(0.05)
        killed.append(next(iter(cluster.workers.values())).pid)
        os.kill(killed[0], signal.SIGKILL)

    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, processes=True, **options) as cluster:
        killer = threading.Thread(target=kill, args=(cluster,), daemon=True)
        killer.start()
        main([*RUN, "--scheduler", cluster.scheduler_address, "--run_dir", str(run)])
        killer.join()
    assert killed and figures(run) == figures(whole)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--stage=fit", "--jobs=2"], "--jobs 2 shares folds among processes, and --stage fit has none"),
        (["--jobs=0"], "jobs"),
        (["--jobs=2", "--trainer.devices=2"], "--jobs and --scheduler train each fold in one process"),
        (["--ckpt_path=x.ckpt"], "--stage crossval takes no --ckpt_path"),
        (["--scheduler=127.0.0.1:1"], "no Dask scheduler answers at --scheduler 127.0.0.1:1"),
    ],
)
def test_refusals(
    more: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ldl.cells.executors.PATIENCE", 0.2)
    with pytest.raises(SystemExit) as ended:
        main([*RUN, *more, "--run_dir", str(tmp_path / "run")])
    assert ended.value.code == 2 and line in capsys.readouterr().err.strip().splitlines()[-1]
    assert not (tmp_path / "run").exists()
