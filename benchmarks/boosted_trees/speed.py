"""BoostedTrees beside XGBoost: seconds a round, memory, test KL, and growth with the size of the data.

    python benchmarks/boosted_trees/speed.py [--sets 30542x36x68 Movie] [--page docs/results/speed.md]
    python benchmarks/boosted_trees/speed.py --quick

XGBoost learns distributions in two ways that end in the same trees: by its own loss on rows that are repeated once a
label, or by an objective from outside, see ``benchmarks/tables/peers.py``.

Equal depth, bins, step and penalty, no sampling, the same number of rounds. Sets are names of .mat files under
LDL_DATA/ldl, or shapes of made-up rows. In every turn each competitor runs in a process of its own, odd turns
backwards; figures are medians. A round is what every round after the first takes; the first one has the binning, and
the repetition of rows. Memory is what fitting adds at its peak to the process with the data loaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.boosted_trees.models import MODELS, OURS, THEIRS, THEIRS_SOFT, Measured, Setting, measure, measure_apart
from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import write_block
from benchmarks.common.timing import Seconds, take_turns
from ldl.errors import LDLError
from ldl.reports.files import markdown

HEADER = ("", "a round, s", "of the processor", "first round, s", "memory, MB", "test KL")
ROUNDS = {"30542x36x68": 4, "Movie": 20}
"""Of the sets: the shorter a round, the more of them stand out of what comes before the first."""
GROWTH = {"rows": (4000, 16000), "features": (16, 64), "labels": (6, 24), "bins": (63, 255)}
GROWTH_ROUNDS = 20
BASE = {"rows": 4000, "features": 16, "labels": 6, "bins": 255}


def middle(runs: list[Measured]) -> Measured:
    """The median of each figure; times by the clock and of the processor apart."""
    first, each = (Seconds(*map(median, zip(*parts))) for parts in zip(*((run.first, run.each) for run in runs)))
    return Measured(first, each, median(run.memory for run in runs), median(run.kl for run in runs))


def compare(source: str, options: argparse.Namespace) -> str:
    """One set: a row a competitor, and how many times as long either XGBoost takes."""
    rounds = options.rounds or ROUNDS.get(source, 4)
    setting = Setting(rounds, options.depth, options.bins, threads=options.threads)
    # Starting processes takes longer than a small set.
    one = partial(measure, memory=True) if options.quick else measure_apart
    turns = take_turns(options.models, options.turns, lambda name, _: one(name, source, setting))
    found = {name: middle(runs) for name, runs in turns.items()}
    rows = [
        (name, f"{one.each.clock:.3f}", f"{one.each.processor:.3f}", f"{one.first.clock:.2f}",
         f"{one.memory:.0f}", f"{one.kl:.4f}")
        for name, one in found.items()
    ]  # fmt: skip
    text = markdown((f"{source}, {rounds} rounds", *HEADER[1:]), rows)
    for other in [name for name in (THEIRS, THEIRS_SOFT) if name in found]:
        theirs = found[other]
        ratios = [
            f"{name}: a round takes 1/{theirs.each.clock / one.each.clock:.1f} of its time (of the processor's "
            f"1/{theirs.each.processor / one.each.processor:.1f}), memory 1/{theirs.memory / max(one.memory, 1.0):.1f}"
            for name, one in found.items() if name not in (THEIRS, THEIRS_SOFT)
        ]  # fmt: skip
        text += f"\n\nBeside {other}: {'; '.join(ratios)}."
    return text


def growth(options: argparse.Namespace) -> str:
    """Milliseconds of a round as one size grows, the others as in ``BASE``."""
    names = [name for name in (OURS, THEIRS) if name in options.models]
    rows = []
    base_shape = BASE if not options.quick else {**BASE, "rows": 400}
    for what, sizes in GROWTH.items() if not options.quick else [("labels", (2, 4))]:
        for size in sizes:
            shape = {**base_shape, what: size}
            source = f"{shape['rows']}x{shape['features']}x{shape['labels']}"
            rounds = 10 if options.quick else GROWTH_ROUNDS
            setting = Setting(rounds, options.depth, shape["bins"], threads=options.threads)
            work = partial(measure, source=source, setting=setting, memory=False)
            turns = take_turns(names, options.turns, lambda name, _, work=work: work(name))  # type: ignore[misc]
            rows.append((f"{size} {what}", *(f"{1e3 * middle(turns[name]).each.processor:.1f}" for name in names)))
    base = ", ".join(f"{size} {what}" for what, size in base_shape.items())
    return markdown((f"processor time of a round, ms ({base} but for)", *names), rows)


def main() -> None:
    """Measure, print, and write the block of a page."""
    options = parse()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    theirs = [name for name in options.models if name in (THEIRS, THEIRS_SOFT)]
    if theirs and find_spec("xgboost") is None:
        raise LDLError(
            f"{theirs[0]!r} needs xgboost, which is not installed: pip install -e '.[peers]', or name other --models"
        )
    head = f"Depth {options.depth}, {options.bins} bins, {options.threads} threads; medians of {options.turns} turns."
    parts = [head, *(compare(source, options) for source in options.sets)]
    if not options.no_growth:
        parts.append(growth(options))
    text = "\n\n".join(parts)
    print(text)
    if options.page:
        write_block(options.page, "boosted_trees_speed", text)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, threads=2, block="boosted_trees_speed")
    parser.add_argument("--sets", nargs="+", default=list(ROUNDS), help="(default: %(default)s)")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="(default: all)")
    parser.add_argument("--rounds", type=int, help="(default: 20 on Movie, 4 elsewhere)")
    parser.add_argument("--depth", type=int, default=6, help="(default: %(default)s)")
    parser.add_argument("--bins", type=int, default=255, help="(default: %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--no-growth", action="store_true", help="only the comparison")
    parser.add_argument("--quick", action="store_true", help="a small made-up set, one turn, two rounds, one process")
    options = parser.parse_args()
    if options.quick:
        options.sets, options.rounds, options.turns, options.depth = ["400x5x4"], 2, 1, 3
    return options


if __name__ == "__main__":
    launch(main)
