"""Lines that runs print into a pipe, and how long they take: the default run, and ten folds of a small table.

    python benchmarks/console/lines.py --before CHECKOUT --page docs/results/speed.md

Each is started as a process of its own in an empty folder, Weights & Biases offline, in turns with those of another
checkout of ldl, where one is given. Processor seconds are those of the process and of what it has started; they hardly
mind other work on the machine, which the seconds of the clock do. The lowest of the turns counts.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from ldl.errors import LDLError
from ldl.reports.files import markdown

ROOT = Path(__file__).resolve().parents[2]
BLOCK = "console"
HEADER = ("run", "lines", "of wandb", "processor, s", "clock, s", "KL", "MAE")


class Told(NamedTuple):
    """What one run has printed, cost and measured."""

    lines: int
    wandb: int
    processor: float
    clock: float
    kl: float
    mae: float | None


def runs(table: Path, epochs: int | None) -> dict[str, list[str]]:
    """The command lines, by name."""
    shorter = [] if epochs is None else [f"--trainer.max_epochs={epochs}"]
    folds = ["-c", "configs/runs/tabular/softmax.yaml", f"--data.path={table}", "--stage=crossval"]
    return {"default": shorter, "ten folds": [*folds, *shorter]}


def measure(checkout: Path, options: list[str]) -> Told:
    """Run ``train.py`` of a checkout once. Raises LDLError where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "WANDB_MODE": "offline"}
    options = [str(checkout / option) if option.startswith("configs/") else option for option in options]
    with tempfile.TemporaryDirectory() as folder:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(checkout / "train.py"), *options, "--run_dir", f"{folder}/run"],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = done.stdout.splitlines()
        if done.returncode:
            raise LDLError(f"{checkout}: train.py {' '.join(options)} ended with {done.returncode}: {lines[-1:]}")
        mean = json.loads(Path(folder, "run", "results.json").read_text(encoding="utf-8"))["mean"]
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Told(len(lines), sum("wandb" in line for line in lines), processor, clock, mean["kl"], mean.get("mae"))


def row(name: str, told: list[Told]) -> list[str]:
    """A row of the table, of the turns of one run."""
    processor, clock = min(each.processor for each in told), min(each.clock for each in told)
    first = told[0]
    mae = "" if first.mae is None else f"{first.mae:.3f}"
    return [name, str(first.lines), str(first.wandb), f"{processor:.1f}", f"{clock:.1f}", f"{first.kl:.4f}", mae]


def make_table(folder: Path) -> Path:
    """A table of 80 rows, whose votes its features say something of."""
    import numpy as np

    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, 5))
    scores = features @ rng.normal(size=(5, 4)) + rng.normal(size=(80, 4))
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.savez(folder / "votes.npz", features=features, labels=shares)
    return folder / "votes.npz"


def main() -> None:
    """Measure, print and write the table."""
    parser = make_parser(__doc__, block=BLOCK)
    parser.add_argument("--before", type=Path, help="another checkout of ldl to compare with")
    parser.add_argument("--turns", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--epochs", type=int, help="in place of those of the configurations")
    options = parser.parse_args()
    if options.turns < 1:
        raise LDLError(f"--turns {options.turns} must be at least 1")
    if options.before and not (options.before / "train.py").is_file():
        raise LDLError(f"--before {options.before} has no train.py; give a checkout of ldl")
    checkouts = {"before": options.before.resolve()} if options.before else {}
    checkouts["now"] = ROOT
    told: dict[str, list[Told]] = {}
    with tempfile.TemporaryDirectory() as folder:
        table = make_table(Path(folder))
        for _ in range(options.turns):
            for name, words in runs(table, options.epochs).items():
                for when, checkout in checkouts.items():
                    label = name if len(checkouts) == 1 else f"{name}, {when}"
                    told.setdefault(label, []).append(measure(checkout, words))
    rows = [row(name, turns) for name, turns in told.items()]
    show("Runs", HEADER, rows)
    if options.page:
        note = f"The least of {options.turns} turns, on {os.cpu_count()} processors."
        write_block(options.page, BLOCK, f"{note}\n\n{markdown(HEADER, rows)}")


if __name__ == "__main__":
    launch(main)
