"""The cases of ``benchmarks/speed.py`` run on the heads as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.speed_cases import CASES, OURS, heads

HEADS = [name for name, function in CASES.items() if function.__module__ == heads.__name__]


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADS)
def test_a_case_runs(name: str) -> None:
    if name == "structured_edges" and not (Path(os.environ.get("LDL_DATA") or "data") / "BSDS500").is_dir():
        pytest.skip("BSDS500 is not below LDL_DATA")
    CASES[name]()[OURS]()
