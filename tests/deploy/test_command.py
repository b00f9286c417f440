"""``ldl export`` and ``ldl demo``: one line of result or of error."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from ldl.command.console import command


@pytest.mark.slow
def test_nothing_is_replaced_unless_told_so(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint, out = str(run / "checkpoints" / "last.ckpt"), str(run / "another.onnx")
    command(["export", checkpoint, "--to", "onnx", "--out", out])
    line = capsys.readouterr().out
    assert line.startswith(f"wrote {out}, 0.1") and "on 72 of 72 random rows" in line and line.count("\n") == 1
    with pytest.raises(SystemExit):
        command(["export", checkpoint, "--to", "onnx", "--out", out])
    assert "is there already; give --force" in capsys.readouterr().err
    command(["export", checkpoint, "--out", out, "--force"])
    metadata = {entry.key: entry.value for entry in onnx.load(out).metadata_props}
    assert metadata["head"] == "MaxEnt"


def test_the_command_refuses_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in ((["gone.ckpt"], "no checkpoint at gone.ckpt"), (["a", "--port", "99999"], "0..65535")):
        with pytest.raises(SystemExit):
            command(["demo", *arguments])
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
