"""The benchmark of BSDS500 (Arbelaez et al., PAMI 2011): edge maps against what annotators drew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ldl.cells.processors import processors
from ldl.edges.benchmark.counting import MAX_DIST, Counts, count
from ldl.edges.benchmark.ground_truth import GroundTruth, read_ground_truth
from ldl.edges.benchmark.scores import Optimum, curve, optimum, scores
from ldl.errors import LDLError
from ldl.progress import track

Load = Callable[[str], tuple[np.ndarray, GroundTruth]]
"""Gives the edge map of an image, (H, W) in 0..1, and what its annotators drew."""


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
    load: Load,
    levels: int = 99,
    max_dist: float = MAX_DIST,
    thinning: bool = True,
    workers: int | None = None,
    show_progress: bool = False,
) -> Evaluation:
    """Compare edge maps with the annotators of their images, several images at a time.

    Args:
        names: The images.
        load: Reads the edge map of an image and what the annotators drew.
        levels: Number of thresholds.
        max_dist: How far apart corresponding pixels may be, as a share of the image's diagonal.
        thinning: Thin the map at every threshold.
        workers: Images that are compared at once; None takes the processors of this process.
        show_progress: Draw a progress bar.

    Raises:
        LDLError: no images, less than one worker, or a map that does not fit its ground truth; the message names the
            image.
    """
    if not names:
        raise LDLError("there are no images to evaluate")
    if workers is not None and workers < 1:
        raise LDLError(f"workers {workers} must be at least 1, or left out for all processors")
    steps = thresholds(levels)

    def compare(name: str) -> Counts:
        strength, truth = load(name)
        try:
            return count(strength, truth.boundaries, steps, max_dist, thinning)
        except LDLError as error:
            raise LDLError(f"{name}: {error}") from None

    # Threads are enough: counting does not hold the interpreter's lock.
    with ThreadPoolExecutor(workers or processors()) as pool:
        try:
            done = list(track(pool.map(compare, names), len(names), "evaluating", show_progress))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # or the images that wait would be compared first
            raise
    return Evaluation(list(names), steps, Counts(*(np.stack(column) for column in zip(*done))))


def evaluate_folder(pred: Path, gt: Path, allow_empty: bool = False, **options: Any) -> Evaluation:
    """Compare every ``NAME.png`` of a folder with its ``NAME.mat`` in another.

    Args:
        pred: Folder of edge maps.
        gt: Folder of ground truth.
        allow_empty: Accept maps without a single edge, which else are taken for a mistake.
        **options: As for :func:`evaluate`.

    Raises:
        LDLError: as :func:`open_folder` does, on the way too.
    """
    return evaluate(*open_folder(pred, gt, allow_empty), **options)


def open_folder(pred: Path, gt: Path, allow_empty: bool = False) -> tuple[list[str], Load]:
    """The names of the images whose maps and ground truth two folders hold, and what reads an image's.

    Raises:
        LDLError: a missing folder, an image without map or a map without ground truth; and when read, a map that is
            not grey with 8 bits, is empty or has not the size of its ground truth.
    """

    def load(name: str) -> tuple[np.ndarray, GroundTruth]:
        strength = read_edge_map(pred / f"{name}.png")
        if not allow_empty and not strength.any():
            raise LDLError(f"{pred / f'{name}.png'} is empty, all 0; if that is meant, allow it with --allow_empty")
        return strength, read_ground_truth(gt / f"{name}.mat")

    return paired(pred, gt), load


def read_edge_map(path: Path) -> np.ndarray:
    """A PNG of 8 bits, grey or with three equal channels, as (H, W) float64 in 0..1. Raises LDLError for others."""
    if not path.is_file():
        raise LDLError(f"no edge map at {path}, or no regular file; replace it")
    try:
        with Image.open(path) as picture:
            mode, values = picture.mode, np.asarray(picture.convert("L") if picture.mode == "1" else picture)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise LDLError(f"{path} cannot be read as a picture: {' '.join(str(error).split())[:160]}") from error
    if mode == "RGB" and (values == values[:, :, :1]).all():
        values = values[:, :, 0]
    elif mode not in ("1", "L"):
        kind = "has 16 bits or more" if mode.startswith(("I", "F")) else f"is a {mode} picture"
        raise LDLError(f"{path} {kind}; save edge maps as grey PNG of 8 bits, where 255 is the surest edge")
    return values / 255


def write_edge_map(path: Path, strength: np.ndarray) -> None:
    """Write (H, W) in 0..1 as a grey PNG of 8 bits, with its folder. Raises LDLError for other values."""
    write_grey(path, strength, np.uint8)


def write_grey(path: Path, values: np.ndarray, dtype: type[np.unsignedinteger]) -> None:
    """Write (H, W) in 0..1 as a grey PNG, with its folder; the greatest number of ``dtype`` stands for 1.

    Raises LDLError for other values, unless rounding mends them.
    """
    most = float(np.iinfo(dtype).max)  # whole numbers would wrap
    steps = np.round(most * np.asarray(values))
    if not ((steps >= 0) & (steps <= most)).all():
        low, high = np.min(values), np.max(values)
        raise LDLError(f"{path}: the values of a map must be in 0..1, these reach from {low:g} to {high:g}")
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(steps.astype(dtype)).save(path)


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


def paired(pred: Path, gt: Path) -> list[str]:
    """The names that both folders have, ``NAME.png`` and ``NAME.mat``. Raises LDLError where one lacks a file."""
    maps, truth = ({file.stem for file in folder.glob(f"*.{end}")} for folder, end in ((pred, "png"), (gt, "mat")))
    for folder, found, end in ((gt, truth, "mat"), (pred, maps, "png")):
        if not found:
            raise LDLError(f"{folder} {'holds no .' + end + ' files' if folder.is_dir() else 'is no folder'}")
    if missing := sorted(truth - maps):
        raise LDLError(f"{pred} has no {missing[0]}.png ({len(missing)} of {len(truth)} images have no edge map)")
    if unknown := sorted(maps - truth):
        raise LDLError(f"{gt} has no {unknown[0]}.mat ({len(unknown)} of {len(maps)} edge maps have no ground truth)")
    return sorted(truth)
