"""The benchmark of intervals, on sets that are made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.uncertainty import coverage
from benchmarks.uncertainty.measures import measure, one_row_a_group, plain
from benchmarks.uncertainty.sets import NOMINAL, Valued
from ldl.cells.store import Store
from ldl.heads import MaxEnt
from ldl.labels import LabelSpace

LINE, NAMES = LabelSpace.ordinal(range(5)), LabelSpace.nominal(list("abc"))


def ages() -> Valued:
    rng = np.random.default_rng(0)
    features, persons = torch.tensor(rng.normal(size=(150, 3)), dtype=torch.float32), rng.integers(0, 60, 150)
    value = (features[:, 0].numpy() + 2 + 0.3 * rng.normal(size=150)).clip(0, 4)
    return Valued(features, LINE.encode(torch.tensor(value), 1.0).float(), value, LINE, persons)


def names() -> Valued:
    rng = np.random.default_rng(0)
    target = rng.dirichlet(np.ones(3), 60)
    return Valued(torch.randn(60, 3), torch.tensor(target, dtype=torch.float32), target, NAMES)


def test_it_measures_every_way_and_writes_its_blocks(
    command: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage, "VALUED", {"ages": ages})
    monkeypatch.setattr(coverage, "NOMINAL", {"names": names})
    monkeypatch.setattr(coverage, "HEADS", {"MaxEnt": lambda: MaxEnt(iterations=5)})
    page = tmp_path / "page.md"
    blocks = ("coverage", "label_sets", "coverage_groups")
    page.write_text("".join(f"<!-- begin {block} -->\n<!-- end {block} -->\n" for block in blocks))
    arguments = ["--splits", 2, "--out", tmp_path / "out", "--page", page]
    command(coverage, *arguments)
    text = page.read_text()
    assert all(way in text for way in coverage.WAYS.values()) and "| names | MaxEnt |" in text
    before = Store(tmp_path / "out" / "cells").rows
    command(coverage, *arguments, "--report")
    assert page.read_text() == text and Store(tmp_path / "out" / "cells").rows == before
    monkeypatch.setattr(coverage, "HEADS", {"MaxEnt": lambda: MaxEnt(iterations=6)})
    command(coverage, *arguments, "--report")
    assert page.read_text() == text, "cells of other settings were taken, or blocks emptied"


def test_persons_of_tables_are_kept_apart(ldl_data: Path) -> None:
    table = NOMINAL["SJAFFE"]()
    assert table.groups is not None and len(set(table.groups)) == 10
    assert table.scaling == "standard" and 0 < table.features.min() < table.features.max() < 1


def test_parts_of_a_split_share_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    table, parts = ages(), []
    monkeypatch.setattr(coverage, "grouped_ways", lambda *given: parts.append(given[3]) or {})
    monkeypatch.setattr(coverage, "HEADS", {"MaxEnt": lambda: MaxEnt(iterations=2)})
    coverage.evaluate(table, "MaxEnt", 0)
    assert table.groups is not None
    owners = [set(table.groups[part]) for part in parts[0]]
    assert sum(map(len, parts[0])) == 150 and not (
        owners[0] & owners[1] or owners[0] & owners[2] or owners[1] & owners[2]
    )


def test_measures() -> None:
    ends, truth = np.array([[0.0, 2], [1, 2], [3, 4]]), np.array([2.0, 0.5, 3.5])
    figures = measure(ends, truth, np.array([0, 1, 1]))
    assert figures == pytest.approx({"coverage": 2 / 3, "width": 4 / 3, "by_group": 0.75})
    sets = np.array([[True, False], [True, True]])
    assert measure(sets, np.array([[0.3, 0.7], [0.5, 0.5]]), None) == pytest.approx({"coverage": 0.65, "width": 1.5})
    assert plain(NAMES, np.array([[0.5, 0.3, 0.2]]), 0.7).tolist() == [[True, True, False]]
    assert plain(LINE, np.full((1, 5), 0.2), 0.6).tolist()[0] == pytest.approx([0.5, 3.5], abs=1e-4)
    rows = one_row_a_group(np.array([5, 5, 7]), np.random.default_rng(0))
    assert rows[0] in (0, 1) and rows[1] == 2
