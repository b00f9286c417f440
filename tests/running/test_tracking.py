"""Weights & Biases, for real and offline: what lies in its files."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest
from wandb.proto import wandb_internal_pb2

from ldl.cli import main
from ldl.running.metrics_file import MetricsFile
from ldl.running.tracking import WandbOptions, finish, make_loggers, resolve_mode

GROUP = "digits_RotatedDigits_Softmax"


def _records(run_dir: Path) -> list[Any]:
    """The records of an offline run: protobuf messages in a leveldb log, blocks of 32 KiB behind a 7-byte header."""
    (path,) = run_dir.glob("wandb/offline-run-*/run-*.wandb")
    data = path.read_bytes()
    records, part, position = [], b"", 7
    while position + 7 <= len(data):
        if (left := 32768 - position % 32768) < 7:
            position += left
            continue
        length, kind = struct.unpack("<HB", data[position + 4 : position + 7])
        if kind == 0:
            break
        part = (b"" if kind in (1, 2) else part) + data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(part)
            records.append(record)
    return records


def test_crossval_is_a_group(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    main(
        ["--data.turns=1", "--data.folds=2", "--trainer.max_epochs=1", "--trainer.enable_progress_bar=false"]
        + [
            "--model.head=Softmax",
            "--stage=crossval",
            "--wandb.mode=offline",
            "--wandb.project=tested",
            "--run_dir",
            str(folder),
        ]
    )
    for number in range(2):
        records = _records(folder / f"fold_{number}")
        (run,) = [record.run for record in records if record.WhichOneof("record_type") == "run"][:1]
        assert (run.project, run.run_group, run.display_name) == ("tested", GROUP, f"{GROUP}_fold_{number}")
        config = {update.key: update.value_json for update in run.config.update}
        assert '"Softmax"' in config["model"] or "ldl.heads.Softmax" in config["model"]
        assert f'"fold": {number}' in config["data"].replace('":', '": ').replace("  ", " ")
        logged = {
            item.key or item.nested_key[0]
            for record in records
            if record.WhichOneof("record_type") == "history"
            for item in record.history.item
        }
        assert {"train_loss", "val_kl", "test_kl", "predictions", "charts/distributions"} <= logged


@pytest.mark.parametrize("of_fold", [False, True])
def test_what_is_said_of_an_offline_run_finds_it(
    of_fold: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = WandbOptions(mode="offline", group="several")
    logger = make_loggers(tmp_path / "run" / "fold_0", options, {}, of_fold=of_fold)[1]
    try:
        lies = Path(logger.experiment.dir).parent
    finally:
        finish([logger])
    place = capsys.readouterr().out.partition("`wandb sync ")[2].partition("`")[0]
    assert list(Path("/").glob(place.removeprefix("/"))) == [lies] and ("*" in place) == of_fold


def test_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert resolve_mode("disabled") == "disabled"
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert resolve_mode("auto") == "offline"
    assert resolve_mode("online") == "online"


def test_run_that_goes_on_in_its_directory_stays_one_run(tmp_path: Path) -> None:
    for name in ("run-20260102_000000-second", "offline-run-20260101_000000-first", "latest-run"):
        (tmp_path / "wandb" / name).mkdir(parents=True)
    ids = {
        step: make_loggers(tmp_path, WandbOptions(mode="offline"), {}, first_step=step)[1].version for step in (0, 7)
    }
    assert ids == {0: None, 7: "second"}


def test_metrics_file_survives_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start of a resumed run, in the middle of a row, and while a new column is added."""
    path = tmp_path / "metrics.csv"
    first = MetricsFile(tmp_path)
    for step in range(4):
        first.log_metrics({"loss": step / 10}, step)
    whole = path.read_text()
    assert whole.splitlines() == ["loss,step", "0.0,0", "0.1,1", "0.2,2", "0.3,3"]

    path.write_text(whole + "0.4,1")  # of step 13, cut short
    MetricsFile(tmp_path, first_step=3).experiment  # noqa: B018
    assert path.read_text().splitlines() == ["loss,step", "0.0,0", "0.1,1", "0.2,2"]

    def kill(*_: Any) -> None:
        raise KeyboardInterrupt

    resumed, before = MetricsFile(tmp_path, first_step=2), path.read_text()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "replace", kill)
        resumed.log_metrics({"loss": 0.25}, 2)
    assert path.read_text() == before
    resumed = MetricsFile(tmp_path, first_step=2)
    resumed.log_metrics({"loss": 0.25}, 2)
    before = path.read_text()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "replace", kill)
        resumed.log_metrics({"val_kl": 1.5}, 2)
    assert path.read_text() == before
    MetricsFile(tmp_path, first_step=3).log_metrics({"val_kl": 1.75}, 2)
    assert path.read_text().splitlines() == ["loss,step,val_kl", "0.0,0,", "0.1,1,", "0.25,2,", ",2,1.75"]
    MetricsFile(tmp_path).experiment  # noqa: B018
    assert not path.exists()
