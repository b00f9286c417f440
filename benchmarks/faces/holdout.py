"""What finished runs have of the tenth of UTKFace that ``data.protocol holdout`` leaves out.

    python train.py -c configs/runs/utkface/softmax.yaml --data.protocol holdout --run_dir runs/softmax
    python benchmarks/faces/holdout.py softmax=runs/softmax

A run is NAME=FOLDER. One seed; minutes of training are the clock's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.faces.finetuned import COLUMNS
from ldl.errors import LDLError
from ldl.reports.files import markdown


def main() -> None:
    """Read the runs, print the table."""
    parser = make_parser(__doc__, threads=1, block="age_holdout")
    parser.add_argument("runs", nargs="+", help="NAME=FOLDER")
    options = parser.parse_args()
    rows = []
    for given in options.runs:
        name, _, folder = given.partition("=")
        results = read(Path(folder)) if folder else {}
        if (results.get("data"), results.get("protocol")) != ("UTKFace", "holdout"):
            raise LDLError(f"{given!r} must be NAME=FOLDER, of a finished run on UTKFace by data.protocol holdout")
        cells = [f"{results['mean'][measure]:.3f}" for measure in COLUMNS.values()]
        rows.append([name, *cells, f"{results['fit_seconds'] / 60:.0f}"])
    header = ["run", *COLUMNS, "minutes"]
    show("UTKFace, the tenth left out", header, rows)
    if options.page:
        write_block(options.page, "age_holdout", markdown(header, rows))


def read(folder: Path) -> dict[str, Any]:
    """Results of a finished run; nothing where there are none."""
    file = folder / "results.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


if __name__ == "__main__":
    launch(main)
