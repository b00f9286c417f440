"""Results of each class of nominal labels: confusion matrix, precision, recall and F1, computed by scikit-learn.

The true class of an instance is the most likely label of its target: the majority label, if the target is the shares of
votes. The predicted class is the most likely label of the prediction, of several the first. If t labels of a target
tie, the instance counts 1 / t in each of their classes. The share of the matrix on its diagonal is therefore
``majority_accuracy``. Each instance counts once, whatever its number of votes.
"""

from __future__ import annotations

import numpy as np
from sklearn import metrics

from ldl.errors import LDLError

CLASS_RESULTS = ("precision", "recall", "f1", "support")
"""Results of each class, in the order of ``classes.csv``."""

MOST_CLASSES = 1000
"""Most labels with a confusion matrix, which has a cell for each pair of labels."""


def confusion_matrix(prediction: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the weight of the instances (C, C) of each true class, by row, and each predicted class, by column.

    Args:
        prediction: (N, C) distributions.
        target: (N, C) distributions.
        weight: (N,) weights of the instances; None counts each once.

    Raises:
        LDLError: More than 1,000 labels, or a prediction that is not finite.
    """
    if target.shape[1] > MOST_CLASSES:
        raise LDLError(f"{target.shape[1]:,} labels are more than the {MOST_CLASSES:,} of a confusion matrix")
    true, predicted, counted = _match_classes(prediction, target, weight)
    classes = np.arange(target.shape[1])
    return np.asarray(metrics.confusion_matrix(true, predicted, labels=classes, sample_weight=counted))


def class_results(
    prediction: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return ``precision``, ``recall``, ``f1`` and ``support`` of each class, (C,) each, by name.

    The first three are in [0, 1]. Precision is NaN for a class that is never predicted, recall for a class without
    instances, and F1 for a class with neither. Support is the weight of the instances of a class.

    Args:
        prediction: (N, C) distributions.
        target: (N, C) distributions.
        weight: (N,) weights of the instances; None counts each once.

    Raises:
        LDLError: A prediction that is not finite.
    """
    true, predicted, counted = _match_classes(prediction, target, weight)
    columns = metrics.precision_recall_fscore_support(
        true, predicted, labels=np.arange(target.shape[1]), sample_weight=counted, zero_division=np.nan
    )
    return dict(zip(CLASS_RESULTS, columns))


def _match_classes(
    prediction: np.ndarray, target: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the true class, the predicted class and the weight (M,) of each instance and each of its tied labels."""
    if not np.isfinite(prediction).all():
        raise LDLError("a prediction is not finite and has no class")
    tied = target == target.max(1, keepdims=True)
    instance, true = tied.nonzero()
    weights = np.ones(len(target)) if weight is None else weight.astype(np.float64)
    return true, prediction.argmax(1)[instance], (weights / tied.sum(1))[instance]
