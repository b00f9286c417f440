"""Votes of annotators against any folder of maps of probabilities: likelihood, Brier score, calibration.

``python -m ldl.edges.votes --pred DIR --gt DIR --out FILE.json`` compares ``NAME.png`` (grey, 8 or 16 bit, white is a
certain edge) with ``NAME.mat``. Maps are probabilities and are not thinned. ``--fit_pred`` and ``--fit_gt``, maps and
ground truth of other images, add the scores after the calibration that fits those images best.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from ldl.checkpoint import OUTPUT_ADVICE
from ldl.edges.benchmark.ground_truth import check_edge_map, paired, read_ground_truth, read_probability, truth_file
from ldl.edges.benchmark.votes import CALIBRATION_BINS, VoteCounts, count_votes, to_dict
from ldl.edges.charts import reliability_diagram
from ldl.edges.evaluation import check_out, drawing, run
from ldl.errors import LDLError
from ldl.reports.files import write_json


def main(args: list[str] | None = None) -> None:
    """Run the command line; a mistake of the user ends in one line on standard error and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m ldl.edges.votes", description="Votes against edge maps.")
    parser.add_argument("--pred", type=Path, required=True, help="Folder of NAME.png, grey, 8 or 16 bit, not thinned.")
    parser.add_argument("--gt", type=Path, required=True, help="Folder of NAME.mat, in BSDS500's layout.")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write.")
    parser.add_argument("--fit_pred", type=Path, default=None, help="Maps of other images, to calibrate on.")
    parser.add_argument("--fit_gt", type=Path, default=None, help="Ground truth of those.")
    parser.add_argument("--bins", type=int, default=CALIBRATION_BINS, help="Bins of the calibration error.")
    parser.add_argument("--chart", type=Path, default=None, help="PNG of the reliability diagrams to draw.")
    run(parser, evaluate, args)


def evaluate(options: argparse.Namespace) -> None:
    """Write the JSON file, draw the chart and print the likelihoods. Raises LDLError."""
    if (options.fit_pred is None) != (options.fit_gt is None):
        missing = "fit_gt" if options.fit_gt is None else "fit_pred"
        raise LDLError(f"--{missing} is missing: a calibration takes both, maps and ground truth of other images")
    if options.bins < 1:
        raise LDLError(f"--bins {options.bins} must be at least 1")
    check_out(options.out, '{"images":')
    counts = count_folder(options.pred, options.gt)
    ways = {"raw": counts.stated()}
    if options.fit_pred is not None:
        ways["calibrated"] = count_folder(options.fit_pred, options.fit_gt).calibrated()
    content = to_dict(counts, ways, options.bins)
    write_json(options.out, content, OUTPUT_ADVICE)
    if options.chart is not None:
        with drawing(options.chart):
            reliability_diagram(options.chart, counts.tallies, ways, options.bins)
    for way in ("constant", *ways):
        scores = content[way]["all"]
        print(way, " ".join(f"{question} {scores[question]['nll']:.5f}" for question in scores), "nats")


def count_folder(pred: Path, gt: Path) -> VoteCounts:
    """Count the votes of ``gt`` at the levels of ``pred``. Raises LDLError for files that are missing or do not fit."""

    def load(name: str) -> tuple[np.ndarray, int, np.ndarray]:
        strength, steps = read_probability(path := pred / f"{name}.png")
        check_edge_map(path, strength, "save probabilities with 16 bits, white for certain edges")
        return strength, steps, read_ground_truth(truth_file(gt, name)).boundaries

    return count_votes(paired(pred, gt), load, sys.stderr.isatty())


if __name__ == "__main__":
    main()
