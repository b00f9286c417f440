"""How well predictions for the population of raters hold for groups of raters, such as genders or age groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ldl.annotations.checks import as_predictions
from ldl.annotations.votes import SingleVotes
from ldl.errors import LDLError
from ldl.labels import KL_FLOOR, LabelSpace

BINS = 10
"""Bins of equal width of the predicted probability, for the calibration error."""


def measure_groups(prediction: Any, single: SingleVotes, group: Any, labels: LabelSpace) -> pd.DataFrame:
    """Return how well the predictions for items describe the votes of each group of raters.

    Every vote counts the same. The standard errors are clustered by rater, because the votes of one rater depend on
    each other: they are those of the jackknife that leaves out one rater at a time, and NaN for a group of one rater.
    By chance a calibration error is above 0, the more so the fewer votes a group has.

    Args:
        prediction: (N, C) distribution of a vote on each item.
        single: The votes on the N items.
        group: (R,) group of each rater, in the order of ``single.names``. Missing entries are a group of their own.
        labels: The C labels.

    Returns:
        One row for each group that has votes, in the order of the groups, with the columns

        - ``raters`` and ``votes``: their numbers,
        - ``nll``: mean of -ln of the probability of a vote, at least 1e-12, in nats,
        - ``shift``, for ordinal labels: mean of the vote minus the expectation of the prediction, in the labels' unit,
        - ``calibration_error``: the share of the votes for a label minus its mean probability, in absolute terms, as a
          mean over ten bins of the probability, weighted by votes, and over the labels; in [0, 1] (classwise expected
          calibration error; Kull et al., "Beyond temperature scaling", NeurIPS 2019),
        - ``nll_se``, ``shift_se`` and ``calibration_error_se``: their standard errors.

    Raises:
        LDLError: Predictions that are no distributions over the labels, votes on other items, or another number of
            groups than of raters.
    """
    prediction = as_predictions(prediction, (len(prediction), len(labels)))
    if (items := single.item.max(initial=-1) + 1) > len(prediction):
        raise LDLError(f"there are votes on {items} items and {len(prediction)} predictions; give each item one")
    if len(group) != len(single.names):
        raise LDLError(f"there are {len(group)} groups for {len(single.names)} raters; give each rater one")
    codes, names = pd.factorize(pd.Series(group), sort=True, use_na_sentinel=False)
    sums = _sums_of_raters(prediction, single, labels)
    rows = {}
    for number, name in enumerate(names):
        members = sums[(codes == number) & (sums[:, 0] > 0)]
        if len(members):
            rows[name] = _measure(members, labels)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("group")


def _sums_of_raters(prediction: np.ndarray, single: SingleVotes, labels: LabelSpace) -> np.ndarray:
    """Return sums (R, S) over the votes of each rater.

    They are the number of votes, the negative log-likelihood, the shift of ordinal labels, and for every label and bin
    of its probability the number of votes for it minus the probability.
    """
    p, vote = prediction[single.item], single.label
    columns = [np.ones(len(p)), -np.log(np.maximum(p[np.arange(len(p)), vote], KL_FLOOR))]
    if labels.kind == "ordinal":
        axis = np.array(labels.axes[0])
        columns.append(axis[vote] - p @ axis)
    raters = len(single.names)
    sums = [np.bincount(single.rater, column, minlength=raters) for column in columns]
    gap = np.zeros((raters, len(labels), BINS))
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    np.add.at(gap, (single.rater[:, None], np.arange(len(labels)), bins), np.eye(len(labels))[vote] - p)
    return np.hstack([np.stack(sums, 1), gap.reshape(raters, -1)])


def _measure(members: np.ndarray, labels: LabelSpace) -> dict[str, float]:
    """Return the numbers of a group from the sums (R, S) of its raters."""
    count, total = len(members), members.sum(0)
    row: dict[str, float] = {"raters": count, "votes": int(total[0])}
    row |= {name: float(score[0]) for name, score in _scores(total[None], labels).items()}
    with np.errstate(invalid="ignore"):  # without its only rater a group has no votes
        for name, scores in _scores(total - members, labels).items():
            row[f"{name}_se"] = float(np.sqrt((count - 1) / count * np.square(scores - scores.mean()).sum()))
    return row


def _scores(sums: np.ndarray, labels: LabelSpace) -> dict[str, np.ndarray]:
    """Return the scores (n,) of n groups from the sums (n, S) over their votes."""
    means = sums[:, 1:] / sums[:, :1]
    scores, gaps = {"nll": means[:, 0]}, means[:, 1:]
    if labels.kind == "ordinal":
        scores["shift"], gaps = means[:, 1], means[:, 2:]
    return {**scores, "calibration_error": np.abs(gaps).sum(1) / len(labels)}
