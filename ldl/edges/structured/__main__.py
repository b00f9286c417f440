"""Structured edges from the command line: train, detect, evaluate, draw the curve.

``python -m ldl.edges.structured --run_dir DIR`` leaves in the run directory its ``config.yaml``, the forest, an edge
map of every test image (``edges/``, PNG of 8 bit, thin), ``results.json`` and ``evaluation.json`` with the figures and
counts of :mod:`ldl.edges.benchmark.evaluation`, and charts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import jsonargparse
import numpy as np
import torch

from ldl.data.edges.bsds500 import BSDS500
from ldl.edges.benchmark.evaluation import write_edge_map
from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.scores import scores
from ldl.edges.structured.channels import PATCH
from ldl.edges.structured.detector import DetectorSettings, EdgeDetector
from ldl.edges.structured.forest import ForestSettings, load_forest, save_forest, train_forest
from ldl.edges.structured.neighbours import NeighbourSettings
from ldl.edges.structured.patches import Scene, make_scene
from ldl.errors import LDLError
from ldl.progress import track
from ldl.reports.edges import edge_map, judge
from ldl.reports.files import write_json

T = TypeVar("T")

_OF_NETWORKS = {"target", "tolerance", "crop", "flips", "turns", "negatives", "batch_size", "num_workers"}
"""Arguments of the data that only networks need."""


def run(
    data: BSDS500,
    forest: ForestSettings,
    detector: DetectorSettings,
    dsna: NeighbourSettings,
    run_dir: Path = Path("runs/structured_edges"),
    load: Path | None = None,
    levels: int = 99,
    workers: int | None = None,
) -> dict[str, Any]:
    """Train on the protocol's training part, detect and evaluate on its test part.

    Args:
        data: The images.
        forest: How the forest is trained.
        detector: How it is applied.
        dsna: How ``detector.dsna`` weighs neighbours.
        run_dir: Where everything goes.
        load: A trained forest, a ``.safetensors`` file, to use instead of training one.
        levels: Thresholds of the evaluation.
        workers: Images that are worked on at once; None takes the processors of this process.

    Returns:
        What ``results.json`` holds.

    Raises:
        LDLError: unusable images or ground truth, or a file that is no forest.
    """
    torch.set_num_threads(1)
    workers = workers or len(os.sched_getaffinity(0))
    data.crop = PATCH
    data.setup()
    started = time.perf_counter()
    if load is None:
        forest.check()
        detector.check(forest.trees)
        dsna.rules()
        if detector.dsna and not forest.kept:
            raise LDLError(
                "detector.dsna needs patches in the leaves; set forest.kept to how many a leaf keeps, such as 20"
            )
        grown = train_forest(_scenes(data, workers), forest, sys.stderr.isatty())
        save_forest(grown, run_dir / "forest.safetensors", forest)
    else:
        grown = load_forest(load)
    trained = time.perf_counter()
    _detect(data, EdgeDetector(grown, detector, dsna), run_dir, workers)
    detected = time.perf_counter()
    evaluation, _ = judge(
        run_dir, data, data.split.test.tolist(), "structured edges", levels, workers, show_progress=sys.stderr.isatty()
    )
    metrics = scores(evaluation.thresholds, evaluation.counts)
    entry = {"fold": 0, "n_train": len(data.split.train), "n_test": len(data.split.test), "metrics": metrics}
    results = {
        "head": "structured_edges",
        "data": type(data).__name__,
        "protocol": data.protocol,
        "leaky": data.leaky,
        "seed": forest.seed,
        "folds": [entry],
        "mean": metrics,
        "std": dict.fromkeys(metrics, 0.0),
        "fit_seconds": round(trained - started, 3) if load is None else None,
        "images_per_second": round(len(data.split.test) / (detected - trained), 3),
        "versions": {name: version(name) for name in ("ldl", "torch", "numpy", "numba")},
    }
    write_json(run_dir / "results.json", results)
    return results


def _scenes(data: BSDS500, workers: int) -> list[Scene]:
    def one(row: int) -> Scene:
        image, truth = data.read(row)
        if truth.segments is None:
            raise LDLError(
                f"the ground truth of {data.images[row]} has no Segmentation; structured edges learn from it"
            )
        return make_scene(image, truth.boundaries, truth.segments)

    return _in_threads(one, data.split.train, "reading images", workers)


def _detect(data: BSDS500, detector: EdgeDetector, run_dir: Path, workers: int) -> None:
    def one(row: int) -> None:
        write_edge_map(edge_map(run_dir, data, row), suppress(detector.detect(data.read(row)[0])))

    _in_threads(one, data.split.test, "detecting edges", workers)


def _in_threads(work: Callable[[int], T], rows: np.ndarray, what: str, workers: int) -> list[T]:
    with ThreadPoolExecutor(workers) as pool:
        return list(track(pool.map(work, rows), len(rows), what, sys.stderr.isatty()))


def main(args: list[str] | None = None) -> None:
    """The command line; a mistake of the user ends in one line on standard error and exit code 2."""
    parser = jsonargparse.ArgumentParser(prog="python -m ldl.edges.structured", description="Structured edges.")
    parser.add_argument("-c", "--config", action="config", help="YAML file with any of these options.")
    parser.add_class_arguments(BSDS500, "data", skip=_OF_NETWORKS)
    parser.add_class_arguments(ForestSettings, "forest")
    parser.add_class_arguments(DetectorSettings, "detector")
    parser.add_class_arguments(NeighbourSettings, "dsna")
    parser.add_function_arguments(run, skip={"data", "forest", "detector", "dsna"})
    config = parser.parse_args(args)
    try:
        run_dir = Path(config.run_dir)
        run_dir.mkdir(parents=True, exist_ok=True)
        parser.save(config, run_dir / "config.yaml", overwrite=True)
        config.pop("config")
        results = run(**parser.instantiate(config))
    except LDLError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(" ".join(f"{name} {value:.4f}" for name, value in results["mean"].items()))


if __name__ == "__main__":
    main()
