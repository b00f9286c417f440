"""``ldl edges-eval`` writes what the module of the benchmark does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes import edge_images

from ldl.command.console import command
from ldl.edges.evaluation import main


def test_the_subcommand_is_the_module(tmp_path: Path) -> None:
    pred, gt = edge_images.maps_and_truth(tmp_path)
    options = ["--pred", str(pred), "--gt", str(gt), "--thresholds", "3"]
    command(["edges-eval", *options, "--out", str(tmp_path / "a.json")])
    main([*options, "--out", str(tmp_path / "b.json")])
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads((tmp_path / "b.json").read_text())


def test_a_mistake_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(["edges-eval", "--pred", "none", "--gt", "none", "--out", str(tmp_path / "a.json")])
    message = capsys.readouterr().err
    assert "none is no folder" in message and message.count("\n") == 1
