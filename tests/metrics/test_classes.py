"""Confusion matrix, precision, recall and F1 of each class, by hand on three classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from ldl.annotations import majority_accuracy
from ldl.errors import LDLError
from ldl.metrics.classes import MOST_CLASSES, class_results, confusion_matrix

COUNTS = np.array([[5, 1, 0], [3, 0, 0], [2, 2, 0], [0, 4, 1], [1, 7, 0], [0, 0, 6]])
TARGET = COUNTS / COUNTS.sum(1, keepdims=True)
PREDICTION = np.array(
    [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.2, 0.7, 0.1], [0.1, 0.8, 0.1], [0.5, 0.4, 0.1], [0.4, 0.4, 0.2]]
)
"""The classes are a, a, a or b, b, b, c; predicted are a, b, b, b, a, and the first of a and b."""


def test_three_classes_by_hand() -> None:
    np.testing.assert_allclose(confusion_matrix(PREDICTION, TARGET), [[1, 1.5, 0], [1, 1.5, 0], [1, 0, 0]])
    results = class_results(PREDICTION, TARGET)
    np.testing.assert_allclose(results["support"], [2.5, 2.5, 1])
    np.testing.assert_allclose(results["precision"], [1 / 3, 1.5 / 3, np.nan])  # c is never predicted
    np.testing.assert_allclose(results["recall"], [1 / 2.5, 1.5 / 2.5, 0])
    np.testing.assert_allclose(results["f1"], [2 / 5.5, 3 / 5.5, 0])


def test_a_class_without_instances_has_no_recall() -> None:
    results = class_results(PREDICTION[:5], TARGET[:5])
    assert np.isnan([results[name][2] for name in ("precision", "recall", "f1")]).all() and results["support"][2] == 0


def test_an_instance_with_weight_two_counts_twice() -> None:
    weight = np.array([1, 2, 1, 1, 2, 1], np.float32)
    twice = np.repeat(np.arange(6), weight.astype(int))
    np.testing.assert_allclose(
        confusion_matrix(PREDICTION, TARGET, weight), confusion_matrix(PREDICTION[twice], TARGET[twice])
    )
    weighted, repeated = class_results(PREDICTION, TARGET, weight), class_results(PREDICTION[twice], TARGET[twice])
    for name, column in weighted.items():
        np.testing.assert_allclose(column, repeated[name], err_msg=name)


@given(seed=st.integers(0, 2**32 - 1), votes=st.integers(1, 6), labels=st.integers(2, 5))
def test_the_diagonal_is_the_accuracy_of_the_majority(seed: int, votes: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(votes, np.full(labels, 1 / labels), 20)
    prediction = rng.dirichlet(np.ones(labels), 20)
    matrix = confusion_matrix(prediction, (counts / votes).astype(np.float32))
    assert matrix.sum() == pytest.approx(20)
    assert np.trace(matrix) / 20 == pytest.approx(majority_accuracy(prediction, counts.astype(float)))


def test_without_ties_the_results_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    target, prediction = rng.dirichlet(np.ones(4), (2, 50))
    report = metrics.classification_report(target.argmax(1), prediction.argmax(1), output_dict=True)
    for name, theirs in {"precision": "precision", "recall": "recall", "f1": "f1-score", "support": "support"}.items():
        ours = class_results(prediction, target)[name]
        np.testing.assert_allclose(ours, [report[str(label)][theirs] for label in range(4)], err_msg=name)


def test_errors() -> None:
    with pytest.raises(LDLError, match="a prediction is not finite and has no class"):
        class_results(np.full((1, 3), np.nan), TARGET[:1])
    many = np.full((1, MOST_CLASSES + 1), 1 / (MOST_CLASSES + 1))
    with pytest.raises(LDLError, match="1,001 labels are more than the 1,000 of a confusion matrix"):
        confusion_matrix(many, many)
