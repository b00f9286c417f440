"""Weights & Biases, for real and offline: what lies in its files."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from wandb.proto import wandb_internal_pb2

from ldl.cli import main
from ldl.running.tracking import resolve_mode


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
        assert (run.project, run.run_group, run.display_name) == ("tested", "digits", f"fold_{number}")
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


def test_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert resolve_mode("disabled") == "disabled"
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert resolve_mode("auto") == "offline"
    assert resolve_mode("online") == "online"
