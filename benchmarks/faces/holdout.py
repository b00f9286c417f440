"""What finished runs have of the tenth of UTKFace that ``data.protocol holdout`` leaves out.

    python train.py -c configs/runs/utkface/softmax.yaml --data.protocol holdout --run_dir runs/softmax
    python benchmarks/faces/holdout.py softmax=runs/softmax

A run is NAME=FOLDER. One seed; minutes of training are the clock's.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.faces.finetuned import COLUMNS
from ldl.errors import LDLError
from ldl.reports.files import markdown
from ldl.runs.reading import read_run


def main() -> None:
    """Read the runs, print the table."""
    parser = make_parser(__doc__, block="of --block")
    parser.add_argument("runs", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--block", default="age_holdout", help="block of the page (default: %(default)s)")
    options = parser.parse_args()
    rows = []
    for given in options.runs:
        name, _, folder = given.partition("=")
        run = read_run(Path(folder)) if folder and (Path(folder) / "results.json").is_file() else None
        if run is None or (run.data, run.protocol) != ("UTKFace", "holdout"):
            raise LDLError(f"{given!r} must be NAME=FOLDER, of a finished run on UTKFace by data.protocol holdout")
        cells = [f"{run.mean[measure]:.3f}" for measure in COLUMNS.values()]
        rows.append([name, *cells, f"{run.seconds / 60:.0f}"])
    header = ["run", *COLUMNS, "minutes"]
    show("UTKFace, the tenth left out", header, rows)
    if options.page:
        write_block(options.page, options.block, markdown(header, rows))


if __name__ == "__main__":
    launch(main)
