"""The benchmark of BSDS500 (Arbelaez et al., PAMI 2011): ODS, OIS, AP and R50 of edge maps, and their crispness.

The crispness-emphasised evaluation, CEval (Huan et al., "Unmixing convolutional features for crisp edge detection",
PAMI 2022; Ye et al., "DiffusionEdge", AAAI 2024), is the standard evaluation without its two kinds of thinning: maps
come without non-maximum suppression, and the pixels above a threshold are not thinned. A pixel of an annotator has at
most one counterpart, so every further pixel of a thick line is an error. Tolerances below the standard one evaluate the
localisation as well (Wang et al., "Deep crisp boundaries", CVPR 2017: a half and a quarter of it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ldl.edges.benchmark.ground_truth import (
    GroundTruth,
    check_edge_map,
    paired,
    read_edge_map,
    read_ground_truth,
    truth_file,
)
from ldl.edges.benchmark.matching import MAX_DIST, Counts, count
from ldl.edges.benchmark.thinning import suppress
from ldl.errors import LDLError, naming
from ldl.jobs.executors import processors
from ldl.progress import track

STRICTER = (1 / 2, 1 / 4)
"""Additional tolerances, as shares of the tolerance of the evaluation."""
Load = Callable[[str], tuple[np.ndarray, GroundTruth]]
"""Returns the edge map of an image, (H, W) in 0..1, and its ground truth."""


class Curve(NamedTuple):
    """Precision and recall at each threshold, (T,) float64 in 0..1; 0 if the denominator is 0."""

    recall: np.ndarray
    precision: np.ndarray

    @property
    def f(self) -> np.ndarray:
        """The F-measure, (T,): the harmonic mean of precision and recall."""
        return f_measure(self.recall, self.precision)


class Optimum(NamedTuple):
    """The threshold of the greatest F-measure, with the values there."""

    threshold: float
    recall: float
    precision: float
    f: float


class Evaluation(NamedTuple):
    """Counts of N images at T thresholds.

    Attributes:
        names: The images.
        thresholds: (T,).
        counts: (N, T) each.
    """

    names: list[str]
    thresholds: np.ndarray
    counts: Counts

    def to_dict(self) -> dict[str, Any]:
        """Return the four metrics, the curve and the counts of every image as plain values."""
        whole = curve(self.counts)
        best = optimum(self.thresholds, whole)
        images: dict[str, dict[str, Any]] = {}
        for row, name in enumerate(self.names):
            images[name] = {field: column[row].tolist() for field, column in self.counts._asdict().items()}
        return {
            **scores(self.thresholds, self.counts),
            "best": best._asdict(),
            "thresholds": self.thresholds.tolist(),
            "curve": {"recall": whole.recall.tolist(), "precision": whole.precision.tolist(), "f": whole.f.tolist()},
            "images": images,
        }


def thresholds(count: int = 99) -> np.ndarray:
    """Return ``count`` evenly spaced thresholds inside 0..1, k / (count + 1). Raises LDLError for none."""
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
        load: Reads the edge map of an image and its ground truth.
        levels: Number of thresholds.
        max_dist: Maximum distance of corresponding pixels, as a share of the image's diagonal.
        thinning: Thin the map at every threshold.
        workers: Number of images at a time; None uses all processors of this process.
        show_progress: Draw a progress bar.

    Raises:
        LDLError: There are no images, less than one worker, or a map that does not fit its ground truth.
    """
    if not names:
        raise LDLError("there are no images to evaluate")
    if workers is not None and workers < 1:
        raise LDLError(f"workers {workers} must be at least 1, or left out for all processors")
    steps = thresholds(levels)

    def compare(name: str) -> Counts:
        strength, truth = load(name)
        with naming(name):
            return count(strength, truth.boundaries, steps, max_dist, thinning)

    # Threads are enough, because counting releases the interpreter's lock.
    with ThreadPoolExecutor(workers or processors()) as pool:
        try:
            done = list(track(pool.map(compare, names), len(names), "evaluating", show_progress))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # do not compare the queued images first
            raise
    return Evaluation(list(names), steps, Counts(*(np.stack(column) for column in zip(*done))))


