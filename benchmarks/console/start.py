"""What a start costs: processor seconds of an import, of help, of a mistake, and until the first batch is trained.

    python benchmarks/console/start.py [--rounds 5] [--checkouts before=DIR after=.] [--page docs/results/speed.md]

Medians of the rounds, of processes of their own, in turns; seconds of the processor, user and system. Each checkout is
started once before. ``DIR`` is another checkout of this repository, such as of an older version (``git worktree add``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.common.timing import take_turns
from ldl.errors import LDLError

STARTS = {
    "import ldl": ["-c", "import ldl"],
    "--help": ["train.py", "--help"],
    "--data.batchsize 3": ["train.py", "--data.batchsize", "3"],
    "-c nonsense": ["train.py", "-c", "nonsense"],
    "--stage tset": ["train.py", "--stage", "tset"],
    "first batch": ["train.py", "-c", "configs/default.yaml", "--trainer.callbacks", "FirstBatch"],
}
"""By their names the arguments of Python."""

PLUGIN = '''
import os
import pytorch_lightning as pl

class FirstBatch(pl.Callback):
    """Ends the process as soon as a batch is trained."""

    def on_train_batch_end(self, *args, **kwargs):
        os._exit(0)
'''

ENDS = {"--data.batchsize 3": 2, "-c nonsense": 2, "--stage tset": 2}
"""Exit codes other than 0."""


def main() -> None:
    """Measure, print, and write the block of the page."""
    parser = make_parser(__doc__, block="start")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    here = Path(__file__).parents[2]
    parser.add_argument("--checkouts", nargs="+", default=[f"now={here}"], help="NAME=DIR (default: this one)")
    options = parser.parse_args()
    checkouts = {name: Path(folder) for name, _, folder in (given.partition("=") for given in options.checkouts)}
    for name, folder in checkouts.items():
        if not (folder / "train.py").is_file():
            raise LDLError(f"--checkouts {name}={folder} is no checkout of ldl: it has no train.py")
    with tempfile.TemporaryDirectory() as place:
        projects = {name: make_project(Path(place) / name, folder.resolve()) for name, folder in checkouts.items()}
        for name, folder in checkouts.items():
            processor_seconds("--help", projects[name], folder.resolve())
        cells = [(start, name) for start in STARTS for name in checkouts]
        found = take_turns(
            cells, options.rounds, lambda cell, _: processor_seconds(cell[0], projects[cell[1]], checkouts[cell[1]])
        )
    header = ["processor seconds", *checkouts]
    rows = [[start, *(f"{median(found[start, name]):.2f}" for name in checkouts)] for start in STARTS]
    show(f"starts, medians of {options.rounds} rounds", header, rows)
    if options.page:
        lines = [header, ["---"] * len(header), *([f"`{row[0]}`", *row[1:]] for row in rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        write_block(options.page, "start", f"Medians of {options.rounds} rounds.\n\n{table}")


def make_project(folder: Path, checkout: Path) -> Path:
    """A folder whose ``train.py`` is that of a checkout, with a plugin that ends at the first batch."""
    (folder / "plugins").mkdir(parents=True)
    shutil.copy(checkout / "train.py", folder)
    (folder / "configs").symlink_to(checkout / "configs")
    (folder / "plugins" / "first_batch.py").write_text(PLUGIN, encoding="utf-8")
    return folder


def processor_seconds(start: str, project: Path, checkout: Path) -> float:
    """Of one process. Raises LDLError where it does not end as it should."""
    variables = {**os.environ, "PYTHONPATH": str(checkout.resolve()), "LDL_CACHE": str(project / "cache")}
    variables |= {"WANDB_MODE": "offline", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, *STARTS[start]], cwd=project, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != ENDS.get(start, 0):
        raise LDLError(f"{start} in {checkout} ended with {process.returncode}: {said[-300:]}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    launch(main)
