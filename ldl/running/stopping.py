"""A run that is told to end, by Ctrl-C, SIGTERM, SIGHUP or SLURM: a checkpoint, one line, exit code 128 + signal.

While a model is trained, the batch at hand is finished by all processes together, and saved; anywhere else the run is
left at the next batch or tree. A thread ends what comes to no such place, or waits for a process that was killed.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.strategies.launchers import _SubprocessScriptLauncher
from pytorch_lightning.trainer.connectors.signal_connector import _SignalConnector

from ldl.collective import process_rank
from ldl.progress import stop
from ldl.running.failures import who_ended
from ldl.running.requeue import requeue, requeue_signal
from ldl.running.restart import restarts

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 20.0
"""Seconds after which a run that was told to end is ended wherever it is; clusters wait 30 before they kill."""
SOON = 1.0
"""Seconds after which a run is ended that has nothing to save, and has come to no place where it may be left."""
AGAIN = 0.5
"""Seconds after which a Ctrl-C is a second one: launchers hand on the first, which has reached every process."""
FAREWELL = 5.0
"""Seconds that processes get to end by themselves when another has."""
TICK = 0.2
"""Seconds between two looks at the launched processes."""


class Watch:
    """The signals of one run, and what its last line tells.

    Attributes:
        step: Number of optimiser steps that were done.
        fold: The fold of a cross-validation that is trained.
        checkpoint: What the run can be resumed from, once it is there.
        again: How to go on without a checkpoint.
        lock: That of the run directory, while it is held.
        ranks: The processes that Lightning has launched on this machine, from rank 1.
        requeue_on: The signal upon which SLURM is to queue the job again.
        before: Signals that are handled here, and what handled them before.
    """

    def __init__(self) -> None:
        self.step = 0
        self.fold: int | None = None
        self.checkpoint: Path | None = None
        self.again = "start it again"
        self.ranks: list[subprocess.Popen[Any]] = []
        self.lock: Path | None = None
        self.requeue_on: int | None = None
        self.before: dict[int, Any] = {}
        self._told = False

    def listen(self, number: int) -> None:
        """Handle a signal from now on, unless the starter of the run has it ignored, as ``nohup`` does."""
        handler = signal.getsignal(number) or signal.SIG_DFL
        self.before.setdefault(number, handler)
        if handler != signal.SIG_IGN:
            signal.signal(number, self.receive)

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal, in the main thread."""
        stop.signal = stop.signal or number

    def tell(self, more: str = "") -> int:
        """Print the line, once and in the first process, and return the exit code.

        The other processes end with 0: a launcher that sees one fail kills the first one while it saves. One that
        starts again what has failed takes 0 for the end of all.
        """
        if process_rank():
            return 128 + stop.signal if restarts() else 0
        if not self._told:
            self._told = True
            there = self.checkpoint is not None and self.checkpoint.is_file() and self.fold is None
            advice = f"go on with --ckpt_path {self.checkpoint}" if there else self.again
            if stop.signal == self.requeue_on:
                advice = requeue() or f"scontrol does not queue the job again; {advice}"
            fold = "" if self.fold is None else f" in fold {self.fold}"
            where = f" at step {self.step}" if self.step else ""
            name = signal.Signals(stop.signal).name
            print(f"stopped by {name}{fold}{where}{more}; {advice}", file=sys.stderr, flush=True)
        return 128 + stop.signal

    def end_ranks(self) -> None:
        """Wait for the other processes, which end too, and kill those that stay."""
        deadline = time.monotonic() + FAREWELL
        for process in self.ranks:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            process.kill()

    def guard(self, told: socket.socket) -> None:
        """Run in a thread, for what the main one cannot see while it waits: end the process where that does not.

        It hands the first signal on to the other processes, and ends with them where one of them is killed.
        """
        first = lost = 0.0
        second = False
        while not second:
            ready = select.select([told], [], [], TICK)[0]
            for number in told.recv(64) if ready else b"":
                if number == 0:
                    return
                if number in self.before and not first:
                    first, stop.signal = time.monotonic(), stop.signal or number
                    self._signal_ranks(signal.SIGTERM)
                second |= number == signal.SIGINT and time.monotonic() > first + AGAIN
            lost = lost or (time.monotonic() if any(process.poll() for process in self.ranks) else 0.0)
            patience = PATIENCE if stop.trains or stop.leaves else SOON
            if (first and time.monotonic() > first + patience) or (lost and time.monotonic() > lost + FAREWELL):
                break
        if first:
            late = not second and (stop.trains or stop.leaves)
            code = self.tell(f", which took more than {PATIENCE:g} s" if late else "")
        else:
            code = 1
            if line := who_ended(self.ranks):
                print(f"error: {line}", file=sys.stderr, flush=True)
        self._signal_ranks(signal.SIGKILL)
        if self.lock:
            self.lock.unlink(missing_ok=True)
        if sys.stdout.isatty():
            # Progress bars have hidden the cursor.
            os.write(sys.stdout.fileno(), b"\x1b[?25h")
        os._exit(code)

    def _signal_ranks(self, number: int) -> None:
        for process in self.ranks:
            process.send_signal(number)


watch = Watch()
"""That of the run at hand; trainers of Python scripts, which no one watches, leave signals to Lightning."""


@contextmanager
def ends_when_told() -> Iterator[None]:
    """Handle the signals of a run."""
    global watch
    watch = Watch()
    stop.reset()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told, teller = socket.socketpair()
    teller.setblocking(False)
    for number in SIGNALS:
        watch.listen(number)
    wakeup = signal.set_wakeup_fd(teller.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=watch.guard, args=(told,), daemon=True, name="signals").start()
    try:
        yield
    except BaseException:
        # Whatever it is: a process that was told may see others go before it.
        if not stop.signal:
            raise
        stop.leaves = True
        code = watch.tell()
        raise SystemExit(code) from None
    finally:
        teller.send(b"\0")
        signal.set_wakeup_fd(wakeup)
        for heard, handler in watch.before.items():
            signal.signal(heard, handler)


class _Signals(_SignalConnector):
    """Lightning's handlers without that of SIGTERM, which broadcasts and so can hang."""

    def _sigterm_notifier_fn(self, signum: Any, frame: Any) -> None:
        pass


def attend(trainer: pl.Trainer) -> pl.Trainer:
    """Leave the signals of a trainer, and the processes that it launches, to the watch.

    SLURM's signal is among them: Lightning saves where it comes, which may be between two exchanges of the processes,
    and tests a run that goes on with the weights it began with.
    """
    trainer._signal_connector = _Signals(trainer)
    number = requeue_signal(trainer)
    if number is not None and watch.before:
        watch.requeue_on = number
        watch.listen(number)
    launcher = trainer.strategy.launcher
    if isinstance(launcher, _SubprocessScriptLauncher):
        launch = launcher._call_children_scripts

        def launch_ranks() -> None:
            launch()
            # Lightning's own observer, which has none left, would kill this process without a word for any that ends.
            watch.ranks, launcher.procs = launcher.procs, []

        launcher._call_children_scripts = launch_ranks  # type: ignore[method-assign]
    return trainer
