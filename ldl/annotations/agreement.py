"""Agreement of annotators: Krippendorff's alpha, and the negative log-likelihood of votes under a prediction."""

from __future__ import annotations

import numpy as np

from ldl.annotations.checks import as_predictions, as_votes, check_several
from ldl.errors import LDLError
from ldl.labels import KL_FLOOR, LabelSpace


def krippendorff_alpha(counts: np.ndarray, labels: LabelSpace) -> float:
    """Return Krippendorff's alpha of votes: 1 for full agreement, 0 for agreement by chance.

    Nominal labels use the nominal distance, ordinal labels the ordinal one (Krippendorff, "Computing Krippendorff's
    Alpha-Reliability", 2011). Items with one vote do not count.

    Args:
        counts: (N, C) votes, whole numbers.
        labels: The C labels, nominal or ordinal.

    Returns:
        At most 1. NaN if all votes have the same label, for which alpha is not defined.

    Raises:
        LDLError: No item has two votes, labels on a grid, or votes that are negative, not finite or of other labels.
    """
    counts = as_votes(counts, empty=True)
    if counts.shape[1] != len(labels):
        raise LDLError(f"votes are for {counts.shape[1]} labels, and the label space has {len(labels)}; pass the same")
    if labels.kind == "grid":
        raise LDLError("Krippendorff's alpha needs nominal or ordinal labels, and these are on a grid; leave it out")
    votes = check_several(counts)
    counts, votes = counts[votes > 1], votes[votes > 1]
    pairs = counts / (votes - 1)[:, None]
    coincidences = counts.T @ pairs
    coincidences -= np.diag(pairs.sum(0))
    margins = coincidences.sum(0)
    distances = _ordinal(margins) if labels.kind == "ordinal" else 1.0 - np.eye(len(margins))
    expected = margins @ distances @ margins / (margins.sum() - 1)
    return float(1 - (coincidences * distances).sum() / expected) if expected > 0 else float("nan")


def _ordinal(margins: np.ndarray) -> np.ndarray:
    """Return squared ordinal distances (C, C): the votes from one label to another, of both ends a half."""
    middle = margins.cumsum() - margins / 2
    return np.square(middle[:, None] - middle)


def vote_nll(prediction: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the expected negative log-likelihood of one vote on each item, (N,), in nats.

    Args:
        prediction: (N, C), rows on the simplex; probabilities below 1e-12 count as 1e-12.
        counts: (N, C) votes, at least one per item.

    Raises:
        LDLError: Predictions that are no distributions, or not one for each item; votes that are negative or not
            finite, or none on an item.
    """
    counts = as_votes(counts)
    return expected_nll(as_predictions(prediction, counts.shape), counts)


def expected_nll(prediction: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return :func:`vote_nll` of checked arrays; metrics of a run without checks may have NaN."""
    share = counts / counts.sum(1, keepdims=True)
    return np.asarray(-(share * np.log(np.maximum(prediction, KL_FLOOR))).sum(1))


def majority_accuracy(prediction: np.ndarray, counts: np.ndarray) -> float:
    """Return the share of items whose most probable label has the most votes; a tie counts its share.

    Raises LDLError as :func:`vote_nll`.
    """
    counts = as_votes(counts)
    return float(majority_hits(as_predictions(prediction, counts.shape), counts).mean())


def majority_hits(prediction: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return for each item 1 / t if its most probable label is one of t labels with the most votes, else 0; (N,)."""
    most = counts == counts.max(1, keepdims=True)
    chosen = prediction.argmax(1)
    return np.asarray(most[np.arange(len(chosen)), chosen] / most.sum(1))


def entropy_bias(counts: np.ndarray) -> np.ndarray:
    """Return by how much the entropy of the votes on each item is too low, (N,) in nats (Miller & Madow 1955).

    It is (C' - 1) / (2 n) for n votes on C' labels. KL to the observed shares is too high by about as much.

    Raises:
        LDLError: Votes that are negative or not finite, or none on an item.
    """
    return miller_madow(as_votes(counts))


def miller_madow(counts: np.ndarray) -> np.ndarray:
    """Return :func:`entropy_bias` of checked votes."""
    return np.asarray(((counts > 0).sum(1) - 1) / (2 * counts.sum(1)))
