"""How crisp edge maps are: the standard evaluation and CEval of detectors, and what their maps lose when thinned.

    python benchmarks/edges/crisp.py --part val --every 4 --models softmax=RUN/checkpoints/last.ckpt crisp=RUN/...

Gradient magnitude, and every model: its raw maps are evaluated neither suppressed nor thinned (CEval, tolerance as
usual and a quarter of it), and suppressed and thinned (standard). Networks look at one size of an image. Models must be
trained without the images of the part: choose on ``val``, and look at ``test`` once.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.edges.detect import Detector, trained
from ldl.data.edges.bsds500 import BSDS500, list_part
from ldl.data.edges.images import read_scene
from ldl.edges.benchmark.crispness import evaluate_crisp
from ldl.edges.benchmark.evaluation import evaluate
from ldl.edges.benchmark.gradient import gradient_magnitude
from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.scores import scores
from ldl.errors import LDLError
from ldl.reports.files import markdown

STRICT = 0.25
"""The tolerance of the stricter figure, as a share of the usual one."""
HEADER = [
    "detector", "standard ODS", "OIS", "AP", "CEval ODS", "OIS", "AP", "ODS at a quarter of the tolerance", "AC",
]  # fmt: skip


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, block="edges_crisp")
    parser.add_argument("--path", help="folder with images and groundTruth (default: that below LDL_DATA)")
    parser.add_argument("--part", default="val", help="train, val or test (default: %(default)s)")
    parser.add_argument("--every", type=int, default=1, help="step through the images (default: %(default)s)")
    parser.add_argument("--models", nargs="*", default=[], help="NAME=FILE.ckpt each")
    parser.add_argument("--levels", type=int, default=99, help="thresholds (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Print a row for every detector."""
    options = parse()
    torch.set_num_threads(1)
    if wrong := [text for text in options.models if "=" not in text]:
        raise LDLError(f"--models {wrong[0]!r} must be NAME=FILE.ckpt")
    detectors: dict[str, Detector] = {"gradient magnitude": gradient_magnitude}
    for text in options.models:
        name, _, file = text.partition("=")
        detectors[name] = trained(Path(file), single=True)
    images = list_part(BSDS500(path=options.path).folder, options.part)[:: options.every]
    rows = []
    for name, detect in detectors.items():
        rows.append([name, *(f"{figure:.3f}" for figure in measure(detect, images, options.levels))])
        print(*rows[-1], flush=True)
    title = f"BSDS500, {len(images)} images of {options.part}, {options.levels} thresholds"
    show(title, HEADER, rows)
    if options.page:
        write_block(options.page, "edges_crisp", f"{title}:\n\n{markdown(HEADER, rows)}")


def measure(detect: Detector, images: list[Path], levels: int) -> list[float]:
    """The figures of :data:`HEADER`, of maps of 8 bits."""
    scenes = {image.stem: read_scene(image) for image in images}
    raw = {name: as_saved(detect(picture)) for name, (picture, _) in scenes.items()}
    thin = {name: as_saved(suppress(strength)) for name, strength in raw.items()}
    names = list(scenes)
    shared: dict[str, Any] = {"levels": levels, "workers": 1}
    standard = evaluate(names, lambda name: (thin[name], scenes[name][1]), **shared)
    crisp, more = evaluate_crisp(names, lambda name: (raw[name], scenes[name][1]), stricter=(STRICT,), **shared)
    figures = [scores(one.thresholds, one.counts) for one in (standard, crisp)]
    strict = next(iter(more["stricter"].values()))["ods"]
    return [*(figure[name] for figure in figures for name in ("ods", "ois", "ap")), strict, more["ac"]]


def as_saved(strength: np.ndarray) -> np.ndarray:
    """Strengths as a PNG of 8 bits holds them."""
    return np.round(255 * strength) / 255


if __name__ == "__main__":
    launch(main)
