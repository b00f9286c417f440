"""The digits' table from runs that are there, the table of ages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from benchmarks.ldlf import age, digits, layout


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


@pytest.mark.parametrize("sizes", [(7, 3, 4, 5, 20), (5, 2, 2, 9, 3)])
def test_both_layouts_compute_the_same(sizes: tuple[int, ...]) -> None:
    work = layout.problem(*sizes)
    for part in layout.PARTS:
        first, last = (work[part, way]() for way in layout.WAYS)
        torch.testing.assert_close(last, first, atol=1e-6, rtol=1e-5)
        assert first.numel() == 1 or first.std() > 1e-4


def test_layouts(command: Callable[..., str], page: Callable[[str], Path]) -> None:
    written = page("ldlf_layout")
    command(layout, "--quick", "--rounds", 1, "--page", written)
    rows = [line.split(" | ") for line in written.read_text().splitlines() if "leaf update" in line and ";" in line]
    assert len(rows) == 4 and all(float(row[-1].strip(" |")) > 0 for row in rows)
