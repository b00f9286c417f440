"""Sets of labels without an order: adaptive prediction sets.

APS is Romano, Sesia & Candes, "Classification with valid and adaptive coverage", NeurIPS 2020; its regularised form
RAPS is Angelopoulos et al., "Uncertainty sets for image classifiers using conformal prediction", ICLR 2021.
"""

from __future__ import annotations

import numpy as np

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal.line import HAIR
from ldl.methods.conformal.scores import check_level


def label_scores(
    prediction: np.ndarray, share: np.ndarray | float = 0.0, penalty: float = 0.0, free: int = 0
) -> np.ndarray:
    """The probability of all labels that are likelier than a label, and of a share of its own; for every label.

    Args:
        prediction: (N, C), rows of any positive sum.
        share: Of the label's own probability, (N,) or one number. APS draws it uniformly from [0, 1]. Sets that are the
            same every time need a fixed one: 0 never gives an empty set and tells the last labels of rows apart, which
            all have 1 where their own probability counts whole.
        penalty: RAPS's lambda, at least 0: added for every rank beyond ``free``; 0 is APS.
        free: RAPS's k, at least 0: ranks without a penalty.

    Returns:
        (N, C). Labels of equal probability are ranked in their order.
    """
    p = np.asarray(prediction, dtype=np.float64)
    p = p / p.sum(1, keepdims=True)
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, 1)
    kept = np.broadcast_to(np.asarray(share, dtype=np.float64), (len(p),))[:, None]
    scores = ranked.cumsum(1) - (1 - kept) * ranked
    scores += penalty * np.maximum(np.arange(1, p.shape[1] + 1) - free, 0)
    found = np.empty_like(scores)
    np.put_along_axis(found, order, scores, 1)
    return found


def label_sets(scores: np.ndarray, threshold: float) -> np.ndarray:
    """Which labels have a score of at most the threshold, (N, C) of bool; the likeliest is always one of them."""
    held = scores <= threshold + HAIR
    held[np.arange(len(scores)), scores.argmin(1)] = True
    return held


def predicted_set(labels: LabelSpace, prediction: np.ndarray, level: float) -> np.ndarray:
    """The fewest labels with at least ``level`` of the predicted mass, (N, C) of bool, of predictions (N, C).

    Raises LDLError: labels with values, or a level that is not between 0 and 1.
    """
    check_nominal(labels)
    check_level(level)
    return label_sets(label_scores(prediction), level - 2 * HAIR)


def check_nominal(labels: LabelSpace) -> None:
    """Raise LDLError where labels have values."""
    if labels.has_values:
        raise LDLError("sets are for labels without values; take interval")
