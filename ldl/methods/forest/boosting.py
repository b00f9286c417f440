"""Boosts trees round by round: derivatives at the scores so far, a tree for them, the scores with that tree."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Executor
from functools import partial
from itertools import count
from typing import Literal, NamedTuple

import numpy as np
import torch

from ldl.collective import Collective
from ldl.methods.forest.bins import Bins, make_bins
from ldl.methods.forest.boosted_forest import add_leaves, join_boosted
from ldl.methods.forest.boosted_tree import BoostedTree, Grower, Shape
from ldl.methods.forest.boosting_loss import Loss, derive, mean_loss, number_of
from ldl.methods.forest.coded_tree import CodedTree, add_coded, code_tree
from ldl.methods.forest.draws import subset
from ldl.methods.mapped import LARGE, blocks, release

Trees = Literal["vector", "label"]
Search = Literal["histogram", "random"]
IDLE = 50
"""Rounds in a row whose draws, of rows, features or cuts, leave no split, after which there is none to be made."""
WORTH_THREADS = 50_000
"""Derivatives below which starting threads costs more than it saves."""


class Plan(NamedTuple):
    """How trees are boosted; see :class:`ldl.heads.boosted_trees.BoostedTrees`."""

    shape: Shape
    trees: Trees
    loss: Loss
    sampling: float
    features: float
    bins: int
    seed: int
    threads: int


class Rows(NamedTuple):
    """What is learned from, or watched.

    Attributes:
        features: (N, F) float32, contiguous; maybe in a map of a file.
        target: (n, C) float32, contiguous: distributions.
        chosen: (n,) int32, those rows of ``features`` that they belong to, rising; none for all.
    """

    features: np.ndarray
    target: np.ndarray
    chosen: np.ndarray = np.empty(0, np.int32)


class Round(NamedTuple):
    """One round.

    Attributes:
        trees: One, or one a label.
        loss: The mean loss of the rows that are watched, NaN without any.
    """

    trees: list[BoostedTree]
    loss: float


def boost(
    train: Rows,
    start: np.ndarray,
    rounds: int,
    plan: Plan,
    collective: Collective,
    device: torch.device,
    watched: Rows | None = None,
) -> Generator[Round, None, None]:
    """Yield round after round, fewer where no tree of one finds a split, or of many in a row where something is drawn.

    Args:
        train: What is learned from; every process has all rows.
        start: (C,) float32, the scores before the first round.
        rounds: At most so many.
        plan: How.
        collective: Processes share the features.
        device: Where the collective's tensors must lie.
        watched: Rows whose loss is measured after every round.
    """
    target, labels = train.target, train.target.shape[1]
    chosen = train.chosen if len(train.chosen) else None
    bins = make_bins(train.features, plan.bins, chosen, plan.threads)
    grower = Grower(bins, plan.threads, collective, device)
    shares_labels = plan.trees == "label" and collective.world_size == 1 and 1 < plan.threads <= labels
    growers = grower.beside(plan.threads) if shares_labels else [grower]
    scores = np.tile(start, (len(target), 1))
    seen = None if watched is None else np.tile(start, (len(watched.target), 1))
    derivatives = np.empty((len(target), 2 * labels), np.float32)
    loss = number_of(plan.loss)
    draws_anew = plan.shape.newton.random or plan.sampling < 1 or plan.features < 1
    try:
        done, idle = 0, 0
        for number in count():
            if done == rounds or idle == (IDLE if draws_anew else 1):
                return
            _by_rows(grower, len(target), labels, partial(_derive, scores, target, loss, derivatives))
            rows = subset(len(target), plan.sampling, plan.seed, number)
            split_by = _columns(bins.codes.shape[0], plan.features, plan.seed, number)
            draws = _streams(plan.seed, number, labels)
            if plan.trees == "vector":
                trees = [grower.grow(derivatives, rows, split_by, plan.shape, int(draws[0]))]
            else:
                one = partial(_grow_label, derivatives, rows, split_by, plan.shape, draws)
                trees = _by_labels(growers, grower.pool, labels, one)
            if all(len(tree.feature) == 1 for tree in trees):
                idle += 1
                continue
            done, idle = done + 1, 0
            for label, tree in enumerate(trees):
                _by_rows(grower, len(target), labels, partial(_add, bins, train, code_tree(tree, bins), scores, label))
            if train.features.nbytes >= LARGE:
                release(train.features)
            left = np.nan
            if watched is not None and seen is not None:
                forest = [part.numpy() for part in join_boosted(trees, trees[0].values.shape[1], torch.device("cpu"))]
                _by_rows(grower, len(seen), labels, partial(_watch, watched.features, forest, seen))
                left = mean_loss(seen, watched.target, loss)
            yield Round(trees, left)
    finally:
        grower.close()


def _columns(width: int, share: float, seed: int, number: int) -> np.ndarray:
    """The features of a round, rising; they depend on the seed and the round's number alone."""
    count = max(1, round(share * width))
    if count == width:
        return np.arange(width)
    return np.sort(np.random.default_rng([seed, number, 2]).choice(width, count, replace=False))


def _streams(seed: int, number: int, labels: int) -> np.ndarray:
    """What the random numbers of a round's trees begin with, one a label."""
    return np.random.default_rng([seed, number, 3]).integers(2**64, size=labels, dtype=np.uint64)


def _grow_label(
    derivatives: np.ndarray, rows: np.ndarray, features: np.ndarray, shape: Shape, draws: np.ndarray, grower: Grower,
    label: int,
) -> BoostedTree:  # fmt: skip
    own = np.ascontiguousarray(derivatives[:, label :: derivatives.shape[1] // 2])
    return grower.grow(own, rows.copy(), features, shape, int(draws[label]))


def _by_labels(
    growers: list[Grower], pool: Executor | None, labels: int, one: Callable[[Grower, int], BoostedTree]
) -> list[BoostedTree]:
    """The trees of a round, one a label; with several growers each grows its labels' in a thread of its own."""

    def some(place: int) -> list[BoostedTree]:
        return [one(growers[place], label) for label in range(place, labels, len(growers))]

    parts = list(pool.map(some, range(len(growers))) if pool is not None and len(growers) > 1 else [some(0)])
    return [parts[label % len(growers)][label // len(growers)] for label in range(labels)]


def _derive(scores: np.ndarray, target: np.ndarray, loss: int, derivatives: np.ndarray, part: slice) -> None:
    derive(scores[part], target[part], loss, derivatives[part])


def _add(bins: Bins, train: Rows, tree: CodedTree, scores: np.ndarray, label: int, part: slice) -> None:
    add_coded(bins, train.features, train.chosen, tree, part.start, part.stop, scores, label)


def _watch(features: np.ndarray, forest: list[np.ndarray], scores: np.ndarray, part: slice) -> None:
    scores = scores[part]
    for first, block in blocks(features[part]):
        add_leaves(block, *forest, scores[first : first + len(block)])


def _by_rows(grower: Grower, rows: int, labels: int, one: Callable[[slice], None]) -> None:
    """Call with slices of the rows, in threads where that pays; rows do not mix, so the bits are the same."""
    threads = 1 if grower.pool is None or rows * labels < WORTH_THREADS else grower.threads
    cuts = np.linspace(0, rows, threads + 1).astype(int)
    parts = [slice(*ends) for ends in zip(cuts, cuts[1:])]
    list(grower.pool.map(one, parts) if grower.pool is not None and threads > 1 else map(one, parts))
