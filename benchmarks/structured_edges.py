"""Learning curve of structured edges, and cost-sensitive nodes against plain ones, on validation images.

    python benchmarks/structured_edges.py --patches 25000 100000 --hyperplanes 0 3 --every 5

Trains on the part ``train``, detects on every n-th image of ``val``: the test part is not looked at. Times are
processor seconds of one thread.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
import torch

from ldl.data.bsds500 import BSDS500
from ldl.edges.channels import PATCH
from ldl.edges.detector import EdgeDetector
from ldl.edges.evaluation import evaluate
from ldl.edges.forest import ForestSettings, train_forest
from ldl.edges.ground_truth import GroundTruth
from ldl.edges.nms import suppress
from ldl.edges.patches import make_scene
from ldl.edges.scores import scores


def main() -> None:
    """Print a row for every setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", help="folder with images and groundTruth (default: that below LDL_DATA)")
    parser.add_argument("--patches", type=int, nargs="+", default=[25_000], help="(default: %(default)s)")
    parser.add_argument("--hyperplanes", type=int, nargs="+", default=[0], help="(default: %(default)s)")
    parser.add_argument("--every", type=int, default=5, help="step through the images of val (default: %(default)s)")
    parser.add_argument("--levels", type=int, default=24, help="thresholds (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = BSDS500(path=options.path, crop=PATCH)
    data.setup()
    scenes = []
    for row in data.split.train:
        image, truth = data.read(row)
        if truth.segments is not None:
            scenes.append(make_scene(image, truth.boundaries, truth.segments))
    tested = {str(row): data.read(row) for row in data.split.test[:: options.every]}
    print(f"{len(scenes)} training images, {len(tested)} tested")
    print("patches hyperplanes   ODS   OIS    AP   train s  detect s")
    for patches, hyperplanes in itertools.product(options.patches, options.hyperplanes):
        started = time.process_time()
        forest = train_forest(scenes, ForestSettings(patches=patches, hyperplanes=hyperplanes))
        trained = time.process_time()
        detector = EdgeDetector(forest)
        maps = {name: suppress(detector.detect(image)) for name, (image, _) in tested.items()}
        seconds = (time.process_time() - trained) / len(maps)

        def compared(name: str, maps: dict[str, np.ndarray] = maps) -> tuple[np.ndarray, GroundTruth]:
            return np.round(maps[name] * 255) / 255, tested[name][1]

        evaluation = evaluate(list(tested), compared, options.levels)
        figures = scores(evaluation.thresholds, evaluation.counts)
        row = " ".join(f"{figures[name]:.3f}" for name in ("ods", "ois", "ap"))
        print(f"{patches:7} {hyperplanes:11} {row} {trained - started:9.1f} {seconds:9.3f}", flush=True)


if __name__ == "__main__":
    main()
