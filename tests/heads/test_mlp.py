"""Ensembles inside the network: members that share hidden layers, against loops over them in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF
from ldl.heads.mlp import Adapter, mlp
from ldl.labels import LabelSpace
from ldl.methods.forest.soft import route, update_leaves
from ldl.metrics.functional import kl

AGES = LabelSpace.ordinal([0, 1, 3, 7, 8])
FOREST = {"trees": 6, "depth": 3, "outputs": None, "hidden": [7, 6], "batches": 2, "members": 3}


def made(head: Head) -> Any:
    torch.manual_seed(0)
    head.build(4, AGES)
    return head.double()


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    scores = torch.randn(9, len(AGES), generator=generator, dtype=torch.float64)
    return features, (2 * scores).softmax(-1)


def alone(network: nn.Sequential, member: int, features: Tensor) -> Tensor:
    """The output of one member, by its own plain layers, in float64."""
    adapter, *shared, last = network
    hidden = features * adapter.weight[member]
    for layer in shared:
        hidden = hidden @ layer.weight.T + layer.bias if isinstance(layer, nn.Linear) else layer(hidden)
    return hidden @ last.weight[member] + last.bias[member]


def test_members_are_plain_networks_that_share_layers() -> None:
    torch.manual_seed(0)
    network = mlp(4, [7, 6], 5, 0.0, 0.0, members=3).double()
    assert sorted(network[0].weight.flatten().unique().tolist()) == [-1, 1]
    with torch.no_grad():
        network[0].weight.add_(torch.randn_like(network[0].weight))
    for shape in ((9,), (), (0,), (2, 3)):
        features = torch.randn(*shape, 4, dtype=torch.float64)
        expected = torch.stack([alone(network, member, features) for member in range(3)], -2)
        torch.testing.assert_close(network(features), expected, rtol=1e-12, atol=1e-12)
    bounds = [last.abs().max().item() for last in (network[-1].weight, network[-1].bias)]
    assert all(0.25 < bound <= 6**-0.5 for bound in bounds)  # as nn.Linear starts


def test_one_member_is_the_network_without_ensemble() -> None:
    torch.manual_seed(0)
    one = mlp(4, [7], 5, 0.2, 0.1, members=1)
    assert [type(layer) for layer in one] == [nn.Dropout, nn.Linear, nn.ReLU, nn.Dropout, nn.Linear]
    torch.manual_seed(0)
    first, last = nn.Linear(4, 7), nn.Linear(7, 5)
    assert torch.equal(one[1].weight, first.weight) and torch.equal(one[-1].weight, last.weight)


def test_every_member_loses_features_of_its_own() -> None:
    network = mlp(50, [8], 5, 0.0, 0.5, members=3)
    assert isinstance(network[0], Adapter) and isinstance(network[1], nn.Dropout)
    lost = network[1](network[0](torch.ones(50))) == 0
    assert not torch.equal(lost[0], lost[1]) and not torch.equal(lost[1], lost[2])


@pytest.mark.parametrize("outputs", [None, 5])
def test_ldlf_deals_its_trees_to_the_members(outputs: int | None) -> None:
    head = made(LDLF(**{**FOREST, "outputs": outputs}))
    head.leaves.copy_(torch.rand_like(head.leaves).softmax(-1))
    features, target = batch()
    routings = []
    for tree in range(6):
        scores, units = alone(head.split, tree // 2, features), head.units[tree]
        mine = units - (tree // 2) * (outputs or 6)
        assert bool((mine >= 0).all()) and int(mine.max()) < (outputs or 6) and len(set(mine.tolist())) == 3
        routings.append(route(torch.sigmoid(scores[:, mine])))
    mixed = [routing @ leaves for routing, leaves in zip(routings, head.leaves)]
    torch.testing.assert_close(head(features), sum(mixed) / 6)
    loss = head.loss(features, target)
    torch.testing.assert_close(loss["loss"], sum(kl(each, target).mean() for each in mixed) / 6)
    for _ in range(2):
        head.observe(head.loss(features, target)["memory"], target)
    assert head.update_due
    twice = torch.stack(routings, 1).repeat(2, 1, 1).detach()
    expected = update_leaves(twice, target.repeat(2, 1), head.leaves, 20, floor=1e-8)
    head.update(Collective())
    torch.testing.assert_close(head.leaves, expected)


def test_gradients_reach_every_adapter() -> None:
    head = made(LDLF(**FOREST))
    head.leaves.copy_(torch.rand_like(head.leaves).softmax(-1))
    head.loss(*batch())["loss"].backward()
    for parameter in head.parameters():
        assert bool((parameter.grad != 0).flatten(1).any(1).all() if parameter.ndim > 1 else parameter.grad.any())


@pytest.mark.parametrize("shared", [None, 5])
def test_units_of_another_member_are_refused_when_loaded(shared: int | None) -> None:
    head = made(LDLF(**{**FOREST, "outputs": shared}))
    head.check_state()
    head.units[0, 0] = 3 * shared if shared else 18
    with pytest.raises(LDLError, match="units"):
        head.check_state()


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            LDLF(trees=6, members=3),
            "LDLF.members 3 share the hidden layers, and there are none; give hidden, or members: 1",
        ),
        (LDLF(trees=5, hidden=[8], members=3), "LDLF.members 3 must divide trees, 5"),
    ],
)
def test_what_cannot_be_is_refused(head: Head, message: str) -> None:
    with pytest.raises(LDLError, match=message):
        head.build(4, AGES)
