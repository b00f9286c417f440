"""What ``ldl runs`` prints, and the results of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ldl.command.console import command


def list_runs(capsys: pytest.CaptureFixture[str], *args: Any) -> list[str]:
    """Return the lines that ``ldl runs`` prints."""
    capsys.readouterr()
    command(["runs", *map(str, args)])
    return capsys.readouterr().out.splitlines()


def read_results(run: Path) -> Any:
    """Return the content of the ``results.json`` of a run."""
    return json.loads((run / "results.json").read_text())