def evaluate_folder(pred: Path, gt: Path, allow_empty: bool = False, **options: Any) -> Evaluation:
    """Compare every ``NAME.png`` of a folder with its ground truth in another, with ``options`` of :func:`evaluate`.

    Raises LDLError for files that are missing or do not fit; see :func:`open_folder`.
    """
    return evaluate(*open_folder(pred, gt, allow_empty), **options)


def open_folder(pred: Path, gt: Path, allow_empty: bool = False) -> tuple[list[str], Load]:
    """Return the names of the images in two folders, and a function that reads edge map and ground truth of an image.

    Raises:
        LDLError: A missing folder, an image without map or a map without ground truth. On reading, a map that is not
            grey with 8 bits, or looks like a mistake, unless ``allow_empty``.
    """

    def load(name: str) -> tuple[np.ndarray, GroundTruth]:
        strength = read_edge_map(pred / f"{name}.png")
        if not allow_empty:
            meant = "if that is meant, allow it with --allow_empty"
            if not strength.any():
                raise LDLError(f"{pred / f'{name}.png'} is empty, all 0; {meant}")
            check_edge_map(pred / f"{name}.png", strength, meant)
        return strength, read_ground_truth(truth_file(gt, name))

    return paired(pred, gt), load


def human(names: Sequence[str], read: Callable[[str], GroundTruth], **options: Any) -> Evaluation:
    """Compare each annotator in turn with the others of the same image, as the level of human agreement.

    Args:
        names: The images.
        read: Returns the ground truth of an image.
        **options: Options of :func:`evaluate` except ``levels`` and ``thinning``.

    Raises:
        LDLError: An image has a single annotator.
    """
    read = lru_cache(maxsize=16)(read)  # the annotators of an image are consecutive
    turns = [(name, a) for name in names for a in range(len(read(name).boundaries))]

    def load(turn: str) -> tuple[np.ndarray, GroundTruth]:
        name, _, a = turn.rpartition(":")
        drawn = read(name).boundaries
        if len(drawn) < 2:
            raise LDLError(f"{name} has a single annotator; give images with two or more")
        return drawn[int(a)].astype(float), GroundTruth(np.delete(drawn, int(a), 0), None)

    return evaluate([f"{name}:{a}" for name, a in turns], load, levels=1, thinning=False, **options)


def agreement(names: Sequence[str], read: Callable[[str], GroundTruth], **options: Any) -> Optimum | None:
    """Return the optimum of :func:`human`, for the chart; None if every image has a single annotator."""
    several = [name for name in names if len(read(name).boundaries) > 1]
    if not several:
        return None
    measured = human(several, read, **options)
    return optimum(measured.thresholds, curve(measured.counts))


def crispness(strength: np.ndarray) -> float:
    """Return the share of a map's mass that non-maximum suppression keeps, in 0..1; 1 for an empty map.

    Ye et al., "Delving into crispness" (2023). A thick line of constant strength is a plateau, which the suppression
    keeps, so use this together with the evaluation. ``strength`` is (H, W), as predicted.
    """
    mass = float(strength.sum(dtype=np.float64))
    return float(suppress(strength, border=0).sum(dtype=np.float64)) / mass if mass else 1.0


