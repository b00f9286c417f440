"""The benchmark of what runs print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.console import lines
from ldl.errors import LDLError


def test_table_is_of_the_runs(command: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One real run of an epoch, of one checkout."""
    small = ["-c", "configs/runs/tabular/meanpredictor.yaml", "--data.val_fraction=0"]
    monkeypatch.setattr(lines, "runs", lambda table, epochs: {"one": [*small, f"--data.path={table}"]})
    page = tmp_path / "page.md"
    page.write_text("<!-- begin console -->\n<!-- end console -->\n")
    out = command(lines, "--turns", 1, "--page", page)
    cells = [cell.strip() for cell in page.read_text().splitlines()[-2].split("|")[1:-1]]
    assert cells[0] == "one" and 10 < int(cells[1]) <= 60 and cells[2] == "1" and float(cells[3]) > 1
    assert cells[1] in out and float(cells[5]) > 0


def test_refusals(command: Callable[..., str], tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=r"has no train\.py"):
        command(lines, "--before", tmp_path)
    with pytest.raises(LDLError, match="--turns 0"):
        command(lines, "--turns", 0)
    with pytest.raises(LDLError, match="ended with 2"):
        lines.measure(lines.ROOT, ["--nonsense"])
