"""Jobs and the store of their results: one file that a person can read for each job."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ldl.checkpoint import replacing
from ldl.collective import process_rank
from ldl.errors import LDLError
from ldl.jobs.workers import Workers

Key = dict[str, Any]
"""Whatever decides a result, in values of JSON."""
Result = dict[str, Any]
"""The result of a job in values of JSON, or its ``error``."""

JOBS_FOLDER = "jobs"
"""Folder of a store in a run directory."""
OLD_JOBS_FOLDER = "cells"
"""The same in version 0.2.0, which wrote the key of a fold as ``cell``, and other keys among the results."""


@dataclass(frozen=True)
class Job:
    """Work that is done once for its key.

    Attributes:
        key: Whatever decides the result; None for a result that is not read again.
        run: Function that returns the result; it is pickled for other processes.
        name: Name of the job and, with ``_`` for spaces, of its folder; by default a text and a digest of the key.
    """

    key: Key | None
    run: Callable[[], Result]
    name: str = ""

    def __str__(self) -> str:
        return self.name or describe(self.key or {})

    @property
    def folder(self) -> str:
        """Name of the job's folder in a store."""
        return self.name.replace(" ", "_") or name_of(self.key or {})

    def entry(self, result: Result) -> dict[str, Any]:
        """Return the content of the file of a result."""
        return result if self.key is None else {"key": self.key, **result}


class Store:
    """Results of jobs on disk, each in ``results.json`` in the folder of its job. Processes may share a store.

    A file is written atomically when its job is finished. Another store runs jobs with an ``error`` again.

    Args:
        folder: Folder of the jobs; it may not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._results: dict[str, Result] = {}

    @property
    def rows(self) -> list[Result]:
        """A row of key and result for every job without an error, in the order in which they were computed.

        Raises LDLError for a damaged file.
        """
        paths = [path for folder in self._folders for path in folder.glob("*/results.json")]
        paths.sort(key=lambda path: (path.stat().st_mtime_ns, path))
        rows = [{**key, **result} for key, result in map(_read, paths)]
        return [row for row in rows if "error" not in row]

    def find(self, job: Job) -> Result | None:
        """Return the result of a job, or None.

        Raises:
            LDLError: the file of the job is damaged, or has the result of another key.
        """
        if job.folder in self._results or job.key is None:
            return self._results.get(job.folder)
        path = next(
            (path for folder in self._folders if (path := folder / job.folder / "results.json").is_file()), None
        )
        if path is None:
            return None
        key, result = _read(path)
        other = [name for name in job.key if key.get(name) != job.key[name]] if job.name else []
        if other:
            raise LDLError(
                f"{path.parent} has a result of other {' and '.join(other)}; give another --run_dir, or use the same "
                "command as before"
            )
        if "error" in result:
            return None
        return self._results.setdefault(job.folder, result)

    def get(self, key: Key, run: Callable[[], Result]) -> Result:
        """Return a key and its result as a row; if the result is missing, run its job and write it."""
        job = Job(key, run)
        result = self.find(job)
        return {**key, **(self.compute(job) if result is None else result)}

    def fill(
        self, jobs: Iterable[Job], workers: Workers, on_result: Callable[[Result], None] = lambda result: None
    ) -> dict[str, str]:
        """Run the jobs whose results are missing, and return the errors of those that failed in other processes.

        The process that runs a job writes its result. The errors are by the names of the jobs; :meth:`find` returns
        them too.

        Args:
            jobs: The jobs.
            workers: The processes.
            on_result: Function of each result that was computed.

        Raises:
            LDLError: a job raised one, or workers die repeatedly.
        """
        missing = {str(job): job for job in jobs if self.find(job) is None}
        remote = Store(self.folder.absolute())

        def add(name: str, result: Result) -> None:
            self._results[missing[name].folder] = result
            on_result(result)

        errors = workers.run({name: partial(remote.compute, job) for name, job in missing.items()}, add)
        for name, reason in errors.items():
            self._results[missing[name].folder] = {"error": reason}
        return errors

    def compute(self, job: Job) -> Result:
        """Run a job and write its result, unless the job itself has written it."""
        result = job.run()
        written = self.find(job)
        return self.write(job, result) if written is None else written

    def write(self, job: Job, result: Result) -> Result:
        """Write the result of a job in the first process, and return it as it will be read: tuples become lists."""
        text = json.dumps(job.entry(result), indent=2)
        if process_rank() == 0:
            with replacing(self.folder / job.folder / "results.json") as file:
                file.write(f"{text}\n".encode())
        content: Result = json.loads(json.dumps(result))
        self._results[job.folder] = content
        return content

    @property
    def _folders(self) -> tuple[Path, ...]:
        is_current = self.folder.name == JOBS_FOLDER
        return (self.folder.with_name(OLD_JOBS_FOLDER), self.folder) if is_current else (self.folder,)


def _read(path: Path) -> tuple[Key, Result]:
    try:
        result = dict(json.loads(path.read_text(encoding="utf-8")))
        key = dict(result.pop("key", None) or result.pop("cell", {}))
    except (OSError, ValueError, TypeError) as error:
        raise LDLError(f"{path} cannot be read: {error}; remove it to compute this result again") from None
    return key, result


def digest(content: Any, digits: int = 16) -> str:
    """Return a digest of anything that JSON can express."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:digits]


def name_of(key: Key) -> str:
    """Return the name of the folder of a key."""
    return digest(key, 20)


def describe(key: Key) -> str:
    """Return a key as text for messages."""
    return ", ".join(f"{name} {value}" for name, value in key.items())
