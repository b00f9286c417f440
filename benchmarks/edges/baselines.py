"""The two ends of the edge benchmark: annotators against each other, and gradient magnitude. Also how long it takes.

    python benchmarks/edges/baselines.py [--part test] [--images 200]

The data lie below LDL_DATA, in BSDS500/data. Annotators: each in turn against the others of the same image. Gradient
magnitude: a Gaussian of sigma 2, non-maxima suppressed, 99 thresholds. Published: F .803, and ODS .60.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from ldl.data.edges.bsds500 import BSDS500, list_part
from ldl.data.edges.images import truth_of
from ldl.data.pictures import read_picture
from ldl.edges.benchmark.evaluation import agreement, evaluate
from ldl.edges.benchmark.gradient import gradient_magnitude
from ldl.edges.benchmark.ground_truth import GroundTruth, read_ground_truth
from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.scores import scores
from ldl.reports.files import markdown


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, block="edges_baselines")
    parser.add_argument("--path", type=Path, default=None, help="folder with images and groundTruth")
    parser.add_argument("--part", default="test", help="train, val or test")
    parser.add_argument("--images", type=int, default=None, help="only so many images")
    parser.add_argument("--workers", type=int, default=1, help="images at once")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = parse()
    folder = BSDS500(path=options.path and str(options.path)).folder
    images = {image.stem: image for image in list_part(folder, options.part)[: options.images]}
    maps = {
        name: np.round(255 * suppress(gradient_magnitude(read_picture(image)))) / 255 for name, image in images.items()
    }

    def truth(name: str) -> GroundTruth:
        return read_ground_truth(truth_of(images[name]))

    shared = {"workers": options.workers, "show_progress": True}
    point = agreement(list(images), truth, **shared)
    start = time.process_time()
    measured = evaluate(list(images), lambda name: (maps[name], truth(name)), **shared)
    seconds = (time.process_time() - start) / len(images)
    figures = scores(measured.thresholds, measured.counts)
    rows = [["gradient magnitude", *(f"{value:.4f}" for value in figures.values())]]
    if point is not None:
        rows.append(["annotators", f"{point.f:.4f}", "", "", ""])
    title = f"BSDS500, {options.part}, {len(images)} images; {seconds:.2f} s of processor time an image"
    header = ["detector", "ODS", "OIS", "AP", "R50"]
    show(title, header, rows)
    if options.page:
        write_block(options.page, "edges_baselines", f"{title}.\n\n{markdown(header, rows)}")


if __name__ == "__main__":
    launch(main)
