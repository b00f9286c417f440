"""Hundreds of command lines with one mistake: each ends in one line that names it, and leaves no files.

The few that are accepted end with finite results. Every eighth case runs by default, the others with ``-m slow``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_inputs.cases import CLASSES
from bad_inputs.harness import Case, outcome

CASES: dict[str, Case] = {name: case for cases in CLASSES.values() for name, case in cases.items()}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if number % 8 else []) for number, name in enumerate(CASES)]
)
def test_it_ends_in_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: None) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    case = CASES[name]
    ended = outcome(case, tmp_path)
    assert ended.kind == ("refused" if case.says else "accepted"), ended.line
    assert not [part for part in case.says.split("|") if part not in ended.line], ended.line
    assert len(ended.line) < 600
    assert not (tmp_path / "PWNED").exists()
