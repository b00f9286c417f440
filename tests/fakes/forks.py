"""Runs of ``train.py`` in forked processes, which have everything imported and so start at once."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.utilities import rank_zero_only
from torch.distributed.launcher.api import elastic_launch
from torch.distributed.run import config_from_args, parse_args
from torch.multiprocessing import _prctl_pr_set_pdeathsig  # type: ignore[attr-defined]

from fakes.paths import ROOT
from fakes.processes import run_here
from ldl.command import main
from ldl.data.loader import end_server
from ldl.run.resume import last_of

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


class Ranks(Group):
    """Forked processes of one run in Python.

    Args:
        work: What each of them does.
        log: Gets what they say.
        processes: How many.
    """

    def __init__(self, work: Callable[[], Any], log: Path, processes: int = 2) -> None:
        port = free_port()

        def share() -> None:
            _share(processes, port)
            work()

        super().__init__(share, log)


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


REJOINS = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Else an agent that joins a run later waits for an address that the first one tells once, at the beginning."""


class Agent(Group):
    """``torchrun`` with one process of ``train.py``, of a run of two machines.

    Args:
        arguments: The command line of ``train.py``.
        log: Gets what agent and process say.
        port: Of the first agent, at which they meet.
        job: The name of the run, which is the same for all its agents.
    """

    def __init__(self, arguments: list[str], log: Path, port: int, job: str) -> None:
        launcher = [
            *("--nnodes", "2", "--nproc_per_node", "1", "--max_restarts", "3", "--rdzv_id", job),
            *("--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{port}"),
            # Lost agents are missed after 8 seconds, instead of 15. A busy machine stops a live one for 2.
            *("--rdzv_conf", "keep_alive_interval=1,keep_alive_max_attempt=8"),
        ]
        two = ["--trainer.num_nodes", "2", "--trainer.devices", "1", "--trainer.strategy", "ddp"]
        command = [*launcher, str(ROOT / "train.py"), *arguments, *two]

        def work() -> None:
            os.environ |= REJOINS
            _launch(command)

        super().__init__(work, log)

    def kill_process(self) -> None:
        """End the process of ``train.py`` at once, and leave the agent alone."""
        for process in set(self._left()) - {self.leader}:
            os.kill(process, signal.SIGKILL)


def _launch(command: list[str]) -> None:
    """What ``torchrun`` does, with a process that is forked and so has everything imported."""
    config, _, (_, _, *arguments) = config_from_args(parse_args(command))
    config.start_method = "fork"
    elastic_launch(config, _work)(arguments)


def _work(arguments: list[str]) -> None:
    # As of processes with a Python of their own: torch ties forked ones to the life of their agent.
    _prctl_pr_set_pdeathsig(0)
    rank_zero_only.rank = int(os.environ["RANK"])  # type: ignore[attr-defined]
    main(arguments)


class Pair:
    """Two agents of one run; ``lost`` have been replaced."""

    def __init__(self, options: list[str], place: Path) -> None:
        self.log, self.last, port = place.with_suffix(".log"), last_of(place), free_port()
        arguments = [*options, "--run_dir", str(place)]
        self.start = lambda: Agent(arguments, self.log, port, place.name)
        self.agents = [self.start()]
        # The first one is the host, without whom the others cannot meet.
        time.sleep(0.5)
        self.agents.append(self.start())
        self.lost: list[Agent] = []

    def lose(self, how: Callable[[Agent], None]) -> None:
        """Lose the second agent, and start another unless it is still there."""
        how(self.agents[1])
        if how is not Agent.kill_process:
            self.agents[1].wait()
            self.lost.append(self.agents.pop())
            self.agents.append(self.start())

    def end(self) -> list[str]:
        """Wait for the end; what went wrong."""
        codes = [agent.wait() for agent in self.agents]
        wrong = [] if codes == [0, 0] else [f"exit codes {codes}"]
        return wrong + ["processes stayed" for agent in (*self.agents, *self.lost) if not agent.end()]


def run_several(commands: Sequence[Sequence[str]], folder: Path, processes: int = 2) -> str:
    """Run command lines of ``train.py`` one after the other in processes that torchrun holds together.

    ``folder`` is where they work, and gets ``said.txt``, what they said, which is returned.
    """

    def work() -> None:
        os.chdir(folder)
        os.environ.pop("PL_GLOBAL_SEED", None)
        meeting = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{free_port()}"]
        config = config_from_args(parse_args([*meeting, f"--nproc_per_node={processes}", "train.py"]))[0]
        config.start_method = "fork"
        elastic_launch(config, _rank)(commands)

    log = folder / "said.txt"
    group = Group(work, log)
    assert group.wait(300.0) == 0, log.read_text()[-3000:]
    assert group.end(), "processes stayed"
    return log.read_text()


def _rank(commands: Sequence[Sequence[str]]) -> None:
    rank_zero_only.rank = int(os.environ["RANK"])  # type: ignore[attr-defined]
    for command in commands:
        main(list(command))


def different(run: Path, other: Path) -> list[str]:
    """What two run directories do not have in common, by name."""
    found = []
    files = {path.relative_to(other) for path in other.rglob("*") if path.is_file() and path.suffix != ".png"}
    files.discard(Path(".ldl"))  # a folder with an older run gets no mark
    found += [f"{name} is missing" for name in sorted(files) if not (run / name).is_file()]
    for name in sorted(file for file in files if (run / file).is_file()):
        one, two = run / name, other / name
        if name.suffix == ".ckpt":
            same = _content(one) == _content(two)
        elif name.name == "results.json":
            same = all(_entries(one)[key] == _entries(two)[key] for key in ("folds", "mean", "std"))
        else:
            same = name.name == "config.yaml" or one.read_bytes() == two.read_bytes()
        found += [] if same else [str(name)]
    return found


def _content(path: Path) -> list[tuple[str, bytes]]:
    """What was learned, and what training goes on with."""
    state = torch.load(path, weights_only=True)
    parts = ("state_dict", "leaf_update", "optimizer_states", "lr_schedulers", "train_means", "global_step", "epoch")
    return list(_leaves({part: state.get(part) for part in parts}, ""))


def _leaves(value: Any, name: str) -> Iterator[tuple[str, bytes]]:
    if isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, f"{name}.{key}")
    else:
        # Bytes, so that NaN is equal to NaN.
        yield name, value.numpy().tobytes() if isinstance(value, torch.Tensor) else repr(value).encode()


def _entries(path: Path) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in json.loads(path.read_text(encoding="utf-8")).items()}


def run_in_one_and_two(options: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Run a command line in one process and in two, and return the ``results.json`` of both.

    The runs are ``one`` and ``two`` below ``folder``. The options leave out devices, strategy and run directory.
    """
    run_here([*options, "--run_dir", str(folder / "one")], folder)
    two = [*options, "--trainer.devices", "2", "--trainer.strategy", "ddp", "--run_dir", str(folder / "two")]
    run_several([two], folder)
    return [json.loads((folder / name / "results.json").read_text()) for name in ("one", "two")]
