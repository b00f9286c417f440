"""A run that is told to end: a checkpoint, one line, exit code 128 + signal; resumed it ends as one never told."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import torch
from places import CONFIGS
from told import told

from ldl.cli import main

SMALL = [
    *("-c", str(CONFIGS / "default.yaml"), "--wandb.mode", "disabled", "--trainer.accelerator", "cpu"),
    *("--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false"),
    *("--trainer.max_epochs", "2", "--data.turns", "1", "--data.batch_size", "200", "--data.folds", "3"),
]
LDLF = [
    *("--model.head.trees", "2", "--model.head.depth", "3", "--model.head.outputs", "7", "--model.head.hidden", "[8]"),
    *("--model.head.batches", "4", "--model.head.dropout", "0.2"),
]
STEPS = 6
"""Batches of an epoch, of 200 of 1,079 instances; the validation part has one batch."""


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
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("unbroken") / "run"
    main([*SMALL, *LDLF, "--run_dir", str(run)])
    return run


@pytest.mark.parametrize(
    "hook, call, number, step",
    [
        ("on_train_batch_start", 3, signal.SIGTERM, 3),
        ("on_validation_batch_start", 1, signal.SIGHUP, STEPS),
        ("on_train_batch_start", 2 * STEPS, signal.SIGINT, 2 * STEPS),
        ("on_test_batch_start", 1, signal.SIGINT, 2 * STEPS),
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
    assert line == f"stopped by {name} at step {step}; go on with --ckpt_path {last}"
    assert torch.load(last, weights_only=True)["global_step"] == step
    assert before == {number: signal.getsignal(number) for number in before}
    main(["--ckpt_path", str(last), "--trainer.callbacks", "null"])
    resumed, whole = outcome(run), outcome(unbroken)
    assert all(torch.equal(resumed[0][name], tensor) for name, tensor in whole[0].items())
    assert resumed[1:] == whole[1:]
