"""A head behind a scaling of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from ldl.bags import Bagged
from ldl.collective import Collective
from ldl.data.tables.scaling import FeatureScaler
from ldl.edges import StructuredEdges
from ldl.errors import LDLError
from ldl.head import FittedHead, Head
from ldl.heads import AAKNN, BoostedTrees, CostSensitiveForest, MaxEnt, Pool, Scaled, Softmax, StructRF
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.testing import check_head

LABELS = LabelSpace.ordinal([10, 20, 30, 40])


def problem(rows: int = 90) -> tuple[Tensor, Tensor]:
    """Features with long tails, of which the ranks say the distribution."""
    generator = torch.Generator().manual_seed(0)
    plain = torch.randn(rows, 5, generator=generator)
    return (2 * plain).exp(), (plain @ torch.randn(5, 4, generator=generator)).softmax(-1)


def fitted(head: Head, **columns: Tensor) -> Any:
    assert isinstance(head, FittedHead)
    features, target = problem()
    head.build(5, LABELS)
    head.fit(Rows(features, target, **columns), Collective())
    return head


def test_contract() -> None:
    check_head(lambda: Scaled(AAKNN(3), "standard", clip=2.0))


@pytest.mark.parametrize("scaling", ["quantile_normal", "quantile_uniform", "standard", "ranks", "hellinger"])
def test_it_is_the_head_on_scaled_features(scaling: Any) -> None:
    features, target = problem()
    scaler = FeatureScaler(scaling, 2.0)
    scaler.fit(features.double().numpy())
    scaled = torch.from_numpy(scaler.transform(features.double().numpy())).float()
    head, alone = fitted(Scaled(AAKNN(3), scaling, clip=2.0)), AAKNN(3)
    alone.build(5, LABELS)
    alone.fit(Rows(scaled, target), Collective())
    assert torch.equal(head(features), alone(scaled))
    shown, expected = head.evidence(features[7]), alone.evidence(scaled[7])
    assert shown.names == expected.names and torch.equal(shown.weights, expected.weights)


def test_ranks_serve_where_tails_are_long() -> None:
    features, target = problem()
    scaled, plain = fitted(Scaled()), fitted(Scaled(scaling="standard"))

    def loss(head: Head) -> float:
        return float(head.loss(features, target)["loss"])

    assert isinstance(scaled.head, MaxEnt) and loss(scaled) < 0.5 * loss(plain)


def test_the_head_gets_the_groups() -> None:
    features, target = problem()
    group = torch.arange(90) // 10
    boosted, alone = fitted(Scaled(BoostedTrees(rounds=5, seed=0)), group=group), BoostedTrees(rounds=5, seed=0)
    alone.build(5, LABELS)
    alone.fit(Rows(boosted.scaled(features), target, group=group), Collective())
    assert boosted.summary() == alone.summary() != fitted(Scaled(BoostedTrees(rounds=5, seed=0))).summary()


def test_the_head_gets_the_values_and_says_its_own() -> None:
    features, target = problem()
    value = torch.arange(90.0) % 31 + 10
    found, alone = (CostSensitiveForest(trees=2, depth=2, seed=0) for _ in range(2))
    found = fitted(Scaled(found), value=value)
    alone.build(5, LABELS)
    scaled = found.scaled(features)
    alone.fit(Rows(scaled, target, value=value), Collective())
    assert torch.equal(found.head.leaf_values, alone.get_buffer("leaf_values"))
    estimate, expected = found.point_estimate(features), alone.point_estimate(scaled)
    assert expected is not None and torch.equal(estimate, expected)
    assert torch.equal(found.predict(features)[1], expected)
    assert fitted(Scaled()).point_estimate(features) is None


def test_the_head_shows_its_progress(capsys: pytest.CaptureFixture) -> None:
    head = Scaled()
    head.shows_progress = True
    fitted(head)
    assert "choosing l2" in capsys.readouterr().out
    fitted(Scaled())
    assert capsys.readouterr().out == ""


def test_in_a_pool_it_has_the_name_of_its_head() -> None:
    pool = Pool([Scaled(), MaxEnt(l2=0.1), Scaled(StructRF(trees=2))], folds=3)
    assert pool.names == ["MaxEnt_1", "MaxEnt_2", "StructRF"]


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (Softmax(), "Scaled.head Softmax is not fitted on rows; put it into Trained"),
        (Bagged(), "Scaled.head Bagged is not fitted on rows; put it into Trained"),
        (StructuredEdges(), "Scaled.head StructuredEdges is not fitted on rows; use it alone"),
    ],
)
def test_other_heads_are_refused(head: Head, words: str) -> None:
    with pytest.raises(LDLError, match=words):
        Scaled(head).build(5, LABELS)
