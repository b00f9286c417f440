"""Trainers inside an allocation of SLURM."""

from __future__ import annotations

import pytest

from ldl.command.command_line import parse_anew
from ldl.errors import LDLError
from ldl.run import signals
from ldl.run.parts import build_trainer
from ldl.run.signals import graceful_shutdown


@pytest.fixture(autouse=True)
def allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ``sbatch --ntasks=4``, in which a program is started without ``srun``."""
    for name, value in {"NTASKS": "4", "JOB_ID": "7", "PROCID": "0", "LOCALID": "0", "JOB_NAME": "faces"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SLURM_NODEID", "0")


def trainer(*options: str) -> object:
    config = parse_anew(["--data=RotatedDigits", "--model.head=MeanPredictor", "--trainer.accelerator=cpu", *options])
    return build_trainer(config, [], logger=False, enable_checkpointing=False)


@pytest.mark.parametrize("options", [[], ["--trainer.devices=1"]])
def test_one_process_needs_no_task_of_its_own(options: list[str]) -> None:

    with graceful_shutdown():
        assert trainer(*options).world_size == 1  # type: ignore[attr-defined]
        assert signals.shutdown.requeue_on is not None


def test_several_processes_need_tasks() -> None:
    with pytest.raises(LDLError, match="ntasks"):
        trainer("--trainer.devices=2")


def test_a_trainer_without_logs_is_refused() -> None:
    with pytest.raises(LDLError, match="trainer.barebones logs and saves nothing, and a run does both"):
        trainer("--trainer.barebones=true")
