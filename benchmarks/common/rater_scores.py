"""How well distributions of votes hold on test votes, for models with and without raters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.stats import norm

from ldl.annotations import majority_accuracy
from ldl.annotations.votes import SingleVotes
from ldl.labels import KL_FLOOR, LabelSpace
from ldl.metrics import functional
from ldl.metrics.single_votes import SCORES, score_votes

VOTE_BINS = (0, 1, 10, 20, 40)
"""Least numbers of training votes of a rater, by which raters are sorted."""


class Predictions(NamedTuple):
    """Predictions for the n test items of a fold, and for the V votes on them.

    Attributes:
        population: (n, C) distribution of a vote of the population of raters.
        votes: (V, C) distribution of each vote, given its rater.
    """

    population: np.ndarray
    votes: np.ndarray


def nll_of(distributions: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return the negative log-likelihoods (V,) of votes by their distributions (V, C), in nats."""
    return np.asarray(-np.log(np.maximum(distributions[np.arange(len(label)), label].astype(float), KL_FLOOR)))


def score(predictions: Predictions, single: SingleVotes, labels: LabelSpace) -> dict[str, float]:
    """Return the metrics of one fold.

    Args:
        predictions: The predictions.
        single: The test votes, on items numbered as ``predictions.population``.
        labels: The labels.

    Returns:
        ``nll``, the mean over votes of the NLL of a vote with its rater known; ``rater_error`` and for ordinal labels
        ``rater_distance``, the perspectivist metrics of LeWiDi, means over items of means over their votes; and of the
        population's distribution, as means over items, ``kl``, ``manhattan``, for ordinal labels ``wasserstein``, and
        ``accuracy``, that of the majority label.
    """
    items = len(predictions.population)
    counts = single.counts(items, len(labels))
    # Every vote is an item of its own.
    scores = score_votes(
        torch.from_numpy(predictions.votes).unsqueeze(1), torch.from_numpy(single.label[:, None]), labels
    )
    columns = dict(zip(SCORES, scores.numpy().T))
    number = np.bincount(single.item, minlength=items)
    result = {"nll": float(columns["nll"].mean())}
    for name in (name for name in ("error", "distance") if name in columns):
        result[f"rater_{name}"] = float((np.bincount(single.item, columns[name], minlength=items) / number).mean())
    population = torch.from_numpy(predictions.population).double()
    shares = torch.from_numpy(counts / counts.sum(1, keepdims=True))
    result["kl"] = float(functional.kl(population, shares).mean())
    result["manhattan"] = float(functional.manhattan(population, shares).mean())
    if labels.kind == "ordinal":
        result["wasserstein"] = float(functional.wasserstein(population, shares, labels.axes[0]).mean())
    result["accuracy"] = float(majority_accuracy(population.numpy(), counts))
    return result


def base_rates(single: SingleVotes, train: np.ndarray, test: np.ndarray, labels: int) -> Predictions:
    """Return the mean shares of the training items as the prediction for every test item."""
    counts = single.take(train).counts(len(train), labels)
    mean = (counts / counts.sum(1, keepdims=True)).mean(0)
    votes = len(single.take(test).item)
    return Predictions(np.tile(mean, (len(test), 1)), np.tile(mean, (votes, 1)))


def paired_difference(ours: np.ndarray, other: np.ndarray, item: np.ndarray) -> tuple[float, float, float]:
    """Return the mean difference of a number of each vote (V,), with its 95% interval for items drawn anew.

    The votes of an item are one cluster. The interval is that of a ratio of means, by a normal approximation.
    """
    sums, counts = np.bincount(item, ours - other), np.bincount(item)
    mean = float(sums.sum() / counts.sum())
    n = len(sums)
    error = np.sqrt(n / (n - 1) * np.square(sums - mean * counts).sum()) / counts.sum()
    half = float(norm.ppf(0.975) * error)
    return mean, mean - half, mean + half


def gain_by_votes(
    ours: np.ndarray, other: np.ndarray, rater: np.ndarray, trained: np.ndarray
) -> list[dict[str, float]]:
    """Return how much lower a number of each vote (V,) is, by the number of training votes of its rater.

    Args:
        ours: The number, such as the NLL, by a model of raters.
        other: The same by the item alone.
        rater: (V,) number of the rater.
        trained: (R,) training votes of each rater.

    Returns:
        A row for each of :data:`VOTE_BINS` with votes: ``least``, ``votes``, and the mean ``gain``.
    """
    number = np.digitize(trained[rater], VOTE_BINS) - 1
    frame = pd.DataFrame({"bin": number, "gain": other - ours})
    groups = frame.groupby("bin")["gain"]
    return [
        {"least": VOTE_BINS[int(place)], "votes": len(gains), "gain": float(gains.mean())} for place, gains in groups
    ]
