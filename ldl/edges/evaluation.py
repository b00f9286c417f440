"""The benchmark of BSDS500 (Arbelaez et al., PAMI 2011) on any folder of edge maps.

``python -m ldl.edges.evaluation --pred DIR --gt DIR --out FILE.json`` compares ``NAME.png`` (grey, 8 bit, 255 is the
most certain edge) with ``NAME.mat``, or ``NAME.png`` of one annotator. Suppress the non-maxima of the maps before.
``--crisp`` expects maps as predicted, without suppression, and does not thin them (CEval, see
:mod:`ldl.edges.benchmark.evaluation`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ldl.checkpoint import OUTPUT_ADVICE
from ldl.command.options import at_home, check_replaceable
from ldl.edges.benchmark.evaluation import agreement, evaluate_crisp, evaluate_folder, open_folder
from ldl.edges.benchmark.ground_truth import read_ground_truth, truth_file
from ldl.edges.benchmark.matching import MAX_DIST
from ldl.edges.charts import precision_recall
from ldl.edges.metrics import EDGE_METRICS
from ldl.errors import LDLError, explaining
from ldl.reports.files import write_json


def main(args: list[str] | None = None) -> None:
    """Run the command line; a mistake of the user ends in one line on standard error and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m ldl.edges.evaluation", description="Benchmark of edge maps.")
    add_options(parser)
    run(parser, evaluate, args)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of :func:`evaluate`."""
    parser.add_argument("--pred", type=Path, required=True, help="Folder of NAME.png, grey, 8 bit, thin edges.")
    parser.add_argument("--gt", type=Path, required=True, help="Folder of NAME.mat, in BSDS500's layout, or NAME.png.")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write.")
    parser.add_argument("--thresholds", type=int, default=99, help="Number of thresholds.")
    parser.add_argument("--max_dist", type=float, default=MAX_DIST, help="Tolerance, as a share of the diagonal.")
    parser.add_argument("--no_thinning", action="store_true", help="Do not thin the maps at every threshold.")
    parser.add_argument(
        "--crisp", action="store_true", help="CEval: maps as predicted, not thinned; writes ac, stricter."
    )
    parser.add_argument(
        "--allow_empty", action="store_true", help="Accept maps that are 0 everywhere, 0 and 1, or mostly edge."
    )
    parser.add_argument("--workers", type=int, default=None, help="Images at once; default: all processors.")
    parser.add_argument("--human", action="store_true", help="Evaluate the agreement of the annotators too.")
    parser.add_argument("--chart", type=Path, default=None, help="PNG of the precision-recall curve to draw.")


def evaluate(options: argparse.Namespace) -> None:
    """Write the JSON file, draw the chart and print the metrics. Raises LDLError."""
    check_out(options.out, '{"ods":')
    shared = {"max_dist": options.max_dist, "workers": options.workers, "show_progress": sys.stderr.isatty()}
    folders, levels = (options.pred, options.gt, options.allow_empty), options.thresholds
    more: dict[str, Any] = {}
    if options.crisp:
        evaluation, more = evaluate_crisp(*open_folder(*folders), levels=levels, **shared)
    else:
        evaluation = evaluate_folder(*folders, levels=levels, thinning=not options.no_thinning, **shared)
    content = evaluation.to_dict() | more
    point = None
    if options.human:
        point = agreement(evaluation.names, lambda name: read_ground_truth(truth_file(options.gt, name)), **shared)
        content["human"] = point and point._asdict()
    write_json(options.out, content, OUTPUT_ADVICE)
    if options.chart is not None:
        with drawing(options.chart):
            precision_recall(options.chart, {options.pred.name: evaluation}, point)
    names = (*EDGE_METRICS, "ac") if options.crisp else EDGE_METRICS
    print(" ".join(f"{name} {content[name]:.4f}" for name in names))


def run(parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], None], args: list[str] | None) -> None:
    """Run the work of a command line; a mistake of the user ends in one line on standard error and exit code 2."""
    options = at_home(parser.parse_args(args))
    try:
        work(options)
    except LDLError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def check_out(path: Path, begins: str) -> None:
    """Create the folder of an output file before the evaluation.

    Raises LDLError if the file exists and does not begin with ``begins``, so this command did not write it.
    """
    with explaining(f"--out {path} cannot be written", OUTPUT_ADVICE, (OSError,)):
        path.parent.mkdir(parents=True, exist_ok=True)
    check_replaceable(path, "--out", begins)


@contextmanager
def drawing(path: Path) -> Iterator[None]:
    """Draw a chart in this context. Raises LDLError if it cannot be written, or in a format that does not exist."""
    with explaining(f"--chart {path} cannot be written", "the results are in --out", (OSError, ValueError)):
        yield


if __name__ == "__main__":
    main()
