"""Graceful shutdown by Ctrl-C, SIGTERM, SIGHUP or SLURM: a checkpoint, one line, exit code 128 + signal.

During training, all processes finish the current batch together and save. Elsewhere the run stops at the next batch or
tree. A thread ends a process that reaches no such place, or that waits for a killed process.
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
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint, StochasticWeightAveraging
from pytorch_lightning.plugins.environments import ClusterEnvironment, SLURMEnvironment
from typing_extensions import override

from ldl.collective import process_rank
from ldl.progress import Stopped, stop
from ldl.run.processes import in_slurm, who_ended
from ldl.run.resume import restarts

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_SECONDS = 20.0
"""Seconds after the signal until a run that trains is ended; clusters kill it after 30."""
SOON = 1.0
"""Seconds after the signal until a run that has nothing to save is ended."""
AGAIN = 0.5
"""Seconds after which a Ctrl-C is a second one. Launchers repeat the first one, which every process has received."""
FAREWELL = 5.0
"""Seconds that the other processes get to end by themselves."""
TICK = 0.2
"""Seconds between two checks of the launched processes."""


class Shutdown:
    """The signals of one run, and its last line.

    Attributes:
        step: Number of completed optimiser steps.
        fold: Fold of a cross-validation that is trained.
        checkpoint: File from which the run can be resumed, once there is one.
        again: Advice if there is no checkpoint.
        lock: Lock of the run directory while it is held.
        ranks: Processes that Lightning has launched on this machine, from rank 1.
        requeue_on: Signal at which SLURM queues the job again.
        before: Handlers before the run, by signal.
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
        self._reported = False

    def listen(self, number: int) -> None:
        """Note a signal in ``stop.signal`` from now on, unless it is ignored, as under ``nohup``.

        Only the main thread can change handlers, so other threads, such as those of a Dask worker, do nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        if self.before.setdefault(number, signal.getsignal(number) or signal.SIG_DFL) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: setattr(stop, "signal", stop.signal or number))

    def report(self, more: str = "") -> int:
        """Print the last line, once and in the first process, and return the exit code.

        The other processes end with 0, since a launcher kills the first process if another fails while it saves. A
        launcher that restarts failed processes would take 0 for the end of the run.
        """
        if process_rank():
            return 128 + stop.signal if restarts() else 0
        if not self._reported:
            self._reported = True
            resumable = self.checkpoint is not None and self.checkpoint.is_file() and self.fold is None
            advice = f"resume with --ckpt_path {self.checkpoint}" if resumable else self.again
            if stop.signal == self.requeue_on:
                advice = _requeue() or f"scontrol does not queue the job again; {advice}"
            fold = "" if self.fold is None else f" in fold {self.fold}"
            where = f" at step {self.step}" if self.step else ""
            name = signal.Signals(stop.signal).name
            print(f"stopped by {name}{fold}{where}{more}; {advice}", file=sys.stderr, flush=True)
        return 128 + stop.signal

    def end_ranks(self) -> None:
        """Wait for the other processes, and kill those that do not end."""
        deadline = time.monotonic() + FAREWELL
        for process in self.ranks:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            process.kill()

    def guard(self, wakeup: socket.socket) -> None:
        """End the process if its main thread does not; this runs in a thread of its own.

        The first signal is forwarded to the other processes. If one of them is killed, this process ends too.
        """
        first = lost = 0.0
        second = False
        while not second:
            ready = select.select([wakeup], [], [], TICK)[0]
            for number in wakeup.recv(64) if ready else b"":
                if number == 0:
                    return
                if number in self.before and not first:
                    first, stop.signal = time.monotonic(), stop.signal or number
                    self._signal_ranks(signal.SIGTERM)
                second |= number == signal.SIGINT and time.monotonic() > first + AGAIN
            lost = lost or (time.monotonic() if any(process.poll() for process in self.ranks) else 0.0)
            patience = STOP_SECONDS if stop.trains or stop.leaves else SOON
            if (first and time.monotonic() > first + patience) or (lost and time.monotonic() > lost + FAREWELL):
                break
        if first:
            late = not second and (stop.trains or stop.leaves)
            code = self.report(f", which took more than {STOP_SECONDS:g} s" if late else "")
        else:
            code = 1
            if line := who_ended(self.ranks):
                print(f"error: {line}", file=sys.stderr, flush=True)
        self._signal_ranks(signal.SIGKILL)
        if self.lock:
            self.lock.unlink(missing_ok=True)
        if sys.stdout.isatty():
            os.write(sys.stdout.fileno(), b"\x1b[?25h")  # show the cursor, which progress bars hide
        os._exit(code)

    def _signal_ranks(self, number: int) -> None:
        for process in self.ranks:
            process.send_signal(number)


shutdown = Shutdown()
"""Signals of the current run. Trainers outside :func:`graceful_shutdown` keep Lightning's handlers."""


@contextmanager
def graceful_shutdown() -> Iterator[None]:
    """Handle the signals of a run; outside the main thread, do nothing."""
    global shutdown
    shutdown = Shutdown()
    stop.reset()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    for number in SIGNALS:
        shutdown.listen(number)
    wakeup = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=shutdown.guard, args=(receiver,), daemon=True, name="signals").start()
    try:
        yield
    except BaseException:
        # Any error may be a consequence: other processes may have ended first.
        if not stop.signal:
            raise
        stop.leaves = True
        raise SystemExit(shutdown.report()) from None
    finally:
        sender.send(b"\0")
        signal.set_wakeup_fd(wakeup)
        for caught, handler in shutdown.before.items():
            signal.signal(caught, handler)


