"""Signals in processes of their own: those that must die, or wait, or are several."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from fakes.forks import Run
from fakes.paths import CONFIGS
from fakes.processes import assert_close
from fakes.signals import told

from ldl.command import main
from ldl.data.loader import start_worker
from ldl.progress import stop
from ldl.run import signals

pytestmark = pytest.mark.usefixtures("blank_charts")

SMALL = [
    *("-c", str(CONFIGS / "default.yaml"), "--wandb.mode", "disabled", "--trainer.accelerator", "cpu"),
    *("--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false"),
    *("--trainer.precision", "64-true", "--trainer.limit_test_batches", "1"),
    *("--data.turns", "1", "--data.batch_size", "200", "--data.folds", "3", "--model.head.batches", "4"),
    *("--model.head.trees", "2", "--model.head.depth", "3", "--model.head.outputs", "7", "--model.head.hidden", "[8]"),
]


def last_lines(log: Path) -> list[str]:
    """What a run said of its end."""
    assert "Traceback" not in log.read_text(), log.read_text()
    return re.findall(r"^(?:stopped|error).*$", log.read_text(), re.MULTILINE)


@pytest.mark.slow
def test_two_processes_stop_together_and_resume(tmp_path: Path) -> None:
    """The second process alone is told, while they validate."""
    run, log, last = tmp_path / "run", tmp_path / "log", tmp_path / "run" / "checkpoints" / "last.ckpt"
    options = [*SMALL, "--trainer.max_epochs", "2"]
    alone = told("on_validation_batch_start", 1, signal.SIGHUP, rank=1)
    ended = Run([*options, *alone, "--run_dir", str(run)], log, processes=2)
    assert (ended.wait(60), ended.end()) == (129, True), log.read_text()
    assert last_lines(log) == [f"stopped by SIGHUP at step 6; resume with --ckpt_path {last}"]
    ended = Run([*options, "--run_dir", str(run), "--ckpt_path", str(last)], log, processes=2)
    assert ended.wait(60) == 0, log.read_text()
    main([*options, "--run_dir", str(tmp_path / "whole")])
    one, two = (json.loads((place / "results.json").read_text())["folds"] for place in (tmp_path / "whole", run))
    assert_close(one, two)


@pytest.mark.slow
def test_killed_process_ends_the_others_in_one_line(tmp_path: Path) -> None:
    kill = told("on_train_batch_start", 3, signal.SIGKILL, rank=1)
    ended = Run([*SMALL, *kill, "--run_dir", str(tmp_path / "run")], tmp_path / "log", processes=2)
    assert (ended.wait(60), ended.end()) == (1, True), (tmp_path / "log").read_text()
    (line,) = last_lines(tmp_path / "log")
    assert line.startswith("error: another process of this run has ended")


@pytest.mark.slow
def test_loader_processes_end_with_a_group_that_is_told(tmp_path: Path) -> None:
    """As ``timeout`` does and job systems do, SIGTERM goes to all processes, of which the loaders go on for a batch."""
    run, log, last = tmp_path / "run", tmp_path / "log", tmp_path / "run" / "checkpoints" / "last.ckpt"
    endless = [*SMALL, "--trainer.max_epochs", "5000", "--data.num_workers", "1", "--run_dir", str(run)]
    started = Run(endless, log)
    deadline = time.monotonic() + 90
    while not last.is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(started.leader, signal.SIGTERM)
    assert (started.wait(20), started.end()) == (143, True), log.read_text()
    (line,) = last_lines(log)
    assert re.fullmatch(rf"stopped by SIGTERM at step \d+; resume with --ckpt_path {last}", line)


def waits_for_ever(before: Callable[[], object] | None = None) -> None:
    """A training loop whose batch does not end."""
    with signals.graceful_shutdown():
        stop.trains = True
        if before:
            before()
        os.write(2, b"begun\n")
        while True:
            time.sleep(1)


def rank_is_killed() -> None:
    signals.FAREWELL = 0.1
    signals.shutdown.ranks = [subprocess.Popen(["sleep", "60"])]
    signals.shutdown.ranks[0].kill()


def rank_ends() -> None:
    signals.FAREWELL = 0.1
    signals.shutdown.ranks = [subprocess.Popen(["false"])]


def only_reads() -> None:
    stop.trains = False


def loses_patience() -> None:
    signals.STOP_SECONDS = 0.1


@pytest.mark.parametrize(
    "before, numbers, code, says",
    [
        (None, [signal.SIGINT, signal.SIGINT], 130, "stopped by SIGINT; start it again"),
        (loses_patience, [signal.SIGTERM], 143, "stopped by SIGTERM, which took more than 0.1 s; start it again"),
        (only_reads, [signal.SIGTERM], 143, "stopped by SIGTERM; start it again"),
        (rank_is_killed, [], 1, r"error: rank 1 \(process \d+\) was ended by SIGKILL.*"),
        (rank_ends, [], 1, r"\A\Z"),
    ],
    ids=["Ctrl-C twice", "patience", "nothing to save", "lost rank", "rank that has said why"],
)
def test_process_that_waits_is_ended(
    before: Callable[[], object] | None, numbers: list[int], code: int, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    process = get_context("fork").Process(target=waits_for_ever, args=(before,))
    process.start()
    said = ""
    while "begun" not in said:
        said += capfd.readouterr().err
    for number in numbers:
        assert process.pid
        os.kill(process.pid, number)
        time.sleep(signals.AGAIN + 0.1)
    process.join(20)
    assert process.exitcode == code
    assert re.search(rf"^{says}$", capfd.readouterr().err, re.MULTILINE)


def _trains(pipe: Connection) -> None:
    loader = get_context("fork").Process(target=_loads, args=(pipe,))
    loader.start()
    time.sleep(60)


def _loads(pipe: Connection) -> None:
    start_worker(0, rank=0, seeded=False)
    pipe.send(os.getpid())
    time.sleep(60)


def test_loader_process_ends_with_a_training_process_that_is_killed() -> None:
    ours, theirs = get_context("fork").Pipe()
    training = get_context("fork").Process(target=_trains, args=(theirs,))
    training.start()
    loader = ours.recv()
    assert os.getpgid(loader) == loader
    training.kill()
    training.join()
    deadline = time.monotonic() + 10
    while "\nState:\tZ" not in (status := _status(loader)) and status and time.monotonic() < deadline:
        time.sleep(0.02)
    assert time.monotonic() < deadline


def _status(process: int) -> str:
    place = Path(f"/proc/{process}/status")
    return place.read_text() if place.exists() else ""
