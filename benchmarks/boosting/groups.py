"""The groups that MPL-Boost finds and nobody names: one method on one trial of digits or faces (Section 3.2).

1,500 positives of three kinds and 1,500 negatives, 40% of them for training (faces: 4,000 pictures, half for training);
64 stumps for each of three groups, from 1,000 random Haar features. AdaBoost is scikit-learn's with 64 stumps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import confusion_matrix, roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

from benchmarks.common.folds import fit_rows
from ldl import charts
from ldl.data.trials.trials import Trials
from ldl.heads import MPLBoost

ADA_BOOST = "AdaBoost"


def kinds_of_groups(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """How many pictures of each kind (rows) are in each group (columns)."""
    return confusion_matrix(np.unique(truth, return_inverse=True)[1], found)


def grouping(table: np.ndarray) -> float:
    """Share of pictures in the group of their kind, under the best matching of groups and kinds."""
    return float(table[linear_sum_assignment(-table)].sum() / table.sum())


def trial(
    data: Trials, features: Tensor, stumps: int, method: str, options: dict[str, Any], chart: Path | None
) -> dict[str, Any]:
    """One method on the selected trial.

    Args:
        data: Set up.
        features: (size, F) of all pictures.
        stumps: A group.
        method: ``ADA_BOOST``, or any other name: MPL-Boost.
        options: The head's.
        chart: Where to draw a sheet of each group, or None.

    Returns:
        ``auc``, with the test ``score`` and ``positive`` that it is of; of MPL-Boost also ``grouping`` of the positive
        test pictures, each in the group of its greatest h, and ``table``, their numbers by kind and group.
    """
    train, test = data.split.train, data.split.test
    positive = data.positive[test]
    result: dict[str, Any] = {}
    if method == ADA_BOOST:
        model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=stumps)
        score = model.fit(features[train].numpy(), data.positive[train]).decision_function(features[test].numpy())
    else:
        head = fit_rows(MPLBoost(groups=3, rounds=stumps, **options, seed=0, threads=1), data, features[:, None], train)
        score = head(features[test][:, None])[:, 1].numpy()
        found = head.scores(features[test][:, None])[:, 0].argmax(-1).numpy()[positive]
        table = kinds_of_groups(data.truth[test][positive], found)
        result = {"grouping": grouping(table), "table": table.tolist()}
        if chart:
            charts.groups(chart, data.images[test, 0].numpy()[positive], found)
    auc = float(roc_auc_score(positive, score))
    return {**result, "auc": auc, "score": np.round(score.astype(float), 6).tolist(), "positive": positive.tolist()}
