"""Processes whose parent is killed."""

from __future__ import annotations

import os
import signal
import time

from ldl.cells.orphans import TICK, end_with


def test_a_process_ends_with_the_one_that_started_it() -> None:
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        if os.fork() == 0:
            end_with(os.getppid())
            os.write(write, str(os.getpid()).encode())
        time.sleep(60)
        os._exit(0)
    child = int(os.read(read, 20))
    time.sleep(TICK + 0.3)
    os.kill(child, 0)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    os.close(write)
    killed = time.monotonic()
    # The child has the other end of the pipe, as long as it is there.
    assert os.read(read, 1) == b"" and time.monotonic() - killed < 30
