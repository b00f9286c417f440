"""Grows the trees of a forest, in threads; which rows and random numbers a tree gets depends on its number alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ldl.methods.forest.columns import make_columns
from ldl.methods.forest.draws import bootstrap, stream
from ldl.methods.forest.grower import Tree, grow
from ldl.methods.forest.impurity import log_table
from ldl.methods.forest.search import LAYOUTS, Rules


def grow_trees(
    features: np.ndarray,
    codes: np.ndarray,
    rules: Rules,
    numbers: Iterable[int],
    *,
    sampling: float = 0.8,
    replace: bool = True,
    bins: int = 256,
    seed: int = 0,
    threads: int = 1,
) -> Iterator[Tree]:
    """Yield the trees with these numbers, in order, as they are done.

    Args:
        features: (N, F), finite.
        codes: (N, C), what nodes are relabelled by: the distributions.
        rules: How trees grow.
        numbers: Which trees of the forest.
        sampling: Draws of a tree, as a share of N.
        replace: Whether they are drawn with replacement.
        bins: Bins of a feature for ``HISTOGRAM``, at most 256.
        seed: Seed of the forest.
        threads: How many trees grow at a time.
    """
    # One layout and dtype of every argument: numba compiles anew for each.
    codes = np.ascontiguousarray(codes, np.float32)
    columns = make_columns(np.asarray(features, np.float32), LAYOUTS[rules.search], bins, threads)
    draws = max(1, round(sampling * len(codes)))
    table = log_table(draws)

    def one(number: int) -> Tree:
        rows, weights = bootstrap(len(codes), sampling, replace, seed, number)
        return grow(columns, rows, weights, codes, table, rules, stream(seed, number))

    if threads == 1:
        yield from map(one, numbers)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(one, numbers)
