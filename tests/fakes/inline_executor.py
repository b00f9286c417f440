"""An executor that runs jobs at once in this process, for tests of code that hands them to others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

import cloudpickle
import pytest


class InlineExecutor(Executor):
    """Run each job when it is submitted; work and result are pickled, as for other processes."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            work = cloudpickle.loads(cloudpickle.dumps((function, args, options)))
            future.set_result(cloudpickle.loads(cloudpickle.dumps(work[0](*work[1], **work[2]))))
        except Exception as error:
            future.set_exception(error)
        return future


def run_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the executors of jobs."""

    @contextmanager
    def open_executor(jobs: int, scheduler: str | None) -> Iterator[Executor]:
        yield InlineExecutor()

    monkeypatch.setattr("ldl.jobs.workers.open_executor", open_executor)
