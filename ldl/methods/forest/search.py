"""The best split of a node: goes through its features, and hands each to the search that was chosen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.columns import Columns, Layout
from ldl.methods.forest.compiled import inlined
from ldl.methods.forest.draws import next_bits, next_share
from ldl.methods.forest.impurity import TIE
from ldl.methods.forest.ordered import adaptive_feature, exact_feature
from ldl.methods.forest.unordered import histogram_feature, random_feature

EXACT, ADAPTIVE, HISTOGRAM, RANDOM = range(4)
LAYOUTS: tuple[Layout, ...] = ("ordered", "ordered", "binned", "plain")
"""How each search wants the features."""


class Rules(NamedTuple):
    """How trees grow; what each entry means is said in :class:`ldl.heads.structrf.StructRF`."""

    search: int
    depth: int
    min_samples: int
    min_leaf: int
    min_gain: float
    tries: int
    alpha: float
    beta: float
    block: int


@inlined
def search(
    columns: Columns,
    ids: np.ndarray,
    listed: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    live: np.ndarray,
    alive: int,
    kept: np.ndarray,
    packed: np.ndarray,
    own: np.ndarray,
    counts: np.ndarray,
    table: np.ndarray,
    n: int,
    ones: int,
    count: int,
    best: float,
    rules: Rules,
    state: np.ndarray,
) -> tuple[int, float, float, int, int]:
    """The best split of a node: feature (-1 for none), threshold, impurity, features kept, impurities computed.

    Features that are constant here are not kept for the children, and do not count as tried.
    """
    feature, cut, evaluations = -1, np.float32(0), 0
    keeps, tried, k = 0, 0, 0
    # Small nodes gain nothing from blocks.
    block = min(rules.block, max(1, count // 8))
    while k < alive and tried < rules.tries and best > TIE * n:
        if rules.tries < alive:
            other = k + int(next_bits(state) % np.uint64(alive - k))
            live[k], live[other] = live[other], live[k]
        f = live[k]
        k += 1
        if rules.search == EXACT or rules.search == ADAPTIVE:
            begin, end = lo[f], hi[f]
            if begin == end or (end - begin == count and listed[begin] == listed[end - 1]):
                continue
            if rules.search == EXACT:
                best, threshold, found, more = exact_feature(
                    listed, ids, columns.default[f], begin, end, count, packed, table, n, ones,
                    rules.min_leaf, block, best,
                )  # fmt: skip
            else:
                best, threshold, found, more = adaptive_feature(
                    listed, ids, columns.default[f], begin, end, count, packed, table, n, ones,
                    rules.min_leaf, rules.alpha, rules.beta, best,
                )  # fmt: skip
        else:
            if rules.search == HISTOGRAM:
                best, threshold, found, more, constant = histogram_feature(
                    columns.codes[f], columns.low[f], columns.high[f], own, counts, table, n, ones, rules.min_leaf, best
                )
            else:
                best, threshold, found, more, constant = random_feature(
                    columns.values[f], own, counts, table, n, ones, rules.min_leaf, next_share(state), best
                )
            if constant:
                continue
        evaluations += more
        tried += 1
        kept[keeps] = f
        keeps += 1
        if found:
            feature, cut = f, threshold
    # Those that were not looked at may still vary.
    while k < alive:
        kept[keeps] = live[k]
        keeps += 1
        k += 1
    return feature, cut, best, keeps, evaluations
