"""What a network learns edges from, and with which head: votes or consensus, LDLF or softmax, over several seeds.

    python benchmarks/edges/deep.py --seeds 0 1 2 --trainer.max_epochs=6 --trainer.limit_test_batches=50

Every run is ``configs/runs/bsds/HEAD.yaml`` with the rest of the command line, trained on ``train`` and tested on
``val``: the test part is not looked at. Runs that ``--out`` has already are not repeated: other options want another
folder.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import run_config, tested
from benchmarks.common.tables import show, write_block
from ldl.comparison.figures import spread
from ldl.data.edges.votes import Target
from ldl.reports.edges import FIGURES
from ldl.reports.files import markdown


def main() -> None:
    """Train and test what is missing, and print a row for every target and head."""
    parser = make_parser(__doc__, block="edges_deep")
    # What is not known here goes to train.py, and is no abbreviation.
    parser.allow_abbrev = False
    parser.add_argument(
        "--targets", nargs="+", default=["votes", "consensus"], choices=get_args(Target), help="(default: %(default)s)"
    )
    parser.add_argument("--heads", nargs="+", default=["softmax", "ldlf"], help="(default: %(default)s)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/deep_edges"), help="(default: %(default)s)")
    options, more = parser.parse_known_args()
    rows = []
    for target, head in itertools.product(options.targets, options.heads):
        runs = [
            tested(
                options.out / f"{target}_{head}_{seed}",
                run_config("bsds", head),
                [f"--data.target={target}", f"--seed_everything={seed}", *more],
            )
            for seed in options.seeds
        ]
        rows.append([target, head, *(spread(run[name] for run in runs) for name in FIGURES)])
    header, title = ["target", "head", *(name.upper() for name in FIGURES)], f"seeds {options.seeds}: {' '.join(more)}"
    show(f"BSDS500, {title}", header, rows)
    if options.page:
        write_block(options.page, "edges_deep", f"Mean ± standard deviation over {title}\n\n{markdown(header, rows)}")


if __name__ == "__main__":
    launch(main)
