"""Votes of annotators against any folder of maps of probabilities: likelihood, Brier score, calibration.

``python -m ldl.edges.votes --pred DIR --gt DIR --out FILE.json`` compares ``NAME.png`` (grey, 8 or 16 bit, white is an
edge for certain) with ``NAME.mat``. Maps are taken as probabilities as they are, not thinned; with ``--fit_pred`` and
``--fit_gt``, maps and ground truth of other images, also after the calibration that fits those best.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from ldl.charts.votes import reliability_diagram
from ldl.checkpoint import MENDED_OUT
from ldl.edges.benchmark.evaluation import paired
from ldl.edges.benchmark.ground_truth import read_ground_truth
from ldl.edges.benchmark.maps import read_probability
from ldl.edges.benchmark.proper import BINS
from ldl.edges.benchmark.vote_counts import VoteCounts, count_votes, to_dict
from ldl.edges.command import check_chart, check_out, drawing, run
from ldl.errors import LDLError
from ldl.reports.files import write_json


def main(args: list[str] | None = None) -> None:
    """The command line; a mistake of the user ends in one line on standard error and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m ldl.edges.votes", description="Votes against edge maps.")
    parser.add_argument("--pred", type=Path, required=True, help="Folder of NAME.png, grey, 8 or 16 bit, not thinned.")
    parser.add_argument("--gt", type=Path, required=True, help="Folder of NAME.mat, in BSDS500's layout.")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write.")
    parser.add_argument("--fit_pred", type=Path, default=None, help="Maps of other images, to calibrate on.")
    parser.add_argument("--fit_gt", type=Path, default=None, help="Ground truth of those.")
    parser.add_argument("--bins", type=int, default=BINS, help="Bins of the calibration error.")
    parser.add_argument("--chart", type=Path, default=None, help="PNG of the reliability diagrams to draw.")
    run(parser, evaluate, args)


def evaluate(options: argparse.Namespace) -> None:
    """Write the JSON file, draw the chart, print the likelihoods. Raises LDLError."""
    if (options.fit_pred is None) != (options.fit_gt is None):
        missing = "fit_gt" if options.fit_gt is None else "fit_pred"
        raise LDLError(f"--{missing} is missing: a calibration takes both, maps and ground truth of other images")
    if options.bins < 1:
        raise LDLError(f"--bins {options.bins} must be at least 1")
    check_out(options.out)
    check_chart(options.chart)
    counts = count_folder(options.pred, options.gt)
    ways = {"raw": counts.stated()}
    if options.fit_pred is not None:
        ways["calibrated"] = count_folder(options.fit_pred, options.fit_gt).calibrated()
    content = to_dict(counts, ways, options.bins)
    write_json(options.out, content, MENDED_OUT)
    if options.chart is not None:
        with drawing(options.chart):
            reliability_diagram(options.chart, counts.tallies, ways, options.bins)
    for way in ("constant", *ways):
        figures = content[way]["all"]
        print(way, " ".join(f"{question} {figures[question]['nll']:.5f}" for question in figures), "nats")


def count_folder(pred: Path, gt: Path) -> VoteCounts:
    """Count the votes of ``gt`` at the levels of ``pred``. Raises LDLError for files that miss or do not fit."""

    def load(name: str) -> tuple[np.ndarray, int, np.ndarray]:
        return *read_probability(pred / f"{name}.png"), read_ground_truth(gt / f"{name}.mat").boundaries

    return count_votes(paired(pred, gt), load, sys.stderr.isatty())


if __name__ == "__main__":
    main()
