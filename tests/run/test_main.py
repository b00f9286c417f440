"""A process that torchrun started ends with its agent, even where that is killed alone."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pytest

from ldl.jobs import executors
from ldl.run import main as training

FORK = get_context("fork")


def _agent(pipe: Connection) -> None:
    process = FORK.Process(target=_process, args=(pipe,))
    process.start()
    process.join()


def _process(pipe: Connection) -> None:
    executors.PARENT_CHECK_SECONDS = 0.02
    with pytest.raises(SystemExit):
        training.main(["--help.wandb"])
    pipe.send(os.getpid())
    time.sleep(60)


@pytest.mark.parametrize("by_torchrun", [True, False])
def test_it_ends_with_its_agent(by_torchrun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_torchrun:
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    else:
        monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    ours, theirs = FORK.Pipe()
    agent = FORK.Process(target=_agent, args=(theirs,))
    agent.start()
    theirs.close()
    process = ours.recv()
    assert not ours.poll(0.1)
    agent.kill()
    agent.join()
    # The other end of the pipe is closed when nobody is left who has it.
    assert ours.poll(10 if by_torchrun else 0.3) == by_torchrun
    if not by_torchrun:
        os.kill(process, signal.SIGKILL)
    assert ours.poll(10)
