"""How well annotators' votes are predicted: likelihood, Brier score, calibration, of people and of detectors.

    for head in structured softmax ldlf; do
        python train.py -c configs/runs/bsds/$head.yaml --run_dir runs/votes/$head/run
        python benchmarks/edges/detect.py --ckpt_path runs/votes/$head/run/checkpoints/last.ckpt --out runs/votes/$head
        # of softmax and ldlf also: --single --out runs/votes/$head/single
    done
    python benchmarks/edges/detect.py --out runs/votes/gradient
    python benchmarks/edges/votes.py --maps runs/votes

Trained on the part ``train``; what each level of a map stands for is fitted on ``val``, by isotonic regression for all
alike, and so is how the annotators' floor is smoothed; scored on ``test``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from ldl.data.edges.bsds500 import BSDS500, list_part
from ldl.data.edges.images import truth_of
from ldl.edges.benchmark.ground_truth import read_ground_truth
from ldl.edges.benchmark.left_out import Smoothing
from ldl.edges.benchmark.vote_counts import Probabilities, VoteCounts, count_left_out
from ldl.edges.benchmark.votes import QUESTIONS
from ldl.edges.votes import count_folder
from ldl.progress import track
from ldl.reports.files import markdown

SIGMAS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
PRIORS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
NAMES = {
    "gradient": "gradient magnitude",
    "structured": "structured edges",
    "softmax/single": "`Softmax`, one size",
    "softmax": "`Softmax`",
    "ldlf/single": "`LDLF`, one size",
    "ldlf": "`LDLF`",
}
FLOOR = "annotators, one left out"


class Row(NamedTuple):
    """What was counted on ``test``, and what the levels stand for: as they say, and as fitted on ``val``."""

    counts: VoteCounts
    raw: Probabilities
    calibrated: Probabilities


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, block="edges_votes")
    parser.add_argument("--maps", type=Path, required=True, help="folder with DETECTOR/val and DETECTOR/test")
    parser.add_argument("--detectors", nargs="+", default=list(NAMES), help="(default: %(default)s)")
    parser.add_argument("--path", help="folder with images and groundTruth (default: that below LDL_DATA)")
    parser.add_argument("--every", type=int, default=4, help="images of val to choose the smoothing on")
    return parser.parse_args()


def main() -> None:
    """Count, calibrate, score; print the tables and write them down."""
    options = parse()
    folder = BSDS500(path=options.path).folder
    drawn = {
        part: [read_ground_truth(truth_of(image)).boundaries for image in list_part(folder, part)]
        for part in ("val", "test")
    }
    rows: dict[str, Row] = {}
    for name in options.detectors:
        val, test = (count_folder(options.maps / name / part, folder / "groundTruth" / part) for part in drawn)
        rows.setdefault("base rate", Row(test, val.constant(), val.constant()))
        rows[NAMES.get(name, name)] = Row(test, test.stated(), val.calibrated())
    smoothing = chosen(drawn["val"][:: options.every], rows["base rate"].raw)
    people = {part: left_out(found, smoothing) for part, found in drawn.items()}
    rows[FLOOR] = Row(people["test"], people["test"].stated(), people["val"].calibrated())
    text = [
        f"{len(drawn['test'])} images. Smoothing of the annotators' floor: "
        + ", ".join(f"{name}: sigma {how.sigma:g}, prior {how.prior:g}" for name, how in smoothing.items())
    ]
    for title, region, calibrated in (
        ("All pixels, calibrated on val", "all", True),
        ("All pixels, as predicted", "all", False),
        ("Within 5 pixels of an edge, calibrated on such pixels of val", "band", True),
    ):
        header, cells = table(rows, region, calibrated)
        show(title, header, cells)
        text.append(f"{title}:\n\n{markdown(header, cells)}")
    if options.page:
        write_block(options.page, "edges_votes", "\n\n".join(text))


def table(rows: Mapping[str, Row], region: str, calibrated: bool) -> tuple[list[str], list[list[str]]]:
    """Scores in a region, and the correlation of disagreement; header and cells."""
    shown = ("nll", "brier", "ece", "ece_mass")
    header = ["", *(f"{question} {name}" for question in QUESTIONS for name in ("NLL", "Brier", "ECE", "mass"))]
    lines = []
    for name, row in rows.items():
        probabilities = row.calibrated if calibrated else row.raw
        scores = row.counts.scores(probabilities)[region]
        found = row.counts.correlations(probabilities).get(region, np.nan)
        cells = [f"{scores[question][score]:.4f}" for question in QUESTIONS for score in shown]
        lines.append([name, *cells, "" if np.isnan(found) else f"{found:.3f}"])
    return [*header, "disagreement"], lines


def left_out(images: Iterable[np.ndarray], smoothing: Mapping[str, Smoothing]) -> VoteCounts:
    """Count the votes of annotators at the levels that the others of their image foretell."""
    images, counts = list(images), VoteCounts()
    for boundaries in track(images, len(images), "annotators", sys.stderr.isatty()):
        count_left_out(boundaries, smoothing, counts)
    return counts


def chosen(images: list[np.ndarray], rates: Probabilities) -> dict[str, Smoothing]:
    """The smoothing under which the votes of these images are likeliest: the blur first, then the prior."""
    best = {}
    for question in ("drawn", "near"):
        rate = float(rates["all", question][0])

        def nll(sigma: float, prior: float, question: str = question, rate: float = rate) -> float:
            counts = left_out(images, {question: Smoothing(sigma, prior, rate)})
            return counts.scores(counts.stated())["all"][question]["nll"]

        sigma = min(SIGMAS, key=lambda sigma: nll(sigma, 0.1))
        prior = min(PRIORS, key=lambda prior: nll(sigma, prior))
        best[question] = Smoothing(sigma, prior, rate)
    return best


if __name__ == "__main__":
    launch(main)
