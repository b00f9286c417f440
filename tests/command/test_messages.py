"""What only libraries can refuse ends in one line too, and what is refused leaves nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.command import main
from ldl.command.messages import explain, user_errors
from ldl.errors import LDLError

ROWS = 30


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound table of four features, two of which are the same in all rows, and three labels."""
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.normal(size=(ROWS, 2)), np.ones((ROWS, 2)), rng.dirichlet(np.ones(3), ROWS)])
    path = tmp_path_factory.mktemp("table") / "a.csv"
    np.savetxt(path, rows, delimiter=",", header="a,b,c,d,label:x,label:y,label:z", comments="", fmt="%.9f")
    return path


def small(table: Path, folder: Path, *more: str) -> list[str]:
    return [
        "--data", "TabularLDL", "--data.path", str(table), "--model.head", "Softmax", "--model.backbone", "null",
        "--trainer.max_epochs", "1", "--trainer.accelerator", "cpu", "--trainer.enable_progress_bar", "false",
        "--wandb.mode", "disabled", "--run_dir", str(folder), *more,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "--trainer.limit_train_batches 0.0001",
            "the trainer does not accept its options: You requested to check 0.0001",
        ),
        ("--trainer.val_check_interval 1000", "the trainer does not accept its options: `val_check_interval` (1000)"),
        ("--trainer.accumulate_grad_batches 0", "trainer.accumulate_grad_batches 0 must be at least 1"),
        ("--trainer.accelerator tpu", "the trainer does not accept its options: Requirement"),
        ("--trainer.strategy ddp_spawn", "trainer.strategy 'ddp_spawn' shards the weights or copies this process"),
        (
            "--trainer.strategy DDPStrategy --trainer.strategy.start_method spawn",
            "'DDPStrategy' shards the weights or copies",
        ),
        ("--trainer.strategy FSDPStrategy", "trainer.strategy 'FSDPStrategy' shards the weights or"),
        ("--trainer.strategy deepspeed_stage_2", "trainer.strategy 'deepspeed_stage_2' shards the weights or"),
        ("--model.optimizer SparseAdam", "the optimiser or scheduler does not accept its options: SparseAdam"),
        (
            "--model.lr_scheduler StepLR --model.lr_scheduler.step_size 0",
            "the optimiser or scheduler does not accept its options",
        ),
        (f"--model.head.hidden [{','.join(['65536'] * 300)}]", "GB of weights, and the machine has"),
        ("--model.head LDLF --model.head.trees 10000 --model.head.depth 16 --model.head.outputs null", "GB of weights"),
    ],
)
def test_one_line_and_nothing_left(
    more: str, said: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(small(table, tmp_path / "runs" / "first", *more.split()))
    assert exit_.value.code == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and said in lines[0] and len(lines[0]) < 500
    assert list(tmp_path.iterdir()) == []


def test_a_lack_of_memory_is_said() -> None:
    def asked(make: object) -> str:
        with pytest.raises(LDLError) as caught, user_errors():
            make()  # type: ignore[operator]
        return str(caught.value)

    assert asked(lambda: torch.empty(10**15)).startswith("not enough memory: ")
    assert asked(lambda: np.empty(10**15)).startswith("not enough memory: ")
    assert explain(ValueError("of this file")) is None and explain(KeyError("x")) is None
