"""The evidence that public features are histograms of local binary patterns."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.tables import mirror
from ldl.methods.lbp import mirrored_bins, moved_bins


def test_changes_are_what_they_are_called() -> None:
    kinds = mirror.changes(8)
    assert [len(every) for every in kinds.values()] == [1, 1, 6, 7]
    np.testing.assert_array_equal(moved_bins(kinds["mirrored left to right"][0]), mirrored_bins(59))
    up, right = 2, 0
    assert kinds["mirrored left to right"][0][up] == up and kinds["mirrored left to right"][0][right] == 4
    assert kinds["mirrored top to bottom"][0][right] == right and kinds["mirrored top to bottom"][0][up] == 6
    assert all(sorted(moved) == list(range(8)) for every in kinds.values() for moved in every)


def test_features_of_a_symmetric_picture_are_alike() -> None:
    random = np.random.default_rng(0)
    half = random.random((50, 59))
    apart, correlation = mirror.alike(half + half[:, mirrored_bins(59)], mirrored_bins(59))
    assert apart < 1e-9 and abs(correlation - 1) < 1e-9
    apart, correlation = mirror.alike(half * random.random(59), mirrored_bins(59))
    assert apart > 0.3 and abs(correlation) < 0.1


def test_page(ldl_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- begin mirror -->\n<!-- end mirror -->\n")
    monkeypatch.setenv("LDL_DATA", str(ldl_data))
    monkeypatch.setattr(mirror, "HEADS", {"MaxEnt": {"class_path": "MaxEnt", "init_args": {"l2": 0.01}}})
    monkeypatch.setattr(sys, "argv", ["mirror.py", "--quick", "--threads", "1", "--page", str(page)])
    mirror.main()
    rows = {line.split(" | ")[0][2:]: line.split(" | ")[1:] for line in page.read_text().splitlines() if "|" in line}
    apart = {kind: [float(rows[kind][place].strip(" |")) for place in (1, 2, 3)] for kind in mirror.changes(16)}
    first = apart.pop("mirrored left to right")
    # Its features vary most alike in both sets; in SBU_3DFE their means are nearest, too.
    assert all(first[0] > other[0] and first[1] < other[1] and first[2] > other[2] for other in apart.values())
    assert rows["MaxEnt"] != rows["MaxEnt, mirrored"] and "±" in rows["MaxEnt"][0]
