"""DSNA where a query has fewer neighbours than clusters are asked for."""

from __future__ import annotations

import pytest
import torch

from ldl.collective import Collective
from ldl.heads import DSNA
from ldl.labels import LabelSpace
from ldl.methods.dsna.clusters import nearest_hull


def test_empty_clusters_are_never_the_nearest() -> None:
    points = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0)).double()
    members = torch.zeros(3, 3, 4, dtype=torch.bool)
    members[0, 1, 0] = members[1, 2, :2] = members[2, 0] = True
    # From where an empty cluster's mean would lie.
    assert nearest_hull(points, torch.zeros(3, 2).double(), members, 0.9).tolist() == [1, 2, 0]


@pytest.mark.parametrize("clusters", [1, 2, 4])
def test_leaves_of_single_rows_are_predicted_from(clusters: int) -> None:
    features = torch.randn(40, 5, generator=torch.Generator().manual_seed(1))
    value = (features[:, 0] * 10 + 30).round().clamp(0, 60)
    labels = LabelSpace.ordinal(range(61), "years")
    head = DSNA(trees=1, depth=12, min_samples=2, features=1.0, clusters=clusters, seed=0)
    head.build(5, labels)
    head.fit(features, labels.encode(value, 1.0), Collective(), value=value)
    predicted = head.point_estimate(features)
    assert predicted is not None and predicted.isfinite().all()
    assert (predicted - value).abs().mean() < 5
