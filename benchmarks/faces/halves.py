"""Settings of fine-tuning on FG-NET, chosen on each half of the persons alone.

    python benchmarks/faces/halves.py --start runs/backbone/checkpoints/last.ckpt --options model.optimizer.lr=1e-3,3e-3

Every combination of the options is cross-validated with three folds of whole persons inside of one half (every second
person), from the same seed: what a half chooses was never seen to help on the persons of the other one. Where both
choose the same, leave-one-person-out may use it for all. A line a combination: the MAE in each half, in years.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np

import ldl.data
import ldl.heads  # noqa: F401  (their names become known to the parser)
from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import be_quiet, quiet_trainer, run_config
from benchmarks.common.tables import show, write_block
from ldl.cli.training import parse_anew
from ldl.data import FGNET
from ldl.data.faces.records import FaceRecords
from ldl.errors import LDLError
from ldl.options import options
from ldl.reports.files import markdown
from ldl.running.crossval import crossvalidate

MEASURES = ("mae", "balanced_mae", "cs5", "crps")


@options
class HalfOfFGNET(FGNET):
    """Every second person of FG-NET.

    Args:
        half: 0 or 1.
    """

    half: int = 0

    def read(self) -> FaceRecords:
        """The pictures of the half."""
        records = super().read()
        assert records.persons is not None
        return records.take(np.flatnonzero(np.isin(records.persons, np.unique(records.persons)[self.half :: 2])))


def main() -> None:
    """Measure every combination in both halves, print the table."""
    parser = make_parser(__doc__, threads=1, block="halves")
    parser.add_argument("--block", default="halves")
    parser.add_argument("--config", default="finetuned_softmax", help="Name of a configuration of runs/fgnet.")
    parser.add_argument("--start", help="Checkpoint to begin from, head and all; default a new head.")
    parser.add_argument("--options", nargs="*", default=[], help="NAME=VALUE,VALUE,... of the command line.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--root", help="Folder of the data; default LDL_DATA.")
    options = parser.parse_args()
    be_quiet(options.threads)
    rows = []
    for combination in combinations(options.options):
        begin = time.perf_counter()
        found = [measure(half, combination, options) for half in (0, 1)]
        seconds = time.perf_counter() - begin
        cells = [
            f"{one['mae']:.3f} | {one['balanced_mae']:.2f} | {one['cs5']:.3f} | {one['crps']:.3f}" for one in found
        ]
        rows.append([" ".join(combination) or "as configured", *" | ".join(cells).split(" | "), f"{seconds:.0f}"])
        print(rows[-1], flush=True)
    header = ["options", *(f"{name}, half {half}" for half in (1, 2) for name in MEASURES), "seconds"]
    show(f"{options.config}, three folds of persons inside of each half", header, rows)
    if options.page:
        write_block(options.page, options.block, markdown(header, rows))


def combinations(given: list[str]) -> list[list[str]]:
    """``NAME=VALUE`` for every combination of values. Raises LDLError for an option that is not of that form."""
    if bad := [option for option in given if "=" not in option]:
        raise LDLError(f"--options {bad[0]!r} must be NAME=VALUE,VALUE,..., such as model.optimizer.lr=1e-3,3e-3")
    parts = [option.partition("=") for option in given]
    return [
        [f"{name}={value}" for (name, _, _), value in zip(parts, values)]
        for values in itertools.product(*(values.split(",") for _, _, values in parts))
    ]


def measure(half: int, combination: list[str], options: argparse.Namespace) -> dict[str, float]:
    """Measures over all pictures of a half, each tested by a model that has not seen its person."""
    args = ["-c", str(run_config("fgnet", options.config))]
    args += ["--model.start", options.start] if options.start else []
    args += ["--seed_everything", str(options.seed), *(f"--{option}" for option in combination)]
    args += ["--data.root", options.root] if options.root else []
    cli = parse_anew(args)
    shape = cli.config.data.init_args.as_dict()
    data = HalfOfFGNET(**{**shape, "half": half, "protocol": "subject_exclusive", "folds": 3})
    trainer = quiet_trainer(cli.config.trainer.max_epochs)
    return crossvalidate(lambda: cli.make_task(cli.config), data, seed=options.seed, trainer=trainer)["pooled"]


if __name__ == "__main__":
    launch(main)
