"""Boost trees round by round: derivatives at the current scores, a tree that fits them, the scores with this tree.

With the softmax p of the scores s and the target d, a distribution, the losses are:

``kl`` is sum_c d_c ln(d_c / p_c). Its gradient is p_c - d_c, the diagonal of its Hessian p_c (1 - p_c) (Friedman 2001,
section 4.6).

``cdf`` is sum_j (P_j - D_j)^2 with the cumulative sums P and D. As dP_j / ds_c = p_c ([c <= j] - P_j), its gradient is
2 p_c sum_j (P_j - D_j) ([c <= j] - P_j), and the diagonal of its Gauss-Newton matrix is
2 p_c^2 sum_j ([c <= j] - P_j)^2. For small p_c this falls faster than the gradient, and steps would grow without bound.
So the second derivative here is this diagonal over p_c, which bounds it from above.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Executor
from functools import partial
from itertools import count
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch

from ldl.collective import Collective
from ldl.labels import KL_FLOOR
from ldl.methods.forest.binning import FeatureBins, make_bins
from ldl.methods.forest.boosted_tree import Grower, Shape
from ldl.methods.forest.flat import FlatTree
from ldl.methods.forest.predict import add_leaves
from ldl.methods.forest.sampling import subset
from ldl.methods.numba_kernels import compiled, inlined

Loss = Literal["kl", "cdf"]
KL, CDF = range(2)
LEAST_HESSIAN = 1e-6
"""Smallest second derivative of a row and a label, which would otherwise vanish for confident scores."""
Trees = Literal["vector", "label"]
ThresholdSearch = Literal["histogram", "random"]
ROOT = np.zeros(1, np.int32)
"""First node of the only tree of a forest."""
IDLE = 50
"""Rounds in a row in which the draws of rows, features or thresholds allow no split, after which boosting stops."""
DERIVATIVES_WORTH_THREADS = 50_000
"""Derivatives below which starting threads costs more than it saves."""


class BoostingPlan(NamedTuple):
    """Hyperparameters of boosting; see :class:`ldl.heads.boosted_trees.BoostedTrees`."""

    shape: Shape
    trees: Trees
    loss: Loss
    sampling: float
    features: float
    bins: int
    seed: int
    threads: int


class BoostingRows(NamedTuple):
    """Training or validation rows as boosting reads them.

    Attributes:
        features: (N, F) float32, contiguous; may be a memory-mapped file.
        target: (n, C) float32, contiguous: distributions.
        chosen: (n,) int32, their rows of ``features``, rising; empty for all.
        weight: (n,) float32 weights; empty for equal ones.
    """

    features: np.ndarray
    target: np.ndarray
    chosen: np.ndarray = np.empty(0, np.int32)
    weight: np.ndarray = np.empty(0, np.float32)

    @property
    def start(self) -> np.ndarray:
        """Scores (C,) of the mean distribution, float32."""
        if len(self.weight):
            mean = np.average(self.target.astype(np.float64), 0, self.weight)
        else:
            mean = self.target.mean(0, dtype=np.float64)
        return np.log(np.maximum(mean, KL_FLOOR)).astype(np.float32)

    def mean_loss(self, scores: np.ndarray, loss: int) -> float:
        """Return the mean loss at scores (n, C)."""
        return mean_loss(scores, self.target, loss, self.weight)


class Round(NamedTuple):
    """One round.

    Attributes:
        trees: One tree, or one tree per label.
        loss: The mean loss of the validation rows, NaN without any.
    """

    trees: list[FlatTree]
    loss: float


def boost(
    train: BoostingRows, rounds: int, plan: BoostingPlan, collective: Collective, device: torch.device,
    watched: BoostingRows | None = None,
) -> Generator[Round, None, None]:  # fmt: skip
    """Yield round after round, until a round finds no split (with random draws: until ``IDLE`` rounds in a row do).

    Args:
        train: Training rows; every process has all of them.
        rounds: Maximum number of rounds.
        plan: Hyperparameters.
        collective: Processes share the features.
        device: Device of the tensors of the collective.
        watched: Validation rows, whose loss is measured after every round.
    """
    target, labels, start = train.target, train.target.shape[1], train.start
    chosen = train.chosen if len(train.chosen) else None
    bins = make_bins(train.features, plan.bins, chosen, plan.threads)
    grower = Grower(bins, plan.threads, collective, device)
    shares_labels = plan.trees == "label" and collective.world_size == 1 and 1 < plan.threads <= labels
    growers = grower.beside(plan.threads) if shares_labels else [grower]
    scores = np.tile(start, (len(target), 1))
    seen = None if watched is None else np.tile(start, (len(watched.target), 1))
    derivatives = np.empty((len(target), 2 * labels), np.float32)
    loss = number_of(plan.loss)
    is_random = plan.shape.newton.random or plan.sampling < 1 or plan.features < 1
    try:
        done, idle = 0, 0
        for number in count():
            if done == rounds or idle == (IDLE if is_random else 1):
                return
            _by_rows(grower, scores, lambda a, b: derive(scores[a:b], target[a:b], loss, derivatives[a:b]))
            if len(train.weight):
                np.multiply(derivatives, train.weight[:, None], out=derivatives)
            rows = subset(len(target), plan.sampling, plan.seed, number)
            split_by = _columns(bins.codes.shape[0], plan.features, plan.seed, number)
            # The initial state of the random numbers of each label's tree.
            draws: np.ndarray = np.random.default_rng([plan.seed, number, 3]).integers(
                2**64, size=labels, dtype=np.uint64
            )
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
                coded = train.features, train.chosen, tree, *code_thresholds(tree, bins)
                _by_rows(grower, scores, partial(add_coded, bins, *coded, scores, label))
            left = np.nan
            if watched is not None and seen is not None:
                for label, tree in enumerate(trees):
                    _by_rows(grower, seen, partial(_add_tree, watched.features, tree, seen, label))
                left = watched.mean_loss(seen, loss)
            yield Round(trees, left)
    finally:
        grower.close()


def _add_tree(features: np.ndarray, tree: FlatTree, scores: np.ndarray, label: int, first: int, last: int) -> None:
    """Add the values of the leaves that the rows first..last - 1 reach to their ``scores`` (n, C)."""
    add_leaves(features[first:last], ROOT, *tree[:5], scores[first:last], label)


def _columns(width: int, share: float, seed: int, number: int) -> np.ndarray:
    """Return the features of a round, rising; they depend only on the seed and the number of the round."""
    count = max(1, round(share * width))
    if count == width:
        return np.arange(width)
    return np.sort(np.random.default_rng([seed, number, 2]).choice(width, count, replace=False))


def _grow_label(
    derivatives: np.ndarray, rows: np.ndarray, features: np.ndarray, shape: Shape, draws: np.ndarray, grower: Grower,
    label: int,
) -> FlatTree:  # fmt: skip
    label_derivatives = np.ascontiguousarray(derivatives[:, label :: derivatives.shape[1] // 2])
    return grower.grow(label_derivatives, rows.copy(), features, shape, int(draws[label]))


def _by_labels(
    growers: list[Grower], pool: Executor | None, labels: int, one: Callable[[Grower, int], FlatTree]
) -> list[FlatTree]:
    """Return the trees of a round, one tree per label; each of several growers uses a thread of its own."""

    def some(number: int) -> list[FlatTree]:
        return [one(growers[number], label) for label in range(number, labels, len(growers))]

    grown = list(pool.map(some, range(len(growers))) if pool is not None and len(growers) > 1 else [some(0)])
    return [grown[label % len(growers)][label // len(growers)] for label in range(labels)]


def _by_rows(grower: Grower, scores: np.ndarray, one: Callable[[int, int], None]) -> None:
    """Call with the ends of parts of the rows, in threads if this pays; rows are independent, so the bits are equal."""
    if grower.pool is None or scores.size < DERIVATIVES_WORTH_THREADS:
        one(0, len(scores))
        return
    cuts = np.linspace(0, len(scores), 1 + grower.threads).astype(int).tolist()
    list(grower.pool.map(one, cuts, cuts[1:]))


@compiled
def code_thresholds(tree: FlatTree, bins: FeatureBins) -> tuple[np.ndarray, np.ndarray]:
    """Express the thresholds of a tree by the bins from which it was grown.

    Returns:
        The last bin wholly to the left of each node, and the bin that contains the threshold, (M,) int32, -1 for none.
        No row of the tree is in the latter bin, but other rows may be, and are sorted by their values.
    """
    below, split_bin = np.full(len(tree.feature), -1, np.int32), np.full(len(tree.feature), -1, np.int32)
    for node in range(len(tree.feature)):
        f, threshold = tree.feature[node], tree.threshold[node]
        if f >= 0:
            filled = bins.filled[f]
            next_ = np.searchsorted(bins.high[f, :filled], threshold, "right")
            below[node] = next_ - 1
            if next_ < filled and bins.low[f, next_] <= threshold:
                split_bin[node] = next_
    return below, split_bin


@compiled
def add_coded(
    bins: FeatureBins, features: np.ndarray, rows: np.ndarray, tree: FlatTree, below: np.ndarray, split_bin: np.ndarray,
    scores: np.ndarray, label: int, first: int, last: int,
) -> None:  # fmt: skip
    """Add the values of the leaves that the binned rows first..last - 1 reach to their ``scores`` (n, C).

    The rows ``rows``, int32, of ``features`` (N, F) were binned, or all rows if ``rows`` is empty. Leaves with one step
    add to the score of ``label``. ``below`` and ``split_bin`` are from :func:`code_thresholds`.
    """
    column = label if tree.values.shape[1] == 1 else 0
    for i in range(first, last):
        at = 0
        while tree.feature[at] >= 0:
            f = tree.feature[at]
            code = np.int64(bins.codes[f, i])
            if code == bins.filled[f]:
                left = tree.missing_left[at]
            elif code == split_bin[at]:
                left = features[rows[i] if len(rows) else i, f] <= tree.threshold[at]
            else:
                left = code <= below[at]
            at = tree.child[at] + (0 if left else 1)
        leaf = tree.child[at]
        for c in range(tree.values.shape[1]):
            scores[i, column + c] += tree.values[leaf, c]


def number_of(loss: Loss) -> int:
    """Return the number of a loss in compiled code."""
    return get_args(Loss).index(loss)


@inlined
def _softmax(scores: np.ndarray, out: np.ndarray) -> None:
    top = scores[0]
    for score in scores:
        top = max(top, score)
    total = 0.0
    for c in range(len(scores)):
        out[c] = np.exp(np.float64(scores[c]) - np.float64(top))
        total += out[c]
    for c in range(len(scores)):
        out[c] /= total


@compiled
def derive(scores: np.ndarray, target: np.ndarray, loss: int, out: np.ndarray) -> None:
    """Fill ``out`` (N, 2 C) float32 with gradients and second derivatives at scores and targets (N, C)."""
    width = scores.shape[1]
    p = np.empty(width)
    for i in range(len(scores)):
        _softmax(scores[i], p)
        if loss == KL:
            for c in range(width):
                out[i, c] = p[c] - target[i, c]
                out[i, width + c] = max(p[c] * (1 - p[c]), LEAST_HESSIAN)
        else:
            _derive_cdf(p, target[i], out[i])


@inlined
def _derive_cdf(p: np.ndarray, target: np.ndarray, out: np.ndarray) -> None:
    width = len(p)
    # Sums over j of error_j P_j and of P_j^2; then, from the end, sums over j >= c of error_j and of 1 - 2 P_j.
    crossed, squares, below, wanted = 0.0, 0.0, 0.0, 0.0
    for j in range(width):
        below += p[j]
        wanted += np.float64(target[j])
        crossed += (below - wanted) * below
        squares += below * below
    errors, rest = 0.0, 0.0
    for c in range(width - 1, -1, -1):
        errors += below - wanted
        rest += 1 - 2 * below
        out[c] = 2 * p[c] * (errors - crossed)
        out[width + c] = max(2 * p[c] * (rest + squares), LEAST_HESSIAN)
        below -= p[c]
        wanted -= np.float64(target[c])


@compiled
def mean_loss(scores: np.ndarray, target: np.ndarray, loss: int, weight: np.ndarray) -> float:
    """Return the mean loss over the rows of scores and targets (N, C), with weights (N,), or none if all are equal."""
    width = scores.shape[1]
    p = np.empty(width)
    total, weights = 0.0, 0.0
    for i in range(len(scores)):
        _softmax(scores[i], p)
        row_weight = np.float64(weight[i]) if len(weight) else 1.0
        weights += row_weight
        below = 0.0
        for c in range(width):
            d = np.float64(target[i, c])
            if loss == CDF:
                below += p[c] - d
                total += row_weight * below * below
            elif d > 0:
                total += row_weight * d * np.log(d / max(p[c], KL_FLOOR))
    return total / weights
