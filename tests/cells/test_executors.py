"""Processes that are begun in place of others: they begin, and have the others' devices."""

from __future__ import annotations

import os
import time

import pytest

from ldl.cells import executors
from ldl.cells.executors import open_executor


def _visit(cells: int) -> list[tuple[int, str]]:
    """Which process does each of so many cells in turn, and with which device."""

    def grow() -> tuple[int, str]:
        # Longer than loky waits between two looks, and with memory that stays.
        time.sleep(1.1)
        vars(os)["held"] = [*vars(os).get("held", []), bytearray(os.urandom(1 << 22))]
        return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES", "")

    with open_executor(1) as executor:
        return [executor.submit(grow).result(timeout=60) for _ in range(cells)]


def test_a_process_that_has_grown_is_replaced_by_one_with_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psutil")  # by which loky sees it
    monkeypatch.setenv("LOKY_MAX_MEMORY_LEAK_SIZE", "1")
    monkeypatch.setattr(executors, "devices_of", lambda jobs, visible, count: ["7"])
    visited = _visit(3)
    assert len({process for process, _ in visited}) > 1 and {device for _, device in visited} == {"7"}


def test_a_process_may_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOKY_MAX_MEMORY_LEAK_SIZE", raising=False)
    with open_executor(1) as executor:
        assert float(executor.submit(os.getenv, "LOKY_MAX_MEMORY_LEAK_SIZE").result(timeout=60)) > 2**40
        assert (
            executor.submit(os.getenv, "OMP_NUM_THREADS").result(timeout=60)
            == executors.threads_of(1)["OMP_NUM_THREADS"]
        )
