"""Runs of ``train.py`` in processes that are forked once all is imported, so that a run that is killed costs little."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from pytorch_lightning.utilities import rank_zero_only

from ldl.cli import main
from ldl.data.loader import end_server

PATIENCE = 180.0
"""Seconds after which a run counts as one that hangs."""


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Group:
    """A process, forked to do some work, and all that it starts.

    Args:
        work: What it does.
        log: Gets what the processes say.
    """

    def __init__(self, work: Callable[[], Any], log: Path) -> None:
        self.mark = f"LDL_RUN_MARK={os.getpid()}-{free_port()}".encode()
        self.begun = time.monotonic()
        self.code: int | None = None
        self.leader = _fork(lambda: _group(work, log, self.mark))

    def kill(self, number: int) -> None:
        """Send all processes a signal, or the first alone those that launchers send it alone."""
        with contextlib.suppress(ProcessLookupError):
            (os.kill if number == signal.SIGTERM else os.killpg)(self.leader, number)

    def wait(self, seconds: float = PATIENCE) -> int | None:
        """The exit code, minus the signal of a run that was killed; None if the run goes on for longer."""
        deadline = time.monotonic() + seconds
        while self.code is None and time.monotonic() < deadline:
            ended, status = os.waitpid(self.leader, os.WNOHANG)
            if ended:
                self.code = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.01)
        return self.code

    def end(self, seconds: float = 20.0) -> bool:
        """Wait until no process of the run is left; kill those that stay. Whether none stayed."""
        deadline = time.monotonic() + seconds
        while self._left():
            if time.monotonic() > deadline:
                self.kill_all()
                return False
            time.sleep(0.02)
        return True

    def kill_all(self) -> None:
        """End all processes at once, as a machine does that is lost."""
        for process in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _left(self) -> list[int]:
        """Processes of the group, and those that it has started in others: loader processes and their server."""
        found = []
        for place in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                process = int(place.name)
                ours = os.getpgid(process) == self.leader or self.mark in (place / "environ").read_bytes().split(b"\0")
                # What has ended after its parent is for the system to clear away.
                if ours and "\nState:\tZ" not in (place / "status").read_text(encoding="utf-8"):
                    found.append(process)
        return found


class Run(Group):
    """A run of one or several processes, which are a group of their own.

    Args:
        arguments: The command line.
        log: Gets what the processes say.
        processes: How many.
        then: Command lines that the same processes run afterwards.
    """

    def __init__(self, arguments: list[str], log: Path, processes: int = 1, *then: list[str]) -> None:
        port = free_port()
        super().__init__(lambda: _ranks([arguments, *then], processes, port), log)


def _fork(work: Callable[[], Any]) -> int:
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code: Any = 0
    # A server of loader processes is that of the process which has started it.
    forkserver._forkserver.__init__()  # type: ignore[misc]
    # What else this process does at its end, such as removing temporary folders, is its own.
    atexit._clear()
    atexit.register(end_server)
    try:
        work()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
        code = 1
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    os._exit(code)


def _group(work: Callable[[], Any], log: Path, mark: bytes) -> None:
    os.setsid()
    os.environ["LDL_RUN_MARK"] = mark.decode().partition("=")[2]
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.stdout, sys.stderr = (os.fdopen(place, "w", buffering=1) for place in (1, 2))
    work()


def _ranks(commands: list[list[str]], processes: int, port: int) -> None:
    several = ["--trainer.devices", str(processes), "--trainer.strategy", "ddp"] if processes > 1 else []
    if several:
        _share(processes, port)
    for arguments in commands:
        main([*arguments, *several])


def _share(processes: int, port: int) -> None:
    """Fork the other ranks."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), NODE_RANK="0", WORLD_SIZE=str(processes))
    rank = next((rank for rank in range(1, processes) if os.fork() == 0), 0)
    os.environ["LOCAL_RANK"] = str(rank)
    rank_zero_only.rank = rank  # type: ignore[attr-defined]
