"""What a network learns edges from, and with which head: votes or consensus, LDLF or softmax, over several seeds.

    python benchmarks/deep_edges.py --seeds 0 1 2 --trainer.max_epochs=6 --trainer.limit_test_batches=50

Every run is ``configs/runs/bsds_HEAD.yaml`` with the rest of the command line, trained on ``train`` and tested on
``val``: the test part is not looked at. Runs that ``--out`` has already are not repeated: other options want another
folder.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table

from ldl.cli import main as train
from ldl.data.edges.images import Target
from ldl.reports.edges import FIGURES

RUNS = Path(__file__).parent.parent / "configs" / "runs"


def main() -> None:
    """Train and test what is missing, and print a row for every target and head."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--targets", nargs="+", default=list(get_args(Target)), help="(default: %(default)s)")
    parser.add_argument("--heads", nargs="+", default=["softmax", "ldlf"], help="(default: %(default)s)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/deep_edges"), help="(default: %(default)s)")
    options, more = parser.parse_known_args()
    table = Table(title=f"BSDS500, seeds {options.seeds}: {' '.join(more)}")
    for column in ("target", "head", *(name.upper() for name in FIGURES)):
        table.add_column(column)
    for target, head in itertools.product(options.targets, options.heads):
        runs = []
        for seed in options.seeds:
            folder = options.out / f"{target}_{head}_{seed}"
            if not (folder / "results.json").is_file():
                args = ["-c", str(RUNS / f"bsds_{head}.yaml"), f"--data.target={target}", f"--seed_everything={seed}"]
                train([*args, *more, f"--run_dir={folder}"])
            runs.append(json.loads((folder / "results.json").read_text())["mean"])
        cells = []
        for name in FIGURES:
            values = [run[name] for run in runs]
            spread = f"±{statistics.stdev(values):.3f}" if len(values) > 1 else ""
            cells.append(f"{statistics.fmean(values):.3f}{spread}")
        table.add_row(target, head, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
