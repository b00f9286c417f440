"""Structured edges on validation images: learning curve, cost-sensitive nodes, DSNA.

    python benchmarks/edges/structured.py --patches 25000 100000 --trees 4 8 --every 5
    python benchmarks/edges/structured.py --hyperplanes 0 10 --dsna --every 2          # the ablation

Trains on the part ``train``, detects on every n-th image of ``val``: the test part is not looked at. Times are
processor seconds of one thread.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import write_block
from ldl.collective import Collective
from ldl.data.edges.bsds500 import BSDS500
from ldl.edges.benchmark.evaluation import evaluate
from ldl.edges.benchmark.ground_truth import GroundTruth
from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.scores import scores
from ldl.edges.structured.channels import PATCH
from ldl.edges.structured.gradients import CONTRAST_FLOOR
from ldl.edges.structured.patches import Scene, make_scene
from ldl.heads import StructuredEdges
from ldl.reports.files import markdown


def main() -> None:
    """Print a row for every setting."""
    parser = make_parser(__doc__, block="structured_edges_dsna")
    parser.add_argument("--path", help="folder with images and groundTruth (default: that below LDL_DATA)")
    parser.add_argument("--patches", type=int, nargs="+", default=[25_000], help="(default: %(default)s)")
    parser.add_argument("--hyperplanes", type=int, nargs="+", default=[0], help="(default: %(default)s)")
    parser.add_argument("--trees", type=int, nargs="+", default=[8], help="half of them vote (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of patches and trees (default: %(default)s)")
    parser.add_argument("--dsna", action="store_true", help="also weigh 20 kept patches of each leaf by DSNA")
    parser.add_argument("--every", type=int, default=5, help="step through the images of val (default: %(default)s)")
    parser.add_argument("--levels", type=int, default=24, help="thresholds (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = BSDS500(path=options.path, crop=PATCH)
    data.setup()
    scenes = read_scenes(data)
    tested = {str(row): data.read(row) for row in data.split.test[:: options.every]}
    print(f"{len(scenes)} training images, {len(tested)} tested")
    print("patches trees hyperplanes  dsna   ODS   OIS    AP   train s  detect s")
    rows = []
    for patches, trees, hyperplanes in itertools.product(options.patches, options.trees, options.hyperplanes):
        settings = {
            "trees": trees, "patches": patches, "hyperplanes": hyperplanes, "votes": max(1, trees // 2),
            "kept": 20 if options.dsna else 0, "seed": options.seed, "threads": 1,
        }  # fmt: skip
        started = time.process_time()
        fitted = built(data, **settings)
        fitted.fit_scenes(scenes, Collective())
        seconds = time.process_time() - started
        for dsna in (False, True) if options.dsna else (False,):
            head = built(data, **settings, dsna=dsna)
            head.load_state_dict(fitted.state_dict())
            # The first image waits for rings and codes of all leaves.
            head(torch.zeros(1, 3, 32, 32, dtype=torch.uint8))
            figures, detection = measure(head, tested, options.levels)
            row = [patches, trees, hyperplanes, "yes" if dsna else "no", *(f"{figure:.3f}" for figure in figures)]
            rows.append([*map(str, row), f"{seconds:.1f}", f"{detection:.3f}"])
            widths = (7, 6, 12, 6, 6, 6, 6, 10, 10)
            print("".join(f"{cell:>{width}}" for cell, width in zip(rows[-1], widths)), flush=True)
    if options.page:
        header = ["patches", "trees", "hyperplanes", "DSNA", "ODS", "OIS", "AP", "training s", "seconds an image"]
        protocol = f"Every {options.every}th image of val, {options.levels} thresholds, seconds of one processor."
        write_block(options.page, "structured_edges_dsna", f"{protocol}\n\n{markdown(header, rows)}")


def read_scenes(data: BSDS500, floor: float = CONTRAST_FLOOR, most: int | None = None) -> list[Scene]:
    """The training images, or at most so many, ready to cut patches from."""
    read = [data.read(row) for row in data.split.train[:most]]
    drawn = [(image, truth.boundaries, truth.segments) for image, truth in read if truth.segments is not None]
    return [make_scene(*scene, floor) for scene in drawn]


def built(data: BSDS500, **options: Any) -> StructuredEdges:
    """A head for the labels of the data."""
    head = StructuredEdges(**options)
    head.build(3, data.labels)
    return head


def measure(
    head: StructuredEdges, tested: dict[str, tuple[np.ndarray, GroundTruth]], levels: int
) -> tuple[list[float], float]:
    """ODS, OIS and AP, and seconds of detection an image."""
    started = time.process_time()
    maps = {
        name: suppress(head(torch.tensor(image).permute(2, 0, 1)[None])[0, ..., 1].numpy())
        for name, (image, _) in tested.items()
    }
    seconds = (time.process_time() - started) / len(maps)

    def compared(name: str) -> tuple[np.ndarray, GroundTruth]:
        return np.round(maps[name] * 255) / 255, tested[name][1]

    evaluation = evaluate(list(tested), compared, levels)
    figures = scores(evaluation.thresholds, evaluation.counts)
    return [figures[name] for name in ("ods", "ois", "ap")], seconds


if __name__ == "__main__":
    launch(main)
