"""Heads pooled: weights from rows that trained no member, members by name, one alone as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.bags import Bagged, MILBoost
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead, Head
from ldl.heads import AAKNN, MaxEnt, MeanPredictor, Pool, Softmax, StructRF, Trained
from ldl.labels import LabelSpace
from ldl.methods.opinion_pool import pool_weights
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl
from ldl.protocols import kfold
from ldl.spec import differences, from_spec, to_spec
from ldl.testing import check_head

LABELS = LabelSpace.nominal(list("abc"))
GROUPS = torch.arange(120) // 6


def forest(**options: Any) -> StructRF:
    return StructRF(**{"trees": 5, "depth": 4, "seed": 1, "out_of_bag": False, **options})


def problem(noise: float = 1.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(120, 4, generator=generator)
    scores = features[:, :3] + features[:, 1:] ** 2 + noise * torch.randn(120, 3, generator=generator)
    return features, scores.softmax(-1)


def fitted(*members: Head, group: Tensor | None = None, **options: Any) -> Pool:
    head = Pool(list(members), **{"folds": 3, "seed": 2, **options})
    head.build(4, LABELS)
    head.fit(Rows(*problem(), group=group), Collective())
    return head.eval()


def test_contract() -> None:
    check_head(lambda: Pool([AAKNN(5), MaxEnt(l2=0.1, iterations=10), Trained(epochs=2)], folds=2))


def test_half_precision_keeps_the_weights() -> None:
    head = fitted(forest(), MaxEnt(l2=0.1), AAKNN(5), shrinkage=0.0)
    rounded = problem()[0].bfloat16()
    expected = head(rounded.float())
    found = head.bfloat16()(rounded)
    assert found.dtype == torch.float32 and torch.equal(found, expected)


@pytest.mark.parametrize(
    ("mean", "group", "shrinkage"),
    [("multiplicative", GROUPS, 3.0), ("geometric", None, 0.0), ("arithmetic", GROUPS, 0.0)],
    ids=["multiplicative", "geometric", "arithmetic"],
)
def test_it_is_the_pool_of_members_that_saw_other_rows(mean: Any, group: Tensor | None, shrinkage: float) -> None:
    features, target = problem()
    makers = (forest, lambda: MaxEnt(l2=0.1), lambda: AAKNN(5))
    outside = torch.zeros(3, 120, 3, dtype=torch.float64)
    for number, make in enumerate(makers):
        for fold in range(3):
            cut = kfold(120, 3, fold, 2, groups=None if group is None else group.numpy())
            if group is not None:
                assert not np.isin(group[cut.test], group[cut.train]).any()
            outside[number, cut.test] = _alone(make(), features[cut.train], target[cut.train])(
                features[cut.test]
            ).double()
    base = target.double().mean(0)
    units = 120 if group is None else 20
    weights = pool_weights(outside.numpy(), target.double().numpy(), mean, base.numpy(), shrinkage / units)
    head = fitted(*(make() for make in makers), mean=mean, group=group, shrinkage=shrinkage)
    np.testing.assert_allclose(head.weights, weights, atol=1e-6)
    torch.testing.assert_close(head.member_kl.double(), kl(outside, target.double()).mean(1))
    assert shrinkage or head.pool_kl <= head.member_kl.min() + 1e-6
    whole = torch.stack([_alone(make(), features, target)(features).double() for make in makers])
    factors = torch.from_numpy(weights)[:, None, None]
    logs = (whole.log() * factors).sum(0) + (1 - factors.sum()) * base.log()
    mixed = (whole * factors).sum(0) if mean == "arithmetic" else logs.softmax(-1)
    torch.testing.assert_close(head(features).double(), mixed, atol=1e-5, rtol=0)


def test_a_member_that_learns_its_rows_by_heart_gets_no_weight() -> None:
    features, target = problem()
    generator = torch.Generator().manual_seed(5)
    shuffled = target[torch.randperm(120, generator=generator)]
    assert kl(_alone(AAKNN(1), features, shuffled)(features), shuffled).max() < 1e-6
    head = Pool([AAKNN(1), MeanPredictor()], folds=4, seed=0)
    head.build(4, LABELS)
    head.fit(Rows(features, shuffled), Collective())
    assert head.weights[0] < 0.15


def test_where_no_member_helps_the_mean_distribution_is_left() -> None:
    features, target = problem()
    head = Pool([AAKNN(1), MaxEnt(l2=1e-6)], folds=4, seed=0)
    head.build(4, LABELS)
    wrong = target[torch.randperm(120, generator=torch.Generator().manual_seed(6))]
    head.fit(Rows(features, wrong), Collective())
    assert head.weights.sum() < 0.1
    head.weights = torch.zeros(2)
    torch.testing.assert_close(head(features), wrong.mean(0).expand(120, -1))


def test_one_member_alone_is_that_member() -> None:
    features, target = problem()
    head = fitted(forest())
    assert torch.equal(head(features), _alone(forest(), features, target)(features))
    assert head.summary() == {} and head.weights.tolist() == [1.0]


def test_members_without_weight_stay_as_they_were_built() -> None:
    features, _ = problem()
    target = features[:, :3].softmax(-1)
    head = Pool([MaxEnt(l2=0.0), MeanPredictor(), forest(depth=1)], "geometric", folds=3, shrinkage=0.0, seed=0)
    head.build(4, LABELS)
    built = [{name: tensor.clone() for name, tensor in member.state_dict().items()} for member in head.members]
    head.fit(Rows(features, target), Collective())
    assert head.weights.tolist() == [1.0, 0.0, 0.0] and head.used == [0]
    assert torch.equal(head(features), head.members[0](features))
    for member, before in zip(head.members[1:], built[1:]):
        assert all(
            torch.equal(tensor, before[name])
            for name, tensor in member.state_dict().items()
            if name in before and not tensor.isnan().any()
        )


def test_the_summary_names_members() -> None:
    head = fitted(forest(), Trained(Softmax(), epochs=5, scaling="standard"), Trained(Softmax(hidden=[4]), epochs=5))
    found = head.summary()
    names = ["StructRF", "Softmax_1", "Softmax_2"]
    assert list(found) == [*(f"weight_{n}" for n in names), *(f"inner_kl_{n}" for n in names), "inner_kl_pool"]
    assert [found[f"weight_{name}"] for name in names] == pytest.approx(head.weights.tolist())


def test_a_pool_in_a_pool_and_plain_data() -> None:
    head = Pool(
        [Pool([forest(), MaxEnt(l2=0.1)], "arithmetic", folds=2), Trained(Softmax(hidden=[3]), epochs=2)], folds=2
    )
    spec = to_spec(head)
    rebuilt: Any = from_spec(spec, Head)  # type: ignore[type-abstract]
    assert to_spec(rebuilt) == spec and rebuilt.members[1].head.hidden == [3]
    assert differences(spec, rebuilt) == []
    inner = Pool([forest(trees=6), MaxEnt(l2=0.1)], "arithmetic", folds=2)
    other = Pool([inner, Trained(Softmax(hidden=[4]), epochs=2)], folds=5)
    assert differences(spec, other) == [
        "members[0].members[0].trees 5 instead of 6",
        "members[1].head.hidden [3] instead of [4]",
        "folds 2 instead of 5",
    ]
    assert "members" in differences(to_spec(Pool([MaxEnt()])), Pool([MaxEnt(), forest()]))[0]
    assert differences(to_spec(Pool([MaxEnt()])), Pool([forest()])) == ["members[0] MaxEnt instead of StructRF"]
    head.build(4, LABELS)
    head.fit(Rows(*problem(), group=GROUPS), Collective())
    rebuilt.build(4, LABELS)
    rebuilt.load_state_dict(head.state_dict())
    assert torch.equal(head.eval()(problem()[0]), rebuilt.eval()(problem()[0]))


class Broken(FittedHead):
    """Cannot be fitted."""

    def __init__(self, error: str = "its own") -> None:
        super().__init__()
        self.error = error

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)

    def fit(self, rows: Rows, collective: Collective) -> None:
        raise LDLError("no luck today") if self.error == "its own" else ZeroDivisionError("oh")

    def forward(self, features: Tensor) -> Tensor:
        return features.softmax(-1)


def test_a_member_that_fails_names_itself() -> None:
    with pytest.raises(LDLError, match=r"^Pool.members\[1\] Broken: no luck today$"):
        fitted(MeanPredictor(), Broken())
    with pytest.raises(ZeroDivisionError) as told:
        fitted(MeanPredictor(), Broken("python's"))
    assert told.value.__notes__ == ["in Pool.members[1] Broken"]
    with pytest.raises(LDLError, match=r"^Pool.members\[0\] StructRF: StructRF.trees 0 must be in 1..10000"):
        fitted(forest(trees=0))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([], "Pool.members is empty; name one head or more"),
        (
            [forest(), Softmax()],
            r"members\[1\] Softmax learns by gradient; put it into Trained: {class_path: Trained, i",
        ),
        ([MILBoost()], r"members\[0\] MILBoost takes images or bags"),
        ([Bagged()], r"members\[0\] Bagged learns by gradient|takes images or bags"),
    ],
)
def test_wrong_members_are_refused(members: list[Head], words: str) -> None:
    with pytest.raises(LDLError, match=words):
        fitted(*members)


def test_too_few_groups_for_the_folds() -> None:
    with pytest.raises(LDLError, match=r"^Pool.folds 3 must be in 2..2, the number of groups"):
        fitted(forest(), MaxEnt(), group=torch.arange(120) % 2)


@pytest.mark.parametrize(
    ("mean", "buffer", "value", "words"),
    [
        ("geometric", "weights", torch.tensor([0.7, 0.7]), "weights row 0 is no distribution"),
        ("multiplicative", "weights", torch.tensor([1.2, -0.1]), "weights holds -0.1, not a number of at least 0"),
        ("multiplicative", "base", torch.tensor([0.5, 0.5, 0.5]), "base row 0 is no distribution"),
        ("multiplicative", "members.0.threshold", torch.tensor([torch.nan]), "threshold"),
    ],
)
def test_a_changed_state_is_refused(mean: str, buffer: str, value: Tensor, words: str) -> None:
    head = fitted(forest(), MaxEnt(l2=0.1), mean=mean)
    with pytest.raises(LDLError, match=words):
        head.load_state_dict(head.state_dict() | {buffer: value})


def _alone(head: FittedHead, features: Tensor, target: Tensor) -> FittedHead:
    head.build(4, LABELS)
    head.fit(Rows(features, target), Collective())
    return head.eval()
