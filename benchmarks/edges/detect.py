"""Probabilities of edges on the images of a part, by a checkpoint or by gradient magnitude: grey PNGs of 16 bits.

    python benchmarks/edges/detect.py --ckpt_path runs/softmax/checkpoints/last.ckpt --parts val test --out runs/maps

Images whose map is there are left out. Networks look at an image in the sizes that a test of their run does;
``--single`` takes it as it is, and not mirrored.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from ldl.backbones import PixelFeatures
from ldl.data.edges.bsds500 import BSDS500, list_part
from ldl.data.pictures import read_picture
from ldl.edges.benchmark.gradient import gradient_magnitude
from ldl.edges.benchmark.maps import write_probability
from ldl.progress import track
from ldl.task import Task

Detector = Callable[[np.ndarray], np.ndarray]
"""Turns a picture, (H, W, 3) uint8, into edge strengths, (H, W) in 0..1."""


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, threads=1)
    parser.add_argument("--ckpt_path", type=Path, help="the checkpoint (default: gradient magnitude)")
    parser.add_argument("--single", action="store_true", help="look at an image in one size, and not mirrored")
    parser.add_argument("--path", help="folder with images and groundTruth (default: that below LDL_DATA)")
    parser.add_argument("--parts", nargs="+", default=["val", "test"], help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="folder that gets a folder of maps for each part")
    return parser.parse_args()


def main() -> None:
    """Write what is missing."""
    options = parse()
    torch.set_num_threads(options.threads)
    detector = trained(options.ckpt_path, options.single) if options.ckpt_path else gradient_magnitude
    for part in options.parts:
        detect(detector, list_part(BSDS500(path=options.path).folder, part), options.out / part)


def trained(checkpoint: Path, single: bool = False) -> Detector:
    """The detector of a checkpoint. Raises LDLError."""
    task = Task.load_from_checkpoint(checkpoint)
    if single and isinstance(task.backbone, PixelFeatures):
        task.backbone.scales, task.backbone.mirror = (1.0,), False

    @torch.inference_mode()
    def detector(picture: np.ndarray) -> np.ndarray:
        return task(torch.tensor(picture).permute(2, 0, 1)[None])[0, ..., 1].numpy()

    return detector


def detect(detector: Detector, images: list[Path], folder: Path) -> None:
    """Write ``NAME.png`` of every image that has none."""
    missing = [image for image in images if not (folder / f"{image.stem}.png").is_file()]
    for image in track(missing, len(missing), f"maps into {folder}", True):
        write_probability(folder / f"{image.stem}.png", detector(read_picture(image)))


if __name__ == "__main__":
    launch(main)
