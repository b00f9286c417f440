"""The record of a run is what ran, and its files replace none that no run wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from ldl.checkpoint import OPTIONS_KEY
from ldl.command import main
from ldl.command.console import command

pytestmark = pytest.mark.usefixtures("blank_charts")

QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled", "--trainer.accelerator=cpu"]
STOPPING = "[{class_path: EarlyStopping, init_args: {monitor: val_kl, patience: %d}}]"


def table(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = np.c_[rng.normal(size=(60, 3)), np.eye(2)[rng.integers(2, size=60)]]
    np.savetxt(folder / "t.csv", rows, delimiter=",", header="a,b,c,label:x,label:y", comments="")
    return folder / "t.csv"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    main(["-c", "tabular_softmax", f"--data.path={table(folder)}", "--trainer.max_epochs=1", "--data.val_fraction=.2",
          "--data.batch_size=64", "--model.mixup=0.4", f"--trainer.callbacks={STOPPING % 5}", *QUIET,
          f"--run_dir={folder / 'run'}"])  # fmt: skip
    return folder / "run"


def resume(run: Path, out: Path, *options: str) -> list[str]:
    return ["-c", str(run / "config.yaml"), f"--ckpt_path={run / 'checkpoints' / 'last.ckpt'}", f"--run_dir={out}",
            "--trainer.max_epochs=2", *options]  # fmt: skip


def said(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command ends."""
    with pytest.raises(SystemExit) as end:
        main(args)
    line = capsys.readouterr().err
    assert end.value.code == 2 and line.startswith("error: ") and line.count("\n") == 1
    return line


@pytest.mark.parametrize(
    "option, beside",
    [
        ("--model.optimizer.lr=0.1", False),
        ("--model.optimizer=SGD", False),
        ("--model.lr_scheduler=null", True),
        ("--model.start=other.ckpt", False),
    ],
)
def test_options_that_a_resumed_run_cannot_take_are_refused(
    option: str, beside: bool, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An older checkpoint has no options, but there is a configuration beside it."""
    if beside:
        checkpoint = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
        del checkpoint[OPTIONS_KEY]
        (tmp_path / "old" / "checkpoints").mkdir(parents=True)
        (tmp_path / "old" / "config.yaml").write_text((run / "config.yaml").read_text())
        torch.save(checkpoint, tmp_path / "old" / "checkpoints" / "last.ckpt")
    args = resume(tmp_path / "old" if beside else run, tmp_path / "out", option)
    line = said(args, capsys)
    assert f"{option[2:].partition('=')[0]} " in line and "has no effect on a resumed run" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "stage, name",
    [
        ("fit", "config.yaml"),
        ("predict", "predictions.csv"), ("crossval", "fold_0/mine.txt"),
    ],
)  # fmt: skip
def test_files_that_no_run_wrote_stay(
    name: str, stage: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}")
    there = f"--data.path={run.parent / 't.csv'}"
    args = (
        [f"--ckpt_path={run / 'checkpoints' / 'last.ckpt'}"] if stage == "predict" else ["-c", "tabular_softmax", there]
    )
    line = said([*args, f"--stage={stage}", f"--run_dir={tmp_path}", *QUIET], capsys)
    assert f"has {name.partition('/')[0]}, which no run of ldl wrote" in line
    assert (tmp_path / name).read_text() == "{}"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]


def printed(args: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    with pytest.raises(SystemExit) as end:
        main([*args, "--print_config"])
    assert not end.value.code
    content: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    return content


def test_options_given_before_their_class_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["-c", "tabular_ldlf", "--data.path=v.csv", "--data.folds=7", "--data=TabularValues"]
    args += ["--model.head.hidden=[3]", "--model.head=Softmax", "--model.optimizer.lr=2", "--model.optimizer=SGD"]
    content = printed(args, capsys)
    data, model = content["data"]["init_args"], content["model"]
    assert (data["path"], data["folds"]) == ("v.csv", 7) and model["head"]["init_args"]["hidden"] == [3]
    sgd = model["optimizer"]["init_args"]
    assert (sgd["lr"], sgd["weight_decay"]) == (2, 0)  # and none of AdamW's


def test_home_in_every_path(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(run.parent))
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["data"]["init_args"] |= {"path": "t.csv", "root": "~/"}
    config |= {"run_dir": "~/again", "ckpt_path": "~/run/checkpoints/last.ckpt"}
    (run.parent / "own.yaml").write_text(yaml.safe_dump(config))
    main(["-c", "~/own.yaml", "--stage=test", *QUIET])
    assert (run.parent / "again" / "results.json").is_file()
    command(["audit", "~/t.csv"])
    command(["runs", "~/again", "--csv=~/runs.csv"])
    assert (run.parent / "runs.csv").is_file()
    assert not list(tmp_path.iterdir())


def test_files_of_others_are_not_replaced_by_a_command(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, last = tmp_path / "mine", run / "checkpoints" / "last.ckpt"
    mine.write_text("mine")
    edges = ["edges-eval", f"--pred={tmp_path}", f"--gt={tmp_path}"]
    for args in (
        ["runs", str(run), f"--csv={mine}"],
        ["export", str(last), f"--out={mine}"],
        [*edges, f"--out={mine}"],
    ):
        with pytest.raises(SystemExit):
            command(args)
        line = capsys.readouterr().err
        assert any(reason in line for reason in ("did not write it", " is there"))
    assert mine.read_text() == "mine" and torch.load(last, weights_only=True)


def test_what_changes_at_a_resume_is_reported(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = ["--data.batch_size=16", "--model.mixup=0.1", "--seed_everything=4", "--model.calibrate=true"]
    main(resume(run, tmp_path / "one", *changed, "--model.optimizer.lr=0.003", *QUIET))
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("from step "))
    for change in ("data.batch_size 16 in place of 64", "model.calibrate True in place of False", "seed_everything 4"):
        assert change in line
    assert "model.mixup 0.1 in place of 0.4" in line and "trainer.max_epochs 2 in place of 1" in line
    assert "lr" not in line and "callbacks" not in line and "run_dir" not in line and line.count(" in place of ") == 5
    content = yaml.safe_load((tmp_path / "one" / "config.yaml").read_text())
    assert content["stage"] == "fit" and content["data"]["init_args"]["batch_size"] == 16


def test_a_run_goes_into_its_own_folder_again_but_not_over_what_it_reads(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predict = [f"--ckpt_path={run / 'checkpoints' / 'last.ckpt'}", "--stage=predict", f"--run_dir={tmp_path}", *QUIET]
    main(predict)
    main(["-c", str(tmp_path / "config.yaml"), *predict])
    (tmp_path / "predictions.csv").write_text(before := (run.parent / "t.csv").read_text())
    line = said([*predict, f"--data.path={tmp_path / 'predictions.csv'}"], capsys)
    assert f"predictions.csv is read, and --run_dir {tmp_path} would write predictions.csv there" in line
    assert (tmp_path / "predictions.csv").read_text() == before
