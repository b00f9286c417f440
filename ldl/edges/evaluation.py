"""The benchmark of BSDS500 (Arbelaez et al., PAMI 2011) on any folder of edge maps.

``python -m ldl.edges.evaluation --pred DIR --gt DIR --out FILE.json`` compares ``NAME.png`` (grey, 8 bit, 255 is the
surest edge) with ``NAME.mat``. Maps are taken as they are: suppress non-maxima before.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ldl.edges.counting import MAX_DIST, Counts, count
from ldl.edges.ground_truth import GroundTruth, read_ground_truth
from ldl.edges.scores import Optimum, curve, optimum, scores
from ldl.errors import LDLError
from ldl.progress import track
from ldl.results import write_json


class Evaluation(NamedTuple):
    """What was counted on N images at T thresholds.

    Attributes:
        names: The images.
        thresholds: (T,).
        counts: (N, T) each.
    """

    names: list[str]
    thresholds: np.ndarray
    counts: Counts

    def to_dict(self) -> dict[str, Any]:
        """The four figures, the curve, and the counts of every image, as plain values."""
        whole = curve(self.counts)
        best = optimum(self.thresholds, whole)
        images = {
            name: {field: column[row].tolist() for field, column in self.counts._asdict().items()}
            for row, name in enumerate(self.names)
        }
        return {
            **scores(self.thresholds, self.counts),
            "best": best._asdict(),
            "thresholds": self.thresholds.tolist(),
            "curve": {"recall": whole.recall.tolist(), "precision": whole.precision.tolist(), "f": whole.f.tolist()},
            "images": images,
        }


def thresholds(count: int = 99) -> np.ndarray:
    """``count`` thresholds, evenly spaced inside 0..1: k / (count + 1). Raises LDLError for less than one."""
    if count < 1:
        raise LDLError(f"thresholds {count} must be at least 1")
    return np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count)


def evaluate(
    names: Sequence[str],
    load: Callable[[str], tuple[np.ndarray, GroundTruth]],
    levels: int = 99,
    max_dist: float = MAX_DIST,
    thinning: bool = True,
    workers: int | None = None,
    show_progress: bool = False,
) -> Evaluation:
    """Compare edge maps with the annotators of their images, several images at a time.

    Args:
        names: The images.
        load: Gives the edge map of an image, (H, W) in 0..1, and what the annotators drew.
        levels: Number of thresholds.
        max_dist: How far apart corresponding pixels may be, as a share of the image's diagonal.
        thinning: Thin the map at every threshold.
        workers: Images that are compared at once; None takes the processors of this process.
        show_progress: Draw a progress bar.

    Raises:
        LDLError: no images, or a map that does not fit its ground truth; the message names the image.
    """
    if not names:
        raise LDLError("there are no images to evaluate")
    steps = thresholds(levels)

    def compare(name: str) -> Counts:
        strength, truth = load(name)
        try:
            return count(strength, truth.boundaries, steps, max_dist, thinning)
        except LDLError as error:
            raise LDLError(f"{name}: {error}") from None

    # Threads are enough: counting does not hold the interpreter's lock.
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        futures = [pool.submit(compare, name) for name in names]
        try:
            done = list(track((future.result() for future in futures), len(names), "evaluating", show_progress))
        finally:
            pool.shutdown(cancel_futures=True)
    return Evaluation(list(names), steps, Counts(*(np.stack(column) for column in zip(*done))))


def evaluate_folder(pred: Path, gt: Path, allow_empty: bool = False, **options: Any) -> Evaluation:
    """Compare every ``NAME.png`` of a folder with its ``NAME.mat`` in another.

    Args:
        pred: Folder of edge maps.
        gt: Folder of ground truth.
        allow_empty: Accept maps without a single edge, which else are taken for a mistake.
        **options: As for :func:`evaluate`.

    Raises:
        LDLError: a missing folder, an image without map or a map without ground truth, or a map that is not grey
            with 8 bits, is empty or has not the size of its ground truth.
    """
    names = _paired(pred, gt)

    def load(name: str) -> tuple[np.ndarray, GroundTruth]:
        strength = read_edge_map(pred / f"{name}.png")
        if not allow_empty and not strength.any():
            raise LDLError(f"{pred / f'{name}.png'} is empty, all 0; if that is meant, allow it with --allow_empty")
        return strength, read_ground_truth(gt / f"{name}.mat")

    return evaluate(names, load, **options)


def read_edge_map(path: Path) -> np.ndarray:
    """A PNG of 8 bits, grey or with three equal channels, as (H, W) float64 in 0..1. Raises LDLError for others."""
    try:
        with Image.open(path) as picture:
            mode, values = picture.mode, np.asarray(picture.convert("L") if picture.mode == "1" else picture)
    except (OSError, SyntaxError, ValueError) as error:
        raise LDLError(f"{path} cannot be read as a picture: {' '.join(str(error).split())[:160]}") from error
    if mode == "RGB" and (values == values[:, :, :1]).all():
        values = values[:, :, 0]
    elif mode not in ("1", "L"):
        kind = "has 16 bits or more" if mode.startswith(("I", "F")) else f"is a {mode} picture"
        raise LDLError(f"{path} {kind}; save edge maps as grey PNG of 8 bits, where 255 is the surest edge")
    return values / 255


def write_edge_map(path: Path, strength: np.ndarray) -> None:
    """Write (H, W) in 0..1 as a grey PNG of 8 bits, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.round(255 * np.asarray(strength)).astype(np.uint8)).save(path)


