"""Crispness: how thin edge maps are as they are predicted, before anything thins them.

The crispness-emphasised evaluation, CEval (Huan et al., "Unmixing convolutional features for crisp edge detection",
PAMI 2022; Ye et al., "DiffusionEdge", AAAI 2024), is the standard one without its two ways of thinning: the maps come
without non-maximum suppression, and what passes a threshold is not thinned. A pixel of an annotator has at most one
counterpart, so that every further pixel of a thick line is an error. Tolerances below the standard one ask for the
place as well (Wang et al., "Deep crisp boundaries", CVPR 2017: a half and a quarter of it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ldl.edges.benchmark.counting import MAX_DIST
from ldl.edges.benchmark.evaluation import Evaluation, Load, evaluate
from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.scores import scores

STRICTER = (1 / 2, 1 / 4)
"""Tolerances that figures are asked for besides, as shares of that of the evaluation."""


def crispness(strength: np.ndarray) -> float:
    """The share of a map's mass that non-maximum suppression keeps, in 0..1; 1 for an empty map, where none is lost.

    Ye et al., "Delving into crispness" (2023). Lines of one strength throughout are plateaus, which the suppression
    leaves as they are, however thick: look at the evaluation too.

    Args:
        strength: (H, W), as predicted.
    """
    mass = float(strength.sum(dtype=np.float64))
    return float(suppress(strength, border=0).sum(dtype=np.float64)) / mass if mass else 1.0


def evaluate_crisp(
    names: Sequence[str],
    load: Load,
    max_dist: float = MAX_DIST,
    stricter: Sequence[float] = STRICTER,
    **options: Any,
) -> tuple[Evaluation, dict[str, Any]]:
    """CEval of edge maps as they are predicted.

    Args:
        names: The images.
        load: Reads the edge map of an image, as it was predicted, and what the annotators drew.
        max_dist: How far apart corresponding pixels may be, as a share of the image's diagonal.
        stricter: Further tolerances, as shares of ``max_dist``.
        **options: As for :func:`ldl.edges.benchmark.evaluation.evaluate`, but for ``thinning``.

    Returns:
        The evaluation, and what it does not say: ``ac``, the mean :func:`crispness` of the images, and ``stricter``,
        the figures by the further tolerances.

    Raises:
        LDLError: as ``evaluate`` does.
    """
    measured = evaluate(names, load, max_dist=max_dist, thinning=False, **options)
    closer = {}
    for share in stricter:
        again = evaluate(names, load, max_dist=share * max_dist, thinning=False, **options)
        closer[f"{share * max_dist:g}"] = scores(again.thresholds, again.counts)
    average = float(np.mean([crispness(load(name)[0]) for name in names]))
    return measured, {"ac": average, "stricter": closer}
