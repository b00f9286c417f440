"""The best split of a node: goes through its features, and hands each to the search that was chosen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.columns import Columns, Layout
from ldl.methods.forest.compiled import inlined
from ldl.methods.forest.divergence import Mass, binned_feature, drawn_feature, ordered_feature
from ldl.methods.forest.draws import next_bits, next_share
from ldl.methods.forest.impurity import TIE, Node, Split
from ldl.methods.forest.ordered import adaptive_feature, exact_feature
from ldl.methods.forest.unordered import histogram_feature, random_feature

EXACT, ADAPTIVE, HISTOGRAM, RANDOM = range(4)
LAYOUTS: tuple[Layout, ...] = ("ordered", "ordered", "binned", "plain")
"""How each search wants the features."""
CLUSTERS, LOG_LOSS = range(2)


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
    criterion: int = CLUSTERS


@inlined
def search(
    columns: Columns,
    ids: np.ndarray,
    listed: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    live: np.ndarray,
    alive: int,
    packed: np.ndarray,
    own: np.ndarray,
    counts: np.ndarray,
    table: np.ndarray,
    node: Node,
    rows: np.ndarray,
    mass: Mass,
    rules: Rules,
    state: np.ndarray,
) -> tuple[Split, int]:
    """The best split of a node, and how many features are kept for its children.

    The first ``alive`` features of ``live[0]`` are tried, those that are kept are written to ``live[1]``. Features
    that are constant here are not kept, and do not count as tried.
    """
    most = node.impurity - node.n * rules.min_gain
    # The adaptive step is one of the best gain so far, be it too small for a split.
    best = Split(np.int32(-1), np.float32(0), node.impurity if rules.search == ADAPTIVE else most, 0)
    keeps, tried, k = 0, 0, 0
    # Small nodes gain nothing from blocks.
    block = min(rules.block, max(1, node.count // 8))
    while k < alive and tried < rules.tries and min(best.impurity, most) > TIE * node.n:
        if rules.tries < alive:
            other = k + int(next_bits(state) % np.uint64(alive - k))
            live[0, k], live[0, other] = live[0, other], live[0, k]
        f = live[0, k]
        k += 1
        if rules.search == EXACT or rules.search == ADAPTIVE:
            begin, end, default = lo[f], hi[f], columns.default[f]
            constant = begin == end or (end - begin == node.count and listed[begin] == listed[end - 1])
            if not constant and rules.criterion == LOG_LOSS:
                best = ordered_feature(ids, listed, listed, packed, table, node, mass, f, begin, end, default, best)
            elif not constant and rules.search == EXACT:
                best = exact_feature(ids, listed, packed, table, node, f, begin, end, default, block, best)
            elif not constant:
                best = adaptive_feature(
                    ids, listed, packed, table, node, f, begin, end, default, rules.alpha, rules.beta, best
                )
        elif rules.search == HISTOGRAM:
            codes, low, high = columns.codes[f], columns.low[f], columns.high[f]
            if rules.criterion == LOG_LOSS:
                best, constant = binned_feature(codes, low, high, rows, packed, table, node, mass, f, best)
            else:
                best, constant = histogram_feature(codes, low, high, own, counts, table, node, f, best)
        else:
            share, column = next_share(state), columns.values[f]
            if rules.criterion == LOG_LOSS:
                best, constant = drawn_feature(column, own, rows, table, node, mass, f, share, best)
            else:
                best, constant = random_feature(column, own, counts, table, node, f, share, best)
        if not constant:
            tried += 1
            live[1, keeps] = f
            keeps += 1
    if best.impurity >= most - TIE * node.n:
        best = Split(np.int32(-1), np.float32(0), most, best.evaluations)
    # Those that were not looked at may still vary.
    left = alive - k
    live[1, keeps : keeps + left] = live[0, k:alive]
    return best, keeps + left
