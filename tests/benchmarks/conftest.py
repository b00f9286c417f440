"""Scripts run in the test process, on made-up data."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.io

Command = Callable[..., str]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the main function of a script in an empty folder; returns what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(script: ModuleType, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [f"{script.__name__}.py", *map(str, arguments)])
        capsys.readouterr()
        script.main()
        return capsys.readouterr().out

    return run


@pytest.fixture
def small_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """LDL_DATA with two small sets under names of real ones."""
    (tmp_path / "ldl").mkdir()
    for seed, name in enumerate(("SJAFFE", "Yeast_spoem")):
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(60, 5))
        target = np.exp(features @ rng.normal(size=(5, 4)))
        matrices = {"features": features, "labels": target / target.sum(1, keepdims=True)}
        scipy.io.savemat(tmp_path / "ldl" / f"{name}.mat", matrices)
    monkeypatch.setenv("LDL_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def page(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a page that has a block."""

    def make(block: str) -> Path:
        path = tmp_path / "page.md"
        path.write_text(f"before\n<!-- begin {block} -->\nstale\n<!-- end {block} -->\nafter\n", encoding="utf-8")
        return path

    return make