def listen_for_requeue(plugins: Any) -> None:
    """Handle the signal at which SLURM queues the job again, unless ``trainer.plugins`` switch that off."""
    plugins = plugins if isinstance(plugins, list) else [plugins]
    environment = next((plugin for plugin in plugins if isinstance(plugin, ClusterEnvironment)), None)
    number = None
    if isinstance(environment, SLURMEnvironment) and environment.auto_requeue:
        number = environment.requeue_signal
    elif environment is None and in_slurm():
        number = signal.SIGUSR1  # Lightning's default
    if number is not None and shutdown.before:
        shutdown.requeue_on = number
        shutdown.listen(number)


def _requeue() -> str:
    """Queue this job again; return a report, empty if SLURM does not accept that."""
    job = os.environ.get("SLURM_JOB_ID", "")
    if "SLURM_ARRAY_JOB_ID" in os.environ:
        job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    try:
        code = subprocess.run(["scontrol", "requeue", job], check=False, timeout=10).returncode
    except (OSError, subprocess.TimeoutExpired):
        code = 1
    return "" if code else f"job {job} is queued again"


def watch_processes(trainer: pl.Trainer) -> pl.Trainer:
    """Let :class:`Shutdown` watch the processes that a trainer launches, before their rendezvous.

    Lightning's own observer would kill this process without a message if any of them ends.
    """
    set_up = trainer.strategy.setup_environment

    def setup_environment() -> None:
        launched = getattr(trainer.strategy.launcher, "procs", [])
        shutdown.ranks = [*shutdown.ranks, *launched]
        launched.clear()
        set_up()

    trainer.strategy.setup_environment = setup_environment  # type: ignore[method-assign]
    return trainer


class SignalHandlers(pl.Callback):
    """Restore the handlers of the run after Lightning has set its own.

    Lightning would save as soon as SLURM's signal arrives, even between two collective operations. Its handler
    of SIGTERM broadcasts, which can hang.
    """

    @override
    def on_sanity_check_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        for number in shutdown.before:
            shutdown.listen(number)

    on_train_start = on_test_start = on_predict_start = on_sanity_check_start


class StopCheckpoint(Checkpoint):
    """Save and end a run after a signal, at the same batch in all processes.

    Args:
        path: The checkpoint.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @override
    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.ckpt_path is not None:
            shutdown.checkpoint = Path(trainer.ckpt_path)
        shutdown.step = trainer.global_step
        stop.trains = True

    @override
    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        shutdown.step = trainer.global_step
        if stop.agreed and not _at_last_step(trainer) and not _is_due(trainer, batch_idx):
            self._save(trainer)

    @override
    def on_validation_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        if stop.agreed and stop.trains and not _at_last_step(trainer):
            # No checkpoint has the sums of a validation, so the resumed run repeats it from its first batch.
            progress = trainer.fit_loop.epoch_loop.val_loop.batch_progress
            done = progress.total.completed - progress.current.completed
            progress.load_state_dict({"total": _within(done), "current": _within(0), "is_last_batch": False})
            self._save(trainer)

    @override
    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        shutdown.checkpoint = self.path

    @override
    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        stop.trains = False
        stop.leave()
        if any(isinstance(each, StochasticWeightAveraging) for each in trainer.callbacks):  # type: ignore[attr-defined]
            # Lightning puts the average in place after the checkpoint of the last epoch.
            trainer.save_checkpoint(self.path, weights_only=False)

    @override
    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        stop.trains = False

    def _save(self, trainer: pl.Trainer) -> None:
        trainer.save_checkpoint(self.path, weights_only=False)
        shutdown.checkpoint = self.path
        stop.leaves = True
        raise Stopped


def _is_due(trainer: pl.Trainer, batch: int) -> bool:
    """Return whether an optimiser step, a validation or the end of the epoch belongs to this batch.

    Lightning would not repeat them in the resumed run.
    """
    loop = trainer.fit_loop.epoch_loop
    ends = loop.batch_progress.is_last_batch or batch + 1 >= trainer.num_training_batches or trainer.should_stop
    every, interval = trainer.check_val_every_n_epoch, trainer.val_check_batch
    counted = loop.total_batch_idx if every is None else batch
    validates = trainer.enable_validation and (every is None or (trainer.current_epoch + 1) % every == 0)
    validates = bool(validates and interval and (counted + 1) % interval == 0)
    return bool(ends or validates or (batch + 1) % trainer.accumulate_grad_batches)


def _at_last_step(trainer: pl.Trainer) -> bool:
    """Return whether ``max_steps`` are done, after which the rest of the epoch would not be repeated."""
    return 0 <= trainer.max_steps <= trainer.global_step


def _within(batches: int) -> dict[str, int]:
    """Return Lightning's counters in the middle of the batch after ``batches``."""
    return {"ready": batches + 1, "started": batches + 1, "processed": batches, "completed": batches}
