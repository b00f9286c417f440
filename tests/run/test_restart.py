"""A run that SLURM, torchrun or its user starts again, by the same command, ends as one that was never stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fakes.forks import different
from fakes.paths import CONFIGS
from fakes.signals import told
from filelock import FileLock
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pytorch_lightning.utilities import rank_zero_only

from ldl.collective import Collective
from ldl.command import main
from ldl.command.arguments import tokenize
from ldl.command.command_line import Command
from ldl.errors import LDLError
from ldl.progress import stop
from ldl.run import resume, run_dir, signals
from ldl.run.main import complete, config_beside

pytestmark = pytest.mark.usefixtures("blank_charts")

SMALL = [
    *("-c", str(CONFIGS / "default.yaml"), "--wandb.mode", "disabled", "--trainer.accelerator", "cpu"),
    *("--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false"),
    *("--trainer.max_epochs", "2", "--data.turns", "1", "--data.batch_size", "100", "--data.folds", "3"),
    *("--model.head.trees", "2", "--model.head.depth", "3", "--model.head.outputs", "7", "--model.head.hidden", "[8]"),
    *("--model.head.batches", "5", "--model.head.dropout", "0.2"),
]
JOB = {
    "SLURM_JOB_ID": "4242", "SLURM_JOB_NAME": "faces", "SLURM_NTASKS": "1", "SLURM_NTASKS_PER_NODE": "1",
    "SLURM_NNODES": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def draw_nothing() -> Iterator[None]:
    """Charts are looked at by tests of their own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FigureCanvasAgg, "print_png", lambda canvas, path, **options: Path(path).touch())
        yield


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("unbroken") / "run"
    main([*SMALL, "--run_dir", str(run)])
    return run


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job of SLURM, whose command of this name notes in a file what it is asked for."""
    asked, script = tmp_path / "asked", tmp_path / "bin" / "scontrol"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=":")
    for name, value in JOB.items():
        monkeypatch.setenv(name, value)
    return asked


def begun_with(said: str) -> str:
    return next((line for line in said.splitlines() if line.startswith("weights:")), "")


@pytest.mark.slow
def test_requeued_job_goes_on_exactly(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    unbroken: Path,
    scontrol: Path,
) -> None:
    """In the middle of the second epoch; an older run has left its checkpoint there."""
    run, last = tmp_path / "run", tmp_path / "run" / "checkpoints" / "last.ckpt"
    last.parent.mkdir(parents=True)
    last.write_bytes((unbroken / "checkpoints" / "last.ckpt").read_bytes())
    command = [*SMALL, *told("on_train_batch_start", 15, signal.SIGUSR1, once=tmp_path / "told"), "--run_dir", str(run)]
    before = signal.getsignal(signal.SIGUSR1)
    with pytest.raises(SystemExit) as ended:
        main(command)
    said = capsys.readouterr()
    assert (ended.value.code, begun_with(said.out)) == (128 + signal.SIGUSR1, "")
    assert said.err.splitlines()[-1] == "stopped by SIGUSR1 at step 15; job 4242 is queued again"
    assert signal.getsignal(signal.SIGUSR1) == before
    assert scontrol.read_text() == "requeue 4242\n"
    assert not list(run.glob("hpc_ckpt*"))
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    main(command)
    assert begun_with(capsys.readouterr().out) == f"weights: {last}, after step 15"
    assert different(run, unbroken) == []


def test_last_begins_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str], unbroken: Path) -> None:
    """Where no configuration is named, that of the run is taken."""
    run, last = tmp_path / "run", tmp_path / "run" / "checkpoints" / "last.ckpt"
    command = [*SMALL, "--run_dir", str(run), "--ckpt_path", "last"]
    with pytest.raises(SystemExit):
        main([*command, *told("on_train_batch_start", 3)])
    assert begun_with(capsys.readouterr().out) == ""
    main(command)
    assert begun_with(capsys.readouterr().out) == f"weights: {last}, after step 3"
    assert different(run, unbroken) == []
    command = Command(tokenize(["--run_dir", str(run), "--ckpt_path", "last"]))
    config = complete(command, config_beside(command)).config
    assert config.values.data.init_args.turns == 1 and bool(resume.checkpoint_of(config))
    assert config.values.ckpt_path == str(last)
    for options, says in (([], "give --run_dir"), (["--stage", "test", "--run_dir", "gone"], "no checkpoint at gone")):
        with pytest.raises(SystemExit):
            main([*SMALL, "--ckpt_path", "last", *options])
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "environment, again",
    [
        ({}, False),
        ({"SLURM_JOB_ID": "1"}, False),
        ({"SLURM_JOB_ID": "1", "SLURM_RESTART_COUNT": "1"}, True),
        ({"TORCHELASTIC_RUN_ID": "faces", "TORCHELASTIC_MAX_RESTARTS": "0"}, False),
        # A machine was lost and came again: torchrun counts no failure.
        ({"TORCHELASTIC_RUN_ID": "faces", "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RESTART_COUNT": "0"}, True),
        # Without a name, it may be another launch.
        ({"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RESTART_COUNT": "0"}, False),
        ({"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RESTART_COUNT": "1"}, True),
    ],
)
def test_only_what_the_launch_itself_has_saved_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbroken: Path, environment: dict[str, str], again: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    state = torch.load(unbroken / "checkpoints" / "last.ckpt", weights_only=True)
    last = resume.last_of(tmp_path)
    last.parent.mkdir()
    torch.save({**state, resume.LAUNCH_KEY: resume.launch_of(config_with("a: 1"))}, last)
    given = unbroken / "checkpoints" / "best.ckpt"
    for text, taken in (("a: 1", again), ("a: 2", False)):
        for path in (None, str(given)):
            config = config_with(text, ckpt_path=path, run_dir=str(tmp_path), stage="fit")
            assert bool(resume.checkpoint_of(config)) == (taken or path is not None)
            assert config.values.ckpt_path == (str(last) if taken else path)


def config_with(text: str, **values: Any) -> Any:
    """A configuration whose complete YAML is ``text``."""
    return SimpleNamespace(text=lambda: text, values=SimpleNamespace(**values))


class _Other(Collective):
    """With a second process that begins anew."""

    world_size = 2

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        return [tensor, torch.full_like(tensor, -1)]


def test_processes_that_begin_with_other_steps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "current_collective", _Other)
    trainer = resume.pl.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    resume.Launch(None, -1).setup(trainer, trainer, "fit")  # type: ignore[arg-type]
    with pytest.raises(LDLError, match="process 1 starts a new run, but process 0 resumes after step 7; let --run_dir"):
        resume.Launch(None, 7).setup(trainer, trainer, "fit")  # type: ignore[arg-type]


def test_every_process_that_is_to_be_started_again_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ended with 0 would be done, as torchrun sees it."""
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    monkeypatch.setattr(stop, "signal", signal.SIGTERM)
    assert signals.Shutdown().report() == 0
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    assert signals.Shutdown().report() == 128 + signal.SIGTERM


def test_run_that_is_started_again_waits_for_what_is_left_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = FileLock(tmp_path / run_dir.LOCK, thread_local=False)
    left.acquire()
    with pytest.raises(LDLError, match="another run is in"), run_dir.run_dir_lock(tmp_path):
        pass
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    threading.Timer(0.2, left.release).start()
    with run_dir.run_dir_lock(tmp_path):
        assert not left.is_locked