def human(names: Sequence[str], read: Callable[[str], GroundTruth], **options: Any) -> Evaluation:
    """How well annotators agree: each of them in turn is compared with the others of the same image.

    Args:
        names: The images.
        read: Gives what the annotators of an image drew.
        **options: As for :func:`evaluate`, but for ``levels`` and ``thinning``.

    Raises:
        LDLError: an image has a single annotator.
    """
    read = lru_cache(maxsize=16)(read)  # an image's turns follow each other
    turns = [(name, a) for name in names for a in range(len(read(name).boundaries))]

    def load(turn: str) -> tuple[np.ndarray, GroundTruth]:
        name, _, a = turn.rpartition(":")
        drawn = read(name).boundaries
        if len(drawn) < 2:
            raise LDLError(f"{name} has a single annotator; there is nobody to compare with")
        return drawn[int(a)].astype(float), GroundTruth(np.delete(drawn, int(a), 0), None)

    return evaluate([f"{name}:{a}" for name, a in turns], load, levels=1, thinning=False, **options)


def agreement(names: Sequence[str], read: Callable[[str], GroundTruth], **options: Any) -> Optimum | None:
    """What :func:`human` comes to, for the chart; None where every image has a single annotator."""
    several = [name for name in names if len(read(name).boundaries) > 1]
    if not several:
        return None
    measured = human(several, read, **options)
    return optimum(measured.thresholds, curve(measured.counts))


def _paired(pred: Path, gt: Path) -> list[str]:
    maps, truth = ({file.stem for file in folder.glob(f"*.{end}")} for folder, end in ((pred, "png"), (gt, "mat")))
    for folder, found, end in ((gt, truth, "mat"), (pred, maps, "png")):
        if not found:
            raise LDLError(f"{folder} {'holds no .' + end + ' files' if folder.is_dir() else 'is no folder'}")
    if missing := sorted(truth - maps):
        raise LDLError(f"{pred} has no {missing[0]}.png ({len(missing)} of {len(truth)} images have no edge map)")
    if unknown := sorted(maps - truth):
        raise LDLError(f"{gt} has no {unknown[0]}.mat ({len(unknown)} of {len(maps)} edge maps have no ground truth)")
    return sorted(truth)


def main(args: list[str] | None = None) -> None:
    """The command line; a mistake of the user ends in one line on standard error and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m ldl.edges.evaluation", description="Benchmark of edge maps.")
    parser.add_argument("--pred", type=Path, required=True, help="Folder of NAME.png, grey, 8 bit, thin edges.")
    parser.add_argument("--gt", type=Path, required=True, help="Folder of NAME.mat, in BSDS500's layout.")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write.")
    parser.add_argument("--thresholds", type=int, default=99, help="Number of thresholds.")
    parser.add_argument("--max_dist", type=float, default=MAX_DIST, help="Tolerance, as a share of the diagonal.")
    parser.add_argument("--no_thinning", action="store_true", help="Do not thin the maps at every threshold.")
    parser.add_argument("--allow_empty", action="store_true", help="Accept maps that are 0 everywhere.")
    parser.add_argument("--workers", type=int, default=None, help="Images at once; default: all processors.")
    parser.add_argument("--human", action="store_true", help="Measure the agreement of the annotators too.")
    parser.add_argument("--chart", type=Path, default=None, help="PNG of the precision-recall curve to draw.")
    options = parser.parse_args(args)
    try:
        _run(options)
    except LDLError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _run(options: argparse.Namespace) -> None:
    shared = {"max_dist": options.max_dist, "workers": options.workers, "show_progress": sys.stderr.isatty()}
    evaluation = evaluate_folder(
        options.pred,
        options.gt,
        options.allow_empty,
        levels=options.thresholds,
        thinning=not options.no_thinning,
        **shared,
    )
    content = evaluation.to_dict()
    point = None
    if options.human:
        point = agreement(evaluation.names, lambda name: read_ground_truth(options.gt / f"{name}.mat"), **shared)
        content["human"] = point and point._asdict()
    if options.chart is not None:
        from ldl.charts.edges import precision_recall

        precision_recall(options.chart, {options.pred.name: evaluation}, point)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, content)
    print(" ".join(f"{name} {content[name]:.4f}" for name in ("ods", "ois", "ap", "r50")))


if __name__ == "__main__":
    main()
