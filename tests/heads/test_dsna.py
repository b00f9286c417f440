"""The DSNA head: contract, neighbourhoods, its parts put together against a loop, extrapolation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import DSNA, CostSensitiveForest
from ldl.labels import LabelSpace
from ldl.methods.dsna.neighbourhood import gather_leaves
from ldl.methods.dsna.sparse import approximate
from ldl.testing import check_head

AGES = LabelSpace.ordinal(range(0, 61), "years")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
Y = 30 + 6 * X[:, 0] + 2 * X[:, 1]


ALL = np.arange(120)


def fitted(rows: np.ndarray = ALL, **options: Any) -> DSNA:
    head = DSNA(**{"seed": 0, "trees": 4, "features": 1.0, "min_samples": 20, **options})
    head.build(6, AGES)
    value = torch.from_numpy(Y[rows])
    head.fit(torch.from_numpy(X[rows]), AGES.encode(value, 2.0), Collective(), value)
    return head


def test_head_keeps_the_contract() -> None:
    check_head(lambda: DSNA(trees=3, rounds=1, tolerance=1e-3))


def test_neighbours_are_the_union_of_the_leaves() -> None:
    head = fitted()
    leaves = head.leaves(torch.from_numpy(X[:9]))
    found = gather_leaves(head.forest, leaves)
    ends = head.forest.sizes.cumsum(0).tolist()
    for query in range(9):
        union: set[int] = set()
        for leaf in leaves[query].tolist():
            union |= set(head.forest.rows[ends[leaf] - int(head.forest.sizes[leaf]) : ends[leaf]].tolist())
        assert found.rows[query][found.real[query]].tolist() == sorted(union)


@pytest.mark.parametrize("log_offset", [None, 5.0])
def test_one_round_is_what_a_loop_computes(log_offset: float | None) -> None:
    options = {"clusters": 1, "rounds": 1, "width": 0.3, "sparsity": 0.02, "attraction": 0.1, "tolerance": 1e-7}
    head = fitted(log_offset=log_offset, **options)
    queries = torch.from_numpy(X[:3] + 0.1)
    start = CostSensitiveForest.point_estimate(head, queries)
    assert start is not None
    found = gather_leaves(head.forest, head.leaves(queries))
    offset = log_offset or 0.0
    for query in range(3):
        rows = found.rows[query][found.real[query]]
        points, q = head.points[rows], head.map(queries[query : query + 1])[0]
        y = torch.from_numpy(Y)[rows]
        y, estimate = ((y + offset).log(), (start[query] + offset).log()) if log_offset else (y, start[query])
        gap = (y - estimate).abs()
        widest = torch.maximum(y.max() - y.min(), gap.max())
        distances = (points - q).norm(dim=1)
        aware = distances / distances.mean() * gap / (widest - gap + 0.05 * widest)
        anchor = (-aware / 0.3).softmax(0)
        weights = approximate(
            (points - points.mean(0))[None], (q - points.mean(0))[None], anchor[None], 0.02, 0.1, tolerance=1e-7
        ).weights[0]
        value = y.mean() + weights @ (y - y.mean())
        expected = value.exp() - offset if log_offset else value
        ours = head.point_estimate(queries[query : query + 1])
        assert ours is not None
        assert float(ours) == pytest.approx(float(expected), abs=1e-4)


def test_values_extrapolate_where_leaf_means_cannot() -> None:
    known = np.flatnonzero(Y < 36)
    head = fitted(known, clusters=1, attraction=0.0, sparsity=1e-4, rounds=1, min_samples=40)
    beyond = np.flatnonzero(Y >= 38)
    queries = torch.from_numpy(X[beyond])
    ours, means = head.point_estimate(queries), CostSensitiveForest.point_estimate(head, queries)
    assert ours is not None and means is not None
    assert float(means.max()) <= Y[known].max()
    true = torch.from_numpy(Y[beyond])
    assert float((ours - true).abs().mean()) < 0.3 * float((means - true).abs().mean())


def test_strong_attraction_keeps_the_anchor() -> None:
    free, held = fitted(attraction=0.0, rounds=1), fitted(attraction=1e3, sparsity=0.0, rounds=1, width=1e9, clusters=1)
    queries = torch.from_numpy(X[:10])
    found = gather_leaves(held.forest, held.leaves(queries))
    ours = held.point_estimate(queries)
    assert ours is not None
    for query in range(10):
        mean = Y[found.rows[query][found.real[query]]].mean()
        assert float(ours[query]) == pytest.approx(mean, abs=1e-3)
    assert not torch.allclose(free.point_estimate(queries), ours)  # type: ignore[arg-type]


def test_a_round_that_settled_changes_no_more() -> None:
    few, many = fitted(rounds=15, attraction=5.0), fitted(rounds=30, attraction=5.0)
    queries = torch.from_numpy(X[:20])
    a, b = few.point_estimate(queries), many.point_estimate(queries)
    assert a is not None and b is not None
    assert float(((a - b).abs() < 0.1).double().mean()) > 0.8


@pytest.mark.parametrize(
    "options", [{"clusters": 0}, {"rounds": 0}, {"tau": 0}, {"width": -1}, {"energy": 2}, {"start": "x"}]
)
def test_bad_arguments_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(LDLError, match=f"DSNA.{next(iter(options))}"):
        DSNA(**options).build(3, AGES)
