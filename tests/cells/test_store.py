"""The store: measured once, never half, failures again, by any process."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from ldl.cells.coordinator import Workers
from ldl.cells.store import Row, Store
from ldl.errors import LDLError


def _count(store: Store, *numbers: int) -> int:
    """How many of the cells are measured, and not read."""
    measured = []
    for number in numbers:
        row = store.cell({"number": number, "kind": ["a"]}, lambda: measured.append(1) or {"square": (number**2,)})  # noqa: B023
        assert row == {"number": number, "kind": ["a"], "square": [number**2]}
    return len(measured)


def test_cells_are_measured_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cells"
    store = Store(path)
    assert not path.exists()
    assert _count(store, 1, 2) == 2 and _count(store, 1, 2, 3) == 1
    assert _count(Store(path), 1, 2, 3) == 0
    assert [row["number"] for row in Store(path).rows] == [1, 2, 3]
    assert len(list(path.glob("*/results.json"))) == 3


def test_a_cell_is_found_by_what_names_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _count(store, 4)
    assert store.find({"kind": ["a"], "number": 4}) == store.rows[0]
    assert store.find({"number": 4}) is None and store.find({"number": 4, "kind": ["b"]}) is None


def test_what_was_measured_before_an_error_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _count(store, 1)

    def fail() -> Row:
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        store.cell({"number": 2}, fail)
    assert _count(Store(tmp_path), 1, 2) == 1


def test_half_a_file_and_failures_are_measured_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _count(store, 1, 2)
    store.cell({"number": 3, "kind": ["a"]}, lambda: {"error": "no"})
    assert store.find({"number": 3, "kind": ["a"]}) is not None
    whole = next(tmp_path.glob("*/results.json"))
    (whole.parent / ".results.json.tmp").write_text(whole.read_text()[:10])
    assert [row["number"] for row in Store(tmp_path).rows] == [1, 2]
    assert _count(Store(tmp_path), 1, 2, 3) == 1


def test_other_processes_measure_what_is_missing(tmp_path: Path) -> None:
    def square(number: int) -> Row:
        if number == 4 and not (tmp_path / "lost").exists():
            (tmp_path / "lost").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number < 0:
            raise ArithmeticError(f"no root of {number}")
        return {"square": number**2}

    store, seen = Store(tmp_path), []
    store.cell({"number": 1}, lambda: {"square": "as it was"})
    wanted = [({"number": number}, partial(square, number)) for number in (1, 2, -3, 4)]
    store.fill(wanted, Workers(1), seen.append)
    assert sorted(row["number"] for row in seen) == [2, 4]
    assert store.find({"number": -3}) == {"number": -3, "error": "ArithmeticError: no root of -3"}
    assert [row["square"] for row in Store(tmp_path).rows] == ["as it was", 4, 16]
    assert json.loads(next(tmp_path.glob("*/results.json")).read_text()) in store.rows


@pytest.mark.parametrize("content", [b'{"number": 1', b"[1]", b"\xff", b""])
def test_a_damaged_cell_is_named(tmp_path: Path, content: bytes) -> None:
    _count(Store(tmp_path), 1)
    path = next(tmp_path.glob("*/results.json"))
    path.write_bytes(content)
    with pytest.raises(LDLError, match=rf"{path} cannot be read: .*; remove it, and the cell is measured again"):
        Store(tmp_path)
