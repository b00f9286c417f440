"""UTKFace in five folds with the same mix of ages, networks trained end to end.

    python benchmarks/faces/five_folds.py --out runs/utkface --jobs 2 --page docs/results/faces.md

A head NAME is ``configs/runs/utkface/NAME.yaml``; its run lies in ``OUT/NAME`` and goes on where it was stopped. Nobody
knows UTKFace's persons, so they cannot be kept apart. One seed, mean ± standard deviation over the folds; minutes of
all folds are of one processor each.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import crossvalidated, run_config
from benchmarks.common.tables import show, write_block
from benchmarks.faces.finetuned import COLUMNS
from ldl.comparison.figures import spread
from ldl.reports.files import markdown


def main() -> None:
    """Cross-validate what is missing, print the table."""
    parser = make_parser(__doc__, threads=1, block="age_five_folds")
    parser.add_argument("--heads", nargs="+", default=["softmax", "ldlf"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="Folder of the runs.")
    parser.add_argument("--jobs", type=int, default=1, help="Processes that share the folds.")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for head in options.heads:
        results = crossvalidated(options.out / head, run_config("utkface", head), options.seed, options.jobs)
        folds = [fold["metrics"] for fold in results["folds"]]
        cells = [spread(fold[name] for fold in folds if name in fold) or "-" for name in COLUMNS.values()]
        rows.append([head, *cells, f"{results['fit_seconds'] / 60:.0f}"])
    header = ["head", *COLUMNS, "minutes"]
    show("UTKFace, five folds", header, rows)
    if options.page:
        write_block(options.page, "age_five_folds", markdown(header, rows))


if __name__ == "__main__":
    launch(main)
