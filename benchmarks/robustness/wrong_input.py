"""What becomes of wrong input: every case of ``tests/bad_inputs``, run through the command line, counted by class.

    python benchmarks/robustness/wrong_input.py [--page docs/results/robustness.md]

A case is refused in one line with exit code 2 and nothing left behind, or accepted with finite results; everything else
is a fault: a traceback, a hang, several lines or none, a run directory that stays, results that are not finite.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(1, str(Path(__file__).parents[2] / "tests"))

from bad_inputs.cases import CLASSES
from bad_inputs.harness import outcome

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from ldl.reports.files import markdown

KINDS = ("refused", "accepted", "traceback", "hang", "untold", "left behind", "nonsense")


def main() -> None:
    """Run all cases and print the table."""
    options = make_parser(__doc__, block="bad_inputs").parse_args()
    rows, everything, start = [], Counter[str](), time.perf_counter()
    for name, cases in CLASSES.items():
        counts = Counter(_kind(case_name, cases[case_name]) for case_name in cases)
        rows.append([name, str(len(cases)), *(str(counts[kind]) for kind in KINDS)])
        everything += counts
    rows.append(["all", str(everything.total()), *(str(everything[kind]) for kind in KINDS)])
    header = ["class", "cases", *KINDS]
    show("wrong input", header, rows)
    print(f"{time.perf_counter() - start:.0f} s")
    if options.page:
        write_block(options.page, "bad_inputs", markdown(header, rows))


def _kind(name: str, case: object) -> str:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LDL_CACHE"] = str(Path(folder) / "cache")
        ended = outcome(case, Path(folder))
    if ended.kind not in ("refused", "accepted"):
        print(f"{ended.kind}: {name}: {ended.line}")
    return str(ended.kind)


if __name__ == "__main__":
    launch(main)