def evaluate_crisp(
    names: Sequence[str], load: Load, max_dist: float = MAX_DIST, stricter: Sequence[float] = STRICTER, **options: Any
) -> tuple[Evaluation, dict[str, Any]]:
    """Run CEval on edge maps as predicted, without suppression.

    Args:
        names: The images.
        load: Reads the edge map of an image, as predicted, and its ground truth.
        max_dist: Maximum distance of corresponding pixels, as a share of the image's diagonal.
        stricter: Additional tolerances, as shares of ``max_dist``.
        **options: Options of :func:`evaluate` except ``thinning``.

    Returns:
        The evaluation, and additional results: ``ac``, the mean :func:`crispness` of the images, and ``stricter``, the
        metrics at the additional tolerances.

    Raises:
        LDLError: See :func:`evaluate`.
    """
    measured = evaluate(names, load, max_dist=max_dist, thinning=False, **options)
    closer = {}
    for share in stricter:
        again = evaluate(names, load, max_dist=share * max_dist, thinning=False, **options)
        closer[f"{share * max_dist:g}"] = scores(again.thresholds, again.counts)
    average = float(np.mean([crispness(load(name)[0]) for name in names]))
    return measured, {"ac": average, "stricter": closer}


def scores(thresholds: np.ndarray, counts: Counts) -> dict[str, float]:
    """Return ``ods``, ``ois``, ``ap`` and ``r50`` from the counts (N, T) of N images."""
    whole = curve(counts)
    return {
        "ods": optimum(thresholds, whole).f,
        "ois": image_optimum(counts),
        "ap": average_precision(whole),
        "r50": recall_at_half(whole),
    }


def f_measure(recall: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Return the harmonic mean of precision and recall; 0 if both are 0."""
    return _ratio(2 * recall * precision, recall + precision)


def curve(counts: Counts) -> Curve:
    """Return precision and recall of the pixels of all images together, from counts (T,) or (N, T)."""
    recalled, drawn, correct, detected = (np.atleast_2d(column).sum(0) for column in counts)
    return Curve(_ratio(recalled, drawn), _ratio(correct, detected))


def optimum(thresholds: np.ndarray, curve: Curve) -> Optimum:
    """Return the best F-measure on the curve, interpolated linearly at 100 points between thresholds."""
    share = np.linspace(0, 1, 100)
    columns = [np.asarray(column, float) for column in (thresholds, curve.recall, curve.precision)]
    lines = columns
    if len(thresholds) > 1:
        lines = [(np.outer(column[:-1], 1 - share) + np.outer(column[1:], share)).ravel() for column in columns]
    f = f_measure(lines[1], lines[2])
    best = int(f.argmax())
    threshold, recall, precision = (float(line[best]) for line in lines)
    return Optimum(threshold, recall, precision, float(f[best]))


def image_optimum(counts: Counts) -> float:
    """Return OIS: the F-measure of the pixels of all images, each at its own best threshold, from counts (N, T)."""
    recall, precision = _ratio(counts.recalled, counts.drawn), _ratio(counts.correct, counts.detected)
    best = f_measure(recall, precision).argmax(1)[:, None]
    return float(curve(Counts(*(np.take_along_axis(column, best, 1) for column in counts))).f[0])


def average_precision(curve: Curve) -> float:
    """Return AP: 0.01 times the sum of the interpolated precision at recall 0, 0.01, ..., 1.

    Recalls that the curve does not reach, on either side, count as precision 0.
    """
    recall, first = np.unique(curve.recall, return_index=True)
    if len(recall) < 2:
        return 0.0
    return float(np.interp(np.arange(101) / 100, recall, curve.precision[first], left=0, right=0).sum() / 100)


def recall_at_half(curve: Curve) -> float:
    """Return R50: the greatest recall with precision at least 0.5, on lines between thresholds; 0 if there is none.

    If precision falls as recall rises, this is recall at precision 0.5, or the greatest recall of all.
    """
    recall, above = curve.recall, curve.precision - 0.5
    crossed = np.flatnonzero(above[:-1] * above[1:] < 0)
    share = above[crossed] / (above[crossed] - above[crossed + 1])
    between = recall[crossed] + share * (recall[crossed + 1] - recall[crossed])
    return float(max([0.0, *recall[above >= 0], *between]))


def _ratio(count: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(count, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)
