"""The store: measured once, never half, failures again."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldl.cells.store import Row, Store


def _count(store: Store, *numbers: int) -> int:
    """How many of the cells are measured, and not read."""
    measured = []
    for number in numbers:
        row = store.cell({"number": number, "kind": ["a"]}, lambda: measured.append(1) or {"square": (number**2,)})  # noqa: B023
        assert row == {"number": number, "kind": ["a"], "square": [number**2]}
    return len(measured)


def test_cells_are_measured_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cells.jsonl"
    store = Store(path)
    assert not path.exists()
    assert _count(store, 1, 2) == 2 and _count(store, 1, 2, 3) == 1
    assert _count(Store(path), 1, 2, 3) == 0
    assert [row["number"] for row in Store(path).rows] == [1, 2, 3]


def test_a_cell_is_found_by_what_names_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "cells.jsonl")
    _count(store, 4)
    assert store.find({"number": 4}) == store.rows[0] and store.find({"number": 5}) is None
    assert store.find({"number": 4, "kind": ["b"]}) is None


def test_what_was_measured_before_an_error_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    store = Store(path)
    _count(store, 1)

    def fail() -> Row:
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        store.cell({"number": 2}, fail)
    assert _count(Store(path), 1, 2) == 1


def test_half_a_line_and_failures_are_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    store = Store(path)
    _count(store, 1, 2)
    store.cell({"number": 3}, lambda: {"error": "no"})
    text = path.read_text()
    path.write_text(text + text[:10])
    assert [row["number"] for row in Store(path).rows] == [1, 2]
    assert path.read_text().count("\n") == 2 and list(tmp_path.iterdir()) == [path]
    assert _count(Store(path), 1, 2, 3) == 1
