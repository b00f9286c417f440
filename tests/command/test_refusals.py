"""What only libraries can refuse ends in one line too, and what is refused leaves nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.command import main
from ldl.command.command_line import parse_anew
from ldl.command.messages import explain, user_errors
from ldl.errors import LDLError
from ldl.run.parts import build_trainer
from ldl.run.run_dir import cleanup_on_error

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


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


def test_only_what_the_run_has_made_goes(tmp_path: Path) -> None:
    old = tmp_path / "old"
    write(old, config_yaml="before", notes_txt="mine")
    with pytest.raises(LDLError), cleanup_on_error(old):
        write(old, config_yaml="after", metrics_csv="x")
        write(old / "charts", a_png="x")
        raise LDLError("no")
    assert {path.name: path.read_text() for path in old.iterdir()} == {"config.yaml": "before", "notes.txt": "mine"}
    new = tmp_path / "runs" / "data_head" / "time"
    with pytest.raises(LDLError), cleanup_on_error(new):
        write(new, config_yaml="after")
        write(new / "fold_0" / "wandb")
        (new / "fold_0" / "wandb" / "latest-run").symlink_to(old)
        raise LDLError("no")
    assert [path.name for path in tmp_path.iterdir()] == ["old"] and len(list(old.iterdir())) == 2


def test_what_others_make_there_meanwhile_stays(tmp_path: Path) -> None:
    """Where the folder of all runs, or the working directory, is given."""
    with pytest.raises(LDLError), cleanup_on_error(tmp_path):
        write(tmp_path, config_yaml="ours", paper_txt="not")
        write(tmp_path / "other", config_yaml="not", last_ckpt="not")
        raise LDLError("no")
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert there == {"paper.txt", "other/config.yaml", "other/last.ckpt"}


@pytest.mark.parametrize("kept", ["checkpoints/last.ckpt", "results.json", "predictions.csv", "fold_0/results.json"])
def test_what_has_results_stays(kept: str, tmp_path: Path) -> None:
    with pytest.raises(LDLError), cleanup_on_error(tmp_path / "run"):
        write(tmp_path / "run", config_yaml="x")
        write((tmp_path / "run" / kept).parent)
        (tmp_path / "run" / kept).write_text("x")
        raise LDLError("no")
    assert (tmp_path / "run" / "config.yaml").is_file() and (tmp_path / "run" / kept).is_file()


def test_other_errors_keep_what_they_need_to_be_found(tmp_path: Path) -> None:
    with pytest.raises(KeyError), cleanup_on_error(tmp_path / "run"), user_errors():
        write(tmp_path / "run", config_yaml="x")
        raise KeyError("a mistake of ours")
    assert (tmp_path / "run" / "config.yaml").is_file()


def test_a_lack_of_memory_is_said() -> None:
    def asked(make: object) -> str:
        with pytest.raises(LDLError) as caught, user_errors():
            make()  # type: ignore[operator]
        return str(caught.value)

    assert asked(lambda: torch.empty(10**15)).startswith("not enough memory: ")
    assert asked(lambda: np.empty(10**15)).startswith("not enough memory: ")
    assert explain(ValueError("of this file")) is None and explain(KeyError("x")) is None


@pytest.mark.parametrize("devices", [1, 2])
def test_batch_normalisation_is_shared_between_gpus_only(devices: int) -> None:
    """On CPUs, torch would raise an error of several lines in the first training step."""
    options = ["--trainer.accelerator=cpu", "--trainer.sync_batchnorm=true", f"--trainer.devices={devices}"]
    config = parse_anew(["--data=RotatedDigits", "--model.head=MeanPredictor", *options])
    if devices == 1:
        assert build_trainer(config, [], logger=False).world_size == 1
    else:
        with pytest.raises(LDLError, match="trainer.sync_batchnorm needs GPUs, and this run has processes on CPUs"):
            build_trainer(config, [], logger=False)
