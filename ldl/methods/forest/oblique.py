"""Forests of oblique trees: nodes split by a direction in many features, with costs that weigh rare labels.

Huang, Loy & Tang 2016, section III-B. Trees are small and the work of a node is linear algebra, so they grow in numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from ldl.collective import Collective
from ldl.methods.forest.directions import halve, label_costs, regress, separate
from ldl.methods.forest.flat import join_arrays, number_across
from ldl.methods.forest.sampling import bootstrap
from ldl.methods.torch_utils import pick, traced

GRAM_ROWS = 4000
"""Most rows whose scalar products are computed once for all nodes, if these use all features."""
NUMBERS_AT_ONCE = 2**22
"""Numbers that are held at a time."""


class ObliqueRules(NamedTuple):
    """Hyperparameters of a tree; see :class:`ldl.heads.CostSensitiveForest`."""

    depth: int
    min_samples: int
    features: int
    sets: int
    penalty: float
    cap: float
    epsilon: float
    median: bool


class Truth(NamedTuple):
    """Targets of the training rows.

    Attributes:
        codes: (N, c) by which nodes are split: values (c = 1), points of a plane (c = 2), or distributions.
        labels: (N,) int64, the label of each row, whose shares set the costs.
        regresses: Whether nodes regress the one code, or cluster the codes.
        spreads: Whether impurity is the variance of the codes, or the entropy of the labels.
    """

    codes: np.ndarray
    labels: np.ndarray
    regresses: bool
    spreads: bool


class _TrainingSet(NamedTuple):
    """Features (N, F), their scalar products (N, N) or None, and the targets."""

    features: np.ndarray
    gram: np.ndarray | None
    truth: Truth


class ObliqueTree(NamedTuple):
    """One tree of M nodes, I splits and L leaves. The root is node 0; a right child follows its left sibling.

    Attributes:
        split: (M,) int32, row of ``columns`` and ``weights``, -1 in a leaf.
        child: (M,) int32, the left child; in a leaf its number, 0..L - 1.
        threshold: (M,) float64; rows with a score below it go left.
        columns: (I, D) int32, the features of each split, rising.
        weights: (I, D) float64.
        sizes: (L,) int32, the number of distinct rows in each leaf.
        rows: Training rows, by leaf, int32.
        draws: Draws of each of ``rows``, int32.
    """

    split: np.ndarray
    child: np.ndarray
    threshold: np.ndarray
    columns: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray
    rows: np.ndarray
    draws: np.ndarray


class ObliqueForest(NamedTuple):
    """T trees of M nodes, I splits and L leaves in total, with the arrays of :class:`ObliqueTree`.

    ``roots`` (T,) int32 are the first nodes of the trees; children and splits are numbered across all trees.
    """

    roots: Tensor
    split: Tensor
    child: Tensor
    threshold: Tensor
    columns: Tensor
    weights: Tensor
    sizes: Tensor
    rows: Tensor
    draws: Tensor


class _Split(NamedTuple):
    columns: np.ndarray
    weights: np.ndarray
    threshold: float
    left: np.ndarray


def grow_oblique(
    features: np.ndarray, truth: Truth, rules: ObliqueRules, numbers: range, sampling: float, replace: bool, seed: int,
    weight: np.ndarray | None = None,
) -> Iterator[ObliqueTree]:  # fmt: skip
    """Yield the trees with these numbers, in order.

    Args:
        features: (N, F) float64, finite, with a mean squared norm near 1, so that ``penalty`` has one meaning.
        truth: Targets of the same rows.
        rules: Hyperparameters.
        numbers: Numbers of the trees in the forest.
        sampling: Draws of a tree, as a share of N.
        replace: Whether rows are drawn with replacement.
        seed: Seed of the forest; a tree depends only on it and on its own number.
        weight: (N,) weights by which rows are drawn; None draws all equally.
    """
    all_features = rules.features == features.shape[1]
    shares_gram = all_features and len(features) <= GRAM_ROWS and truth.regresses and rules.epsilon == 0
    with threadpool_limits(1):
        data = _TrainingSet(features, features @ features.T if shares_gram else None, truth)
    for number in numbers:
        rows, draws = bootstrap(len(features), sampling, replace, seed, number, weight)
        random = np.random.default_rng([seed, number, 2])
        # One thread, because sums over several threads depend on their number.
        with threadpool_limits(1):
            tree = _grow(data, rules, rows, draws, random)
        yield tree


def _grow(
    data: _TrainingSet, rules: ObliqueRules, rows: np.ndarray, draws: np.ndarray, random: np.random.Generator
) -> ObliqueTree:
    split, child, threshold = [-1], [0], [0.0]
    splits: list[_Split] = []
    leaves: list[np.ndarray] = []
    waiting = [(0, np.arange(len(rows)), 0)]
    while waiting:
        node, node_rows, depth = waiting.pop()
        best = None
        if depth < rules.depth and draws[node_rows].sum() >= rules.min_samples:
            best = _best_split(data, rules, rows[node_rows], draws[node_rows], random)
        if best is None:
            child[node] = len(leaves)
            leaves.append(node_rows)
            continue
        split[node], child[node], threshold[node] = len(splits), len(split), best.threshold
        splits.append(best)
        # The left child lies on top, so leaves are numbered from left to right.
        waiting += [(len(split) + 1, node_rows[~best.left], depth + 1), (len(split), node_rows[best.left], depth + 1)]
        split, child, threshold = split + [-1, -1], child + [0, 0], threshold + [0.0, 0.0]
    shape = (len(splits), rules.features)
    order = np.concatenate(leaves)
    return ObliqueTree(
        np.array(split, np.int32),
        np.array(child, np.int32),
        np.array(threshold),
        np.array([best.columns for best in splits], np.int32).reshape(shape),
        np.array([best.weights for best in splits], np.float64).reshape(shape),
        np.array([len(leaf) for leaf in leaves], np.int32),
        rows[order],
        draws[order],
    )


def _best_split(
    data: _TrainingSet, rules: ObliqueRules, rows: np.ndarray, draws: np.ndarray, random: np.random.Generator
) -> _Split | None:
    features, truth = data.features, data.truth
    codes, labels = truth.codes[rows], truth.labels[rows]
    if (codes == codes[0]).all():
        return None
    width = features.shape[1]
    # In the gain, a sample weighs the inverse of its label's frequency in the node.
    label_codes = np.unique(labels, return_inverse=True)[1]
    weights = draws / np.bincount(label_codes, draws)[label_codes]
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
        block = features[np.ix_(rows, columns)] if rules.features < width else features[rows]
        if truth.regresses:
            direction, bias = regress(block, aim, costs, rules.penalty, rules.epsilon, gram)
        else:
            direction, bias = separate(block, aim, costs, rules.penalty)
        scores, threshold = block @ direction, cut - bias
        left = scores < threshold
        if not truth.regresses and (left.all() or not left.any()):
            # The costs of a rare cluster can outweigh the common one, so that all rows fall on its side.
            threshold = scores @ draws / draws.sum()
            left = scores < threshold
        if left.all() or not left.any():
            continue
        loss = sum(_impurity(truth, codes[side], label_codes[side], weights[side]) for side in (left, ~left))
        if loss < least:
            best, least = _Split(columns, direction, threshold, left), loss
    return best


def _impurity(truth: Truth, codes: np.ndarray, label_codes: np.ndarray, weights: np.ndarray) -> float:
    """Return the variance of the codes, or the entropy of the labels, times the sum of the weights."""
    total = weights.sum()
    if truth.spreads:
        mean = weights @ codes / total
        return float(weights @ np.square(codes - mean).sum(1))
    share = np.bincount(label_codes, weights)
    share = share[share > 0] / total
    return float(-total * (share * np.log(share)).sum())


def join_oblique(trees: list[ObliqueTree], width: int, device: torch.device, collective: Collective) -> ObliqueForest:
    """Join the trees of all processes into one forest with D = ``width``; see :func:`.flat.join_arrays`."""
    whole, number = np.empty(0, np.int32), np.empty(0)
    like = ObliqueTree(whole, whole, number, whole.reshape(0, width), number.reshape(0, width), whole, whole, whole)
    joined, lengths = join_arrays(trees, like, device, collective)
    inner, counts = joined[0] >= 0, dict(zip(ObliqueTree._fields, lengths.unbind(1)))
    roots = number_across(joined[1], inner, counts["split"], counts["split"], counts["sizes"])
    number_across(joined[0], inner, counts["split"], counts["columns"], torch.zeros_like(counts["split"]))
    return ObliqueForest(roots, *joined)


def reach(rows: Tensor, forest: ObliqueForest, depth: int) -> Tensor:
    """Return the leaf of every row (B, F) in every tree, with at most ``depth`` splits on a path: (B, T), int64."""
    if traced():
        return _follow(rows.to(forest.weights.dtype), forest, depth)
    leaves = torch.empty(len(rows), len(forest.roots), dtype=torch.int64, device=rows.device)
    step = max(1, NUMBERS_AT_ONCE // (len(forest.roots) * max(1, forest.columns.shape[1])))
    for start in range(0, len(rows), step):
        block = rows[start : start + step].to(forest.weights.dtype)
        node = forest.roots.long().expand(len(block), -1).clone()
        row, tree = (forest.split[node] >= 0).nonzero(as_tuple=True)
        while len(row):
            here = node[row, tree]
            split = forest.split[here].long()
            score = (block[row[:, None], forest.columns[split].long()] * forest.weights[split]).sum(1)
            here = forest.child[here].long() + (score >= forest.threshold[here])
            node[row, tree] = here
            going = forest.split[here] >= 0
            row, tree = row[going], tree[going]
        leaves[start : start + step] = forest.child[node].long()
    return leaves


def _follow(rows: Tensor, forest: ObliqueForest, depth: int) -> Tensor:
    """Compute :func:`reach` by the same number of steps of all rows in all trees, for a graph."""
    node = forest.roots.long().expand(rows.shape[0], -1)
    for _ in range(depth):
        split = pick(forest.split, node).long()
        going, split = split >= 0, split.clamp_min(0)
        chosen = rows.unsqueeze(1).expand(-1, split.shape[1], -1).gather(2, pick(forest.columns, split).long())
        right = (chosen * pick(forest.weights, split)).sum(2) >= pick(forest.threshold, node)
        node = torch.where(going, pick(forest.child, node).long() + right.long(), node)
    return pick(forest.child, node).long()


def leaf_means(forest: ObliqueForest, columns: Tensor) -> Tensor:
    """Return the means (L, c) of training columns (N, c) over the draws of each leaf, in the columns' dtype."""
    leaf = torch.repeat_interleave(torch.arange(len(forest.sizes), device=columns.device), forest.sizes.long())
    draws = forest.draws.to(columns.dtype)[:, None]
    sums = columns.new_zeros(len(forest.sizes), columns.shape[1])
    sums.index_add_(0, leaf, draws * columns[forest.rows.long()])
    return sums / columns.new_zeros(len(forest.sizes), 1).index_add_(0, leaf, draws)
