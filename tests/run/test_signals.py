"""A run that is told to end: a checkpoint, one line, exit code 128 + signal; resumed it ends as one never told."""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from fakes.paths import CONFIGS
from fakes.signals import told

from ldl.checkpoint import AtomicCheckpointIO
from ldl.command import main
from ldl.errors import LDLError
from ldl.reports.files import write_csv
from ldl.run.run_dir import run_dir_lock

SMALL = [
    *("-c", str(CONFIGS / "default.yaml"), "--wandb.mode", "disabled", "--trainer.accelerator", "cpu"),
    *("--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false"),
    *("--trainer.max_epochs", "2", "--data.turns", "1", "--data.batch_size", "100", "--data.folds", "3"),
]
LDLF = [
    *("--model.head.trees", "2", "--model.head.depth", "3", "--model.head.outputs", "7", "--model.head.hidden", "[8]"),
    *("--model.head.batches", "11", "--model.head.dropout", "0.2"),
]
STEPS = 11
"""Batches of an epoch, of 100 of 1,079 instances; the validation part has two."""


def end_of(args: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code of a run that does not go through, and the last line that it said."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(args)
    return int(str(ended.value.code)), capsys.readouterr().err.strip().splitlines()[-1]


def outcome(run: Path) -> tuple[dict[str, torch.Tensor], object, str, list[str]]:
    """What a run has learned, measured, predicted and logged."""
    state = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
    weights = {**state["state_dict"], **{f"ring {name}": part for name, part in state["leaf_update"].items()}}
    folds = json.loads((run / "results.json").read_text())["folds"]
    return weights, folds, (run / "predictions.csv").read_text(), (run / "metrics.csv").read_text().splitlines()


@pytest.fixture(scope="module")
def unbroken(blank_charts: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("unbroken") / "run"
    main([*SMALL, *LDLF, "--run_dir", str(run)])
    return run


@pytest.mark.parametrize(
    "hook, call, number, step",
    [
        ("on_train_batch_start", 3, signal.SIGTERM, 3),
        ("on_validation_batch_start", 2, signal.SIGHUP, STEPS),
        pytest.param("on_train_batch_start", 2 * STEPS, signal.SIGINT, 2 * STEPS, marks=pytest.mark.slow),
        pytest.param("on_test_batch_start", 1, signal.SIGINT, 2 * STEPS, marks=pytest.mark.slow),
    ],
)
def test_told_run_is_saved_and_resumed_exactly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unbroken: Path, hook: str, call: int, number: int, step: int
) -> None:
    run, last = tmp_path / "run", tmp_path / "run" / "checkpoints" / "last.ckpt"
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    code, line = end_of([*SMALL, *LDLF, *told(hook, call, number), "--run_dir", str(run)], capsys)
    assert code == 128 + number
    name = signal.Signals(number).name
    assert line == f"stopped by {name} at step {step}; resume with --ckpt_path {last}"
    assert torch.load(last, weights_only=True)["global_step"] == step
    assert before == {number: signal.getsignal(number) for number in before}
    main([*SMALL, *LDLF, "--run_dir", str(run), "--ckpt_path", str(last)])
    resumed, whole = outcome(run), outcome(unbroken)
    assert all(torch.equal(resumed[0][name], tensor) for name, tensor in whole[0].items())
    assert resumed[1:] == whole[1:]


def test_fit_of_a_head_ends_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to save, and nothing is left."""
    head = ["--model.head", "MeanPredictor", "--model.backbone.flatten", "true"]
    code, line = end_of([*SMALL, *head, *told("on_fit_start"), "--run_dir", str(tmp_path / "run")], capsys)
    assert (code, line) == (143, "stopped by SIGTERM; start it again")
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_crossval_and_test_say_where(tmp_path: Path, capsys: pytest.CaptureFixture[str], unbroken: Path) -> None:
    crossval = ["--stage", "crossval", "--run_dir", str(tmp_path / "folds")]
    code, line = end_of([*SMALL, *LDLF, *told("on_train_batch_start", 2), *crossval], capsys)
    again = f"the same command with --run_dir {tmp_path / 'folds'} resumes it"
    assert (code, line) == (143, f"stopped by SIGTERM in fold 0 at step 2; {again}")
    test = ["--stage", "test", "--ckpt_path", str(unbroken / "checkpoints" / "last.ckpt"), "--run_dir", str(tmp_path)]
    code, line = end_of([*SMALL, *LDLF, *test, *told("on_test_batch_start", 1, signal.SIGINT)], capsys)
    assert (code, line) == (130, "stopped by SIGINT; start it again")


def test_second_run_in_a_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    with run_dir_lock(run):
        code, line = end_of([*SMALL, *LDLF, "--run_dir", str(run)], capsys)
        assert {path.name for path in run.iterdir()} == {".ldl", ".lock"}
    assert code == 2
    assert line == f"error: another run is in --run_dir {run}; give another folder, or wait until it has ended"
    assert not run.exists()
    with run_dir_lock(run):
        pass


@pytest.fixture
def full_disk() -> Iterator[Callable[[int], None]]:
    """Limits the length of files, as a disk that is almost full does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_full_disk_leaves_the_last_checkpoint(tmp_path: Path, full_disk: Callable[[int], None]) -> None:
    last = tmp_path / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint({"weights": torch.zeros(1000)}, last)
    full_disk(5000)
    with pytest.raises(LDLError, match=f"^{last} cannot be written: File too large; files written before are complete"):
        AtomicCheckpointIO().save_checkpoint({"weights": torch.zeros(10_000)}, last)
    with pytest.raises(LDLError, match="predictions.csv cannot be written: File too large"):
        write_csv(tmp_path / "predictions.csv", ["a"], [[1.5]] * 5000)
    assert [path.name for path in tmp_path.iterdir()] == ["last.ckpt"]
    assert len(torch.load(last, weights_only=True)["weights"]) == 1000
