"""The digits' table from runs that are there, the table of ages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.ldlf import age, digits


def test_digits(command: Callable[..., str], tmp_path: Path, page: Callable[[str], Path]) -> None:
    for head, config in digits.HEADS.values():
        assert config.is_file()
        for seed in range(2):
            folder = tmp_path / "out" / f"{head}_{seed}"
            folder.mkdir(parents=True)
            (folder / "results.json").write_text(json.dumps({"mean": {"kl": 0.1, "mae": 8 + seed, "cs5": 0.9}}))
    text = command(digits, "--seeds", 2, "--out", tmp_path / "out", "--page", page("digits"))
    assert text == (tmp_path / "out" / "table.md").read_text()
    assert "| LDLF | 0.100 ± 0.000 | 8.500 ± 0.707 | 0.900 ± 0.000 |" in text
    assert text in (tmp_path / "page.md").read_text() and "over 2 seeds" in (tmp_path / "page.md").read_text()


def test_ages() -> None:
    figures = {
        "ldlf": {"runs": [{"mae": 6.0}, {"mae": 7.0}], "seconds": 12.4},
        "ridge": {"runs": [{"mae": 5.0}], "seconds": 0.0},
    }
    ldlf, ridge = age.tabulate(figures)
    assert ldlf[:3] == ["ldlf", "6.500 ± 0.707", "-"] and ldlf[-1] == "12"
    assert ridge[:3] == ["ridge", "5.000", "-"] and ridge[-1] == "-"
