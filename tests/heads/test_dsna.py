"""DSNA: weights, anchors and predictions, also with few neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ldl.collective import Collective
from ldl.heads import DSNA, CostSensitiveForest, dsna
from ldl.labels import LabelSpace
from ldl.methods.dsna.clusters import gather_leaves, nearest_hull
from ldl.methods.dsna.sparse import approximate
from ldl.methods.dsna.weights import neighbour_weights
from ldl.methods.rows import Rows
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
    head.fit(Rows(torch.from_numpy(X[rows]), AGES.encode(value, 2.0), value), Collective())
    return head


def test_head_keeps_the_contract() -> None:
    check_head(lambda: DSNA(trees=1, clusters=1, rounds=1, tolerance=1e-2))


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


def test_no_more_numbers_of_neighbours_are_held_than_told(monkeypatch: pytest.MonkeyPatch) -> None:
    head, held = fitted(min_samples=100, rounds=1), []

    def weigh(points: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
        held.append(points.numel())
        return neighbour_weights(points, *rest)

    monkeypatch.setattr(dsna, "neighbour_weights", weigh)
    monkeypatch.setattr(dsna, "FEATURES_AT_ONCE", 3000)
    head(torch.from_numpy(X[:20]))
    assert len(held) < 20 and max(held) <= 3000


def looped(
    head: DSNA, rows: torch.Tensor, query: torch.Tensor, codes: torch.Tensor, start: torch.Tensor, ordered: bool
) -> torch.Tensor:
    """The code of one query, (c,), after all rounds on one cluster."""
    points, q, y, estimate = head.points[rows], head.map(query)[0], codes[rows], start
    for _ in range(head.rounds):
        gap = (y - estimate).norm(dim=1)
        widest = torch.maximum(y.amax(0) - y.amin(0), gap.max())
        factor = gap / (widest - gap + 0.05 * widest) if ordered else (gap > 0).double()
        distances = (points - q).norm(dim=1)
        anchor = (-distances / distances.mean() * factor / head.width).softmax(0)
        weights = approximate(
            (points - points.mean(0))[None], (q - points.mean(0))[None], anchor[None], head.sparsity, head.attraction,
            tolerance=head.tolerance,
        ).weights[0]  # fmt: skip
        estimate = y.mean(0) + weights @ (y - y.mean(0))
        if not ordered:
            estimate = torch.eye(len(estimate)).double()[estimate.argmax()]
    return estimate


ONE_CLUSTER: dict[str, Any] = {"clusters": 1, "width": 0.3, "sparsity": 0.02, "attraction": 0.1, "tolerance": 1e-7}


@pytest.mark.parametrize(("log_offset", "start", "rounds"), [(5.0, "forest", 1), (None, "cluster", 2)])
def test_rounds_are_what_a_loop_computes(log_offset: float | None, start: str, rounds: int) -> None:
    head = fitted(log_offset=log_offset, start=start, rounds=rounds, **ONE_CLUSTER)
    queries = torch.from_numpy(X[:2] + 0.1)
    means = CostSensitiveForest.point_estimate(head, queries)
    assert means is not None
    found = gather_leaves(head.forest, head.leaves(queries))
    codes = head.to_scale(torch.from_numpy(Y))[:, None]
    for query in range(2):
        rows = found.rows[query][found.real[query]]
        first = head.to_scale(means[query : query + 1]) if start == "forest" else codes[rows].mean(0)
        expected = head.from_scale(looped(head, rows, queries[query : query + 1], codes, first, True))
        ours = head.point_estimate(queries[query : query + 1])
        assert ours is not None
        assert float(ours) == pytest.approx(float(expected), abs=1e-3)


def test_labels_without_values_are_voted_for() -> None:
    """The estimate of a round is the label of most weight; it changes where the first was wrong."""
    labels = torch.from_numpy(np.digitize(Y, [27, 33]))
    target = torch.full((120, 3), 0.2).double().scatter(1, labels[:, None], 0.6)
    options = {**ONE_CLUSTER, "tolerance": 1e-4, "min_samples": 40, "start": "cluster", "rounds": 2}
    head = DSNA(seed=0, trees=4, features=1.0, **options)
    head.build(6, LabelSpace.nominal(["low", "middle", "high"]))
    head.fit(Rows(torch.from_numpy(X), target), Collective())
    queries, codes = torch.from_numpy(X[:8] + 0.2), torch.eye(3).double()[labels]
    found, ours, changed = gather_leaves(head.forest, head.leaves(queries)), head._approximate(queries)[1], 0
    for query in range(8):
        rows = found.rows[query][found.real[query]]
        first = torch.eye(3).double()[codes[rows].mean(0).argmax()]
        label = looped(head, rows, queries[query : query + 1], codes, first, False)
        assert torch.equal(ours[query], label)
        changed += not torch.equal(label, first)
    assert changed


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


def test_empty_clusters_are_never_the_nearest() -> None:
    points = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0)).double()
    members = torch.zeros(3, 3, 4, dtype=torch.bool)
    members[0, 1, 0] = members[1, 2, :2] = members[2, 0] = True
    # From where an empty cluster's mean would lie.
    assert nearest_hull(points, torch.zeros(3, 2).double(), members, 0.9).tolist() == [1, 2, 0]


@pytest.mark.parametrize("clusters", [1, 4])
def test_leaves_of_single_rows_are_predicted_from(clusters: int) -> None:
    features = torch.randn(40, 5, generator=torch.Generator().manual_seed(1))
    value = (features[:, 0] * 10 + 30).round().clamp(0, 60)
    labels = LabelSpace.ordinal(range(61), "years")
    head = DSNA(trees=1, depth=12, min_samples=2, features=1.0, clusters=clusters, seed=0)
    head.build(5, labels)
    head.fit(Rows(features, labels.encode(value, 1.0), value=value), Collective())
    predicted = head.point_estimate(features)
    assert predicted is not None and predicted.isfinite().all()
    assert (predicted - value).abs().mean() < 5
