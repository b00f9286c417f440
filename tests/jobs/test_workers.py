"""Workers run the jobs of lost processes again, and Dask's get the folders of the process that started them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakes.inline_executor import InlineExecutor

from ldl.errors import LDLError
from ldl.jobs import workers
from ldl.jobs.workers import Workers


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

    monkeypatch.setattr(workers, "open_executor", open_executor)
    found: dict[str, Any] = {}
    many = {str(number): partial(pow, number, 2) for number in range(4)}
    LosingExecutor.losses = 6
    assert Workers(2).run(many, found.__setitem__) == {} and found == {"0": 0, "1": 1, "2": 4, "3": 9}
    LosingExecutor.losses = 3
    with pytest.raises(LDLError, match="workers died 3 times before one of 0 finished"):
        Workers(2).run({"0": many["0"]})
    LosingExecutor.losses = 0


def test_dask_workers_get_the_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("LDL_DATA", "LDL_CACHE", "LDL_WEIGHTS")
    for name in names:
        monkeypatch.setenv(name, str(tmp_path))
    folders = workers._folders()
    for name in names:
        monkeypatch.delenv(name)
    found = workers._run_remotely(str(Path.cwd()), folders, lambda: [os.environ.get(name) for name in names])
    assert found == 3 * [str(tmp_path)]
    with pytest.raises(LDLError, match="does not see /nowhere; --scheduler needs a file system that all workers share"):
        workers._run_remotely("/nowhere", {}, list)
