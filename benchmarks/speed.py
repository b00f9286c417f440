"""Speed of ldl beside other libraries, and beside another checkout of ldl.

    python benchmarks/speed.py                                # every case, beside other libraries
    python benchmarks/speed.py structrf boosted --turns 5
    python benchmarks/speed.py --before CHECKOUT              # every case, now beside another checkout
    python benchmarks/speed.py --page docs/results/engineering.md

A case is a function under ``@case`` in ``benchmarks/speed_cases``. It prepares its data and returns the works to time,
of which the first is ldl's. Works take turns, odd turns backwards, after one call each that compiles and imports.
Results are medians over the turns. Processor times count all threads of a process and depend little on other work on
the machine. Data are random numbers from a seed; ``structured_edges`` needs BSDS500 below ``LDL_DATA``.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

# A child imports ldl from the checkout that it measures, which PYTHONPATH names.
sys.path.insert(0 if "--child" not in sys.argv else len(sys.path), str(Path(__file__).resolve().parents[1]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# A child takes the helpers of the cases from here, because an older checkout may lack them.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# isort: split
from benchmarks.common.script import Seconds, launch, make_parser, show, take_turns, timed, write_block
from benchmarks.speed_cases import CASES
from ldl.errors import LDLError, did_you_mean

for module in ("heads", "estimators", "runs", "reading"):
    importlib.import_module(f"benchmarks.speed_cases.{module}")  # adds its cases

ROOT = Path(__file__).resolve().parents[1]
HEADER = ("case", "", "seconds", "processor seconds", "processor time over ldl's")


def measure(name: str, turns: int) -> dict[str, Seconds]:
    """Return the medians of a case."""
    works = CASES[name]()
    for work in works.values():
        work()
    found = take_turns(works, turns, lambda work, _: timed(works[work]))
    return {work: Seconds(*(median(column) for column in zip(*times))) for work, times in found.items()}


def in_checkout(name: str, checkout: Path) -> Seconds:
    """Measure ldl's work of a case once, in a process that imports ldl from a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, str(Path(__file__).resolve()), name, "--child"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise LDLError(f"{name} fails with the checkout {checkout}: {' '.join(done.stderr.split())[-300:]}")
    return Seconds(*json.loads(done.stdout.splitlines()[-1]))


def compare_checkouts(name: str, before: Path, turns: int) -> dict[str, Seconds]:
    """Return the medians of a case in this checkout and in another one."""
    places = {"now": ROOT, "before": before.resolve()}
    found = take_turns(places, turns, lambda place, _: in_checkout(name, places[place]))
    return {place: Seconds(*(median(column) for column in zip(*times))) for place, times in found.items()}


def main() -> None:
    """Measure the cases and print a table."""
    parser = make_parser(__doc__, block="speed")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)} (default: all)")
    parser.add_argument("--before", type=Path, help="another checkout of ldl to compare with")
    parser.add_argument("--turns", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--child", action="store_true", help="measure ldl's work of one case once, and print JSON")
    options = parser.parse_args()
    if unknown := [name for name in options.cases if name not in CASES]:
        raise LDLError(f"no case {unknown[0]!r}{did_you_mean(unknown[0], CASES)}; there are {', '.join(CASES)}")
    if options.child:
        work = next(iter(CASES[options.cases[0]]().values()))
        work()
        print(json.dumps(timed(work)))
        return
    rows = []
    for name in options.cases or CASES:
        before, turns = options.before, options.turns
        found = compare_checkouts(name, before, turns) if before else measure(name, turns)
        ours = next(iter(found.values())).processor
        for label, took in found.items():
            rows.append([name, label, f"{took.clock:.2f}", f"{took.processor:.2f}", f"{took.processor / ours:.2f}"])
            print(*rows[-1], sep="  ", flush=True)
    show(f"medians of {options.turns} turns", HEADER, rows)
    if options.page:
        from ldl.reports.files import markdown

        write_block(options.page, "speed", markdown(HEADER, rows))


if __name__ == "__main__":
    launch(main)
