"""Processes share the threads and the GPUs of the machine."""

from __future__ import annotations

import os

import pytest

from ldl.jobs import executors
from ldl.jobs.executors import devices_of, processors, threads_of


@pytest.mark.slow
def test_workers_have_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "devices_of", lambda *_: ["7"])
    with executors.open_executor(1) as executor:
        found = [
            executor.submit(os.getenv, name).result(timeout=60) for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
        ]
    assert found == [threads_of(1)["OMP_NUM_THREADS"], "7"]


def test_threads_and_gpus_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices_of(4, None, 3) == ["0", "1", "2", "0"]
    assert devices_of(2, "GPU-a,5", 2) == ["GPU-a", "5"]
    assert devices_of(2, None, 0) == ["", ""]
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert threads_of(3)["OMP_NUM_THREADS"] == "2" and threads_of(20)["OMP_NUM_THREADS"] == "1"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux binds processes")
def test_processors_are_those_that_the_process_may_use() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert processors() == 1
    finally:
        os.sched_setaffinity(0, before)
