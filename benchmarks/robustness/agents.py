"""Runs of two torchrun agents, of which one is lost at a random moment, and what becomes of the run.

    python benchmarks/robustness/agents.py [--times 3 --seed 0 --torchrun --page docs/results/kills.md]

Each agent, here on the loopback, stands for a machine of one process. The second one is lost in four ways: with its
process as a machine is, alone, its process alone, or it is told to end; then another agent takes its place, but where
torchrun starts the process again by itself. The run must go on by the same command and end with the checkpoints,
results, predictions and ``metrics.csv`` of one that was never disturbed, to the last bit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import CONFIGS
from benchmarks.common.tables import show, write_block
from benchmarks.robustness.elastic import Agent
from benchmarks.robustness.kills import DIGITS, QUIET, SMALL, different
from benchmarks.robustness.processes import free_port
from ldl.cells.store import Row
from ldl.cli import main as train
from ldl.errors import LDLError
from ldl.reports.files import markdown
from ldl.running.restart import last_of

LOSSES: dict[str, Callable[[Agent], None]] = {
    "agent and process, by SIGKILL": Agent.kill_all,
    "agent alone, by SIGKILL": lambda agent: os.kill(agent.leader, signal.SIGKILL),
    "process alone, by SIGKILL": Agent.kill_process,
    "agent, by SIGTERM": lambda agent: os.kill(agent.leader, signal.SIGTERM),
}
LDLF = f"{DIGITS} {SMALL} --model.head.hidden [16] --model.head.dropout 0.2 --model.head.outputs 10"
CASES = {
    "LDLF": f"{LDLF} --model.head.batches 7 --trainer.max_epochs 30",
    "Softmax with mixup": f"--model.head Softmax {DIGITS} --model.mixup 0.4 --model.backbone.flatten true "
    "--trainer.max_epochs 30",
}
HEADER = ["run", "lost", "times", "went on from a checkpoint", "equal"]


class Pair:
    """Two agents of one run; ``lost`` have been replaced."""

    def __init__(self, options: list[str], place: Path, forks: bool) -> None:
        self.log, self.last, port = place.with_suffix(".log"), last_of(place), free_port()
        arguments = [*options, "--run_dir", str(place)]
        self.start = lambda: Agent(arguments, self.log, port, place.name, forks)
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


def trial(options: list[str], folder: Path, how: Callable[[Agent], None], moment: float, forks: bool) -> Row:
    """One run, disturbed some seconds after its first checkpoint; what became of it, beside ``folder/unbroken``."""
    place = Path(tempfile.mkdtemp(dir=folder))
    pair = Pair(options, place, forks)
    deadline = time.monotonic() + 120
    while not pair.last.is_file() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(moment)
    pair.lose(how)
    wrong = pair.end() or different(place, folder / "unbroken")
    said = pair.log.read_text(encoding="utf-8")
    row: Row = {"resumed": f"weights: {pair.last}, after step" in said, "wrong": wrong, "moment": round(moment, 2)}
    return row | {"said": said[-3000:] if wrong else ""}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, block="agents")
    parser.add_argument("--times", type=int, default=3, help="of each case and loss (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: %(default)s)")
    parser.add_argument("--torchrun", action="store_true", help="the command itself, which starts Python each time")
    return parser.parse_args()


def main() -> None:
    """Disturb, compare and print the table."""
    options = parse()
    # Forks of a process with more threads would wait for the others for ever.
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    rng, lines = np.random.default_rng(options.seed), []
    scratch = Path(tempfile.mkdtemp())
    try:
        for number, (title, case) in enumerate(CASES.items()):
            folder = scratch / str(number)
            folder.mkdir()
            command = ["-c", str(CONFIGS / "default.yaml"), *QUIET.split(), *case.split()]
            # Here, so that compiled code is compiled once: forked processes have it.
            train([*command, "--trainer.max_epochs", "1", "--run_dir", str(folder / "first")])
            pair = Pair(command, folder / "unbroken", not options.torchrun)
            while not pair.last.is_file() and pair.agents[0].wait(0.01) is None:
                pass
            begun = time.monotonic()
            if wrong := pair.end():
                raise LDLError(f"{title} fails by itself: {wrong}, {pair.log.read_text(encoding='utf-8')[-2000:]}")
            seconds = time.monotonic() - begun
            for loss, how in LOSSES.items():
                rows = []
                for _ in range(options.times):
                    moment = float(rng.uniform(0, 0.5) * seconds)
                    rows.append(trial(command, folder, how, moment, not options.torchrun))
                    print(title, loss, rows[-1], flush=True)
                counts = (len(rows), sum(row["resumed"] for row in rows), sum(not row["wrong"] for row in rows))
                lines.append([title, loss, *map(str, counts)])
    finally:
        shutil.rmtree(scratch)
    show(f"Agents that were lost, seed {options.seed}", HEADER, lines)
    if options.page:
        write_block(options.page, "agents", markdown(HEADER, lines))


if __name__ == "__main__":
    launch(main)
