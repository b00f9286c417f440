"""Jobs and their store: computed once, never half, and again after a loss."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from inline_jobs import InlineExecutor, run_inline

from ldl.errors import LDLError
from ldl.jobs import jobs
from ldl.jobs.jobs import Row, Store, Workers, devices_of, processors, threads_of


def compute(store: Store, *numbers: int) -> int:
    """Get results; returns how many were computed."""
    computed: list[int] = []
    for number in numbers:
        key = {"number": number, "kind": ["a"]}
        row = store.get(key, lambda: computed.append(1) or {"square": (number**2,)})  # noqa: B023
        assert row == {**key, "square": [number**2]}
    return len(computed)


def test_results_are_computed_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results"
    store = Store(path)
    assert not path.exists()
    assert compute(store, 1, 2) == 2 and compute(store, 1, 2, 3) == 1
    assert store.find({"kind": ["a"], "number": 2}) == store.rows[1] and store.find({"number": 2}) is None
    with pytest.raises(RuntimeError):
        store.get({"number": 4}, _fail)
    assert compute(Store(path), 1, 2, 3) == 0
    assert [row["number"] for row in Store(path).rows] == [1, 2, 3]


def _fail() -> Row:
    raise RuntimeError("stopped")


def test_half_a_file_and_errors_are_computed_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    compute(store, 1, 2)
    store.get({"number": 3, "kind": ["a"]}, lambda: {"error": "no"})
    whole = next(tmp_path.glob("*/results.json"))
    (whole.parent / ".results.json.tmp").write_text(whole.read_text()[:10])
    assert [row["number"] for row in Store(tmp_path).rows] == [1, 2]
    assert compute(Store(tmp_path), 1, 2, 3) == 1


@pytest.mark.parametrize("content", [b'{"number": 1', b"[1]", b"\xff"])
def test_a_damaged_result_is_named(tmp_path: Path, content: bytes) -> None:
    compute(Store(tmp_path), 1)
    path = next(tmp_path.glob("*/results.json"))
    path.write_bytes(content)
    with pytest.raises(LDLError, match=rf"{path} cannot be read: .*; remove it to compute this result again"):
        Store(tmp_path)


@pytest.mark.parametrize("kills", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_other_processes_compute_missing_results(tmp_path: Path, kills: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow case has real processes, of which one is killed."""

    def square(number: int) -> Row:
        if number == 4 and kills and not (tmp_path / "lost").exists():
            (tmp_path / "lost").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number < 0:
            raise ArithmeticError(f"no root of {number}")
        return {"square": number**2}

    if not kills:
        run_inline(monkeypatch)
    store, seen = Store(tmp_path), []
    store.get({"number": 1}, lambda: {"square": "as it was"})
    wanted = [({"number": number}, partial(square, number)) for number in (1, 2, -3, 4)]
    store.fill(wanted, Workers(2), seen.append)
    assert sorted(row["number"] for row in seen) == [2, 4]
    assert store.find({"number": -3}) == {"number": -3, "error": "ArithmeticError: no root of -3"}
    assert [row["square"] for row in Store(tmp_path).rows] == ["as it was", 4, 16]
    assert json.loads(next(tmp_path.glob("*/results.json")).read_text()) in store.rows


class LosingExecutor(InlineExecutor):
    """Loses the first submitted jobs of all executors."""

    losses = 0

    def submit(self, *args: Any, **options: Any) -> Future[Any]:
        if not type(self).losses:
            return super().submit(*args, **options)
        type(self).losses -= 1
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("a worker died"))
        return future


def test_lost_jobs_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def open_executor(*_: Any) -> Iterator[Executor]:
        yield LosingExecutor()

    monkeypatch.setattr(jobs, "open_executor", open_executor)
    found: dict[str, Any] = {}
    many = {str(number): partial(pow, number, 2) for number in range(4)}
    LosingExecutor.losses = 6
    assert Workers(2).run(many, found.__setitem__) == {} and found == {"0": 0, "1": 1, "2": 4, "3": 9}
    LosingExecutor.losses = 3
    with pytest.raises(LDLError, match="workers died 3 times before one of 0 finished"):
        Workers(2).run({"0": many["0"]})
    LosingExecutor.losses = 0


@pytest.mark.slow
def test_workers_have_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "devices_of", lambda *_: ["7"])
    with jobs.open_executor(1) as executor:
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


def test_dask_workers_get_the_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("LDL_DATA", "LDL_CACHE", "LDL_WEIGHTS")
    for name in names:
        monkeypatch.setenv(name, str(tmp_path))
    folders = jobs._folders()
    for name in names:
        monkeypatch.delenv(name)
    found = jobs._run_remotely(str(Path.cwd()), folders, lambda: [os.environ.get(name) for name in names])
    assert found == 3 * [str(tmp_path)]
    with pytest.raises(LDLError, match="does not see /nowhere; --scheduler needs a file system that all workers share"):
        jobs._run_remotely("/nowhere", {}, list)
