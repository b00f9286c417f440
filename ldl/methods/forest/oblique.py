"""Grows trees whose nodes split by a direction in many features, with costs that mind rare labels.

Huang, Loy & Tang 2016, section III-B. Trees are small and a node's work is linear algebra, so this is numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from ldl.methods.forest.directions import halve, label_costs, regress, separate
from ldl.methods.forest.draws import bootstrap

KNOWN = 4000
"""Scalar products of so many rows are computed once for all nodes, where these see all features."""


class ObliqueRules(NamedTuple):
    """How trees grow; see ``heads.CostSensitiveForest`` for what each means."""

    depth: int
    min_samples: int
    features: int
    sets: int
    penalty: float
    cap: float
    epsilon: float
    median: bool


class Truth(NamedTuple):
    """What is known of the training rows.

    Attributes:
        codes: (N, c) what nodes are split by: values (c = 1), points of a plane (c = 2), or distributions.
        labels: (N,) int64, the label of each row, whose shares set the costs.
        regresses: Whether nodes regress the one code, or cluster the codes.
        spreads: Whether impurity is the variance of the codes; else the entropy of the labels.
    """

    codes: np.ndarray
    labels: np.ndarray
    regresses: bool
    spreads: bool


class Rows(NamedTuple):
    """The training rows: features (N, F), their scalar products (N, N) or None, and the truth."""

    features: np.ndarray
    gram: np.ndarray | None
    truth: Truth


class ObliqueTree(NamedTuple):
    """One tree of M nodes, I splits and L leaves. The root is node 0; a right child follows its left sibling.

    Attributes:
        split: (M,) int32, row of ``columns`` and ``weights``, -1 in a leaf.
        child: (M,) int32, the left child; in a leaf its number, 0..L - 1.
        threshold: (M,) float64; rows whose score is below it go left.
        columns: (I, D) int32, the features of each split, rising.
        weights: (I, D) float64.
        sizes: (L,) int32, how many distinct rows a leaf has.
        rows: Training rows, by leaf, int32.
        draws: How often each of ``rows`` was drawn, int32.
    """

    split: np.ndarray
    child: np.ndarray
    threshold: np.ndarray
    columns: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray
    rows: np.ndarray
    draws: np.ndarray


class _Split(NamedTuple):
    columns: np.ndarray
    weights: np.ndarray
    threshold: float
    left: np.ndarray


def grow_oblique(
    features: np.ndarray, truth: Truth, rules: ObliqueRules, numbers: range, sampling: float, replace: bool, seed: int
) -> Iterator[ObliqueTree]:
    """Yield the trees with these numbers, in order.

    Args:
        features: (N, F) float64, finite, of a mean squared norm near 1, for ``penalty`` to mean the same everywhere.
        truth: Of the same rows.
        rules: How trees grow.
        numbers: Which trees of the forest.
        sampling: Draws of a tree, as a share of N.
        replace: Whether they are drawn with replacement.
        seed: Seed of the forest; a tree depends on it and on its own number alone.
    """
    known = rules.features == features.shape[1] and len(features) <= KNOWN and truth.regresses and rules.epsilon == 0
    with threadpool_limits(1):
        data = Rows(features, features @ features.T if known else None, truth)
    for number in numbers:
        rows, draws = bootstrap(len(features), sampling, replace, seed, number)
        random = np.random.default_rng([seed, number, 2])
        # One thread, because sums of several depend on how many there are.
        with threadpool_limits(1):
            tree = _grow(data, rules, rows, draws, random)
        yield tree


def _grow(
    data: Rows, rules: ObliqueRules, rows: np.ndarray, draws: np.ndarray, random: np.random.Generator
) -> ObliqueTree:
    split, child, threshold = [-1], [0], [0.0]
    splits: list[_Split] = []
    leaves: list[np.ndarray] = []
    waiting = [(0, np.arange(len(rows)), 0)]
    while waiting:
        node, own, depth = waiting.pop()
        found = None
        if depth < rules.depth and draws[own].sum() >= rules.min_samples:
            found = _best_split(data, rules, rows[own], draws[own], random)
        if found is None:
            child[node] = len(leaves)
            leaves.append(own)
            continue
        split[node], child[node], threshold[node] = len(splits), len(split), found.threshold
        splits.append(found)
        # The left child lies on top, so leaves are numbered from left to right.
        waiting += [(len(split) + 1, own[~found.left], depth + 1), (len(split), own[found.left], depth + 1)]
        split, child, threshold = split + [-1, -1], child + [0, 0], threshold + [0.0, 0.0]
    shape = (len(splits), rules.features)
    order = np.concatenate(leaves)
    return ObliqueTree(
        np.array(split, np.int32),
        np.array(child, np.int32),
        np.array(threshold),
        np.array([found.columns for found in splits], np.int32).reshape(shape),
        np.array([found.weights for found in splits], np.float64).reshape(shape),
        np.array([len(leaf) for leaf in leaves], np.int32),
        rows[order],
        draws[order],
    )


def _best_split(
    data: Rows, rules: ObliqueRules, rows: np.ndarray, draws: np.ndarray, random: np.random.Generator
) -> _Split | None:
    features, truth = data.features, data.truth
    codes, labels = truth.codes[rows], truth.labels[rows]
    if (codes == codes[0]).all():
        return None
    width = features.shape[1]
    # Of the classes' frequencies in the node, as a sample's weight in the gain.
    places = np.unique(labels, return_inverse=True)[1]
    weights = draws / np.bincount(places, draws)[places]
    gram = None if data.gram is None or len(rows) >= width else data.gram[np.ix_(rows, rows)]
    if truth.regresses:
        aim, costs = codes[:, 0], label_costs(labels, draws, rules.cap) * draws
        cut = np.median(np.repeat(aim, draws)) if rules.median else aim @ draws / draws.sum()
    else:
        aim, cut = halve(codes, draws), 0.0
        costs = label_costs(aim, draws, rules.cap) * draws
    best, least = None, np.inf
    for _ in range(rules.sets if rules.features < width else 1):
        columns = np.arange(width)
        if rules.features < width:
            columns = np.sort(random.choice(width, rules.features, replace=False))
        part = features[np.ix_(rows, columns)] if rules.features < width else features[rows]
        if truth.regresses:
            direction, bias = regress(part, aim, costs, rules.penalty, rules.epsilon, gram)
        else:
            direction, bias = separate(part, aim, costs, rules.penalty)
        scores, threshold = part @ direction, cut - bias
        left = scores < threshold
        if not truth.regresses and (left.all() or not left.any()):
            # The costs of a rare cluster outweigh the common one, and the machine may give it all rows.
            threshold = scores @ draws / draws.sum()
            left = scores < threshold
        if left.all() or not left.any():
            continue
        loss = sum(_impurity(truth, codes[side], places[side], weights[side]) for side in (left, ~left))
        if loss < least:
            best, least = _Split(columns, direction, threshold, left), loss
    return best


def _impurity(truth: Truth, codes: np.ndarray, places: np.ndarray, weights: np.ndarray) -> float:
    """Variance of the codes, or entropy of the labels, times the weights' sum."""
    total = weights.sum()
    if truth.spreads:
        mean = weights @ codes / total
        return float(weights @ np.square(codes - mean).sum(1))
    share = np.bincount(places, weights)
    share = share[share > 0] / total
    return float(-total * (share * np.log(share)).sum())
