"""MPLBoost: the groups that it finds, and where they start."""

from __future__ import annotations

import pytest
import torch
from fakes.bags import fitted, some_bags

from ldl.bags import MPLBoost
from ldl.bags.pooling import lse
from ldl.testing import check_head


def test_contract_with_groups() -> None:
    check_head(lambda: MPLBoost(seed=0, rounds=20, whitened=0.9, features=0.5, validation=0.2))


def test_groups_are_found_without_labels() -> None:
    """Positives are one of two kinds that no sum of stumps covers at once."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(600, 1, 4, generator=generator)
    kind = torch.randint(3, (600,), generator=generator)
    rows[kind == 1, 0, :2] += torch.tensor([4.0, -4.0])
    rows[kind == 2, 0, :2] += torch.tensor([-4.0, 4.0])
    head = fitted(MPLBoost(groups=2, pooling="nor", rounds=20, seed=0), rows, torch.eye(2)[(kind > 0).long()])
    members = head.memberships(rows)
    torch.testing.assert_close(members.sum(-1), torch.ones(600))
    group = members[kind > 0].argmax(1)
    agree = (group == kind[kind > 0] - 1).float().mean()
    assert max(agree, 1 - agree) > 0.95


def test_clusters_start_the_groups() -> None:
    """Groups that start alike part late, and then elsewhere."""
    generator = torch.Generator().manual_seed(0)
    kind = torch.randint(3, (600,), generator=generator)
    rows = torch.randn(600, 2, 5, generator=generator)
    rows[kind > 0, 0, :2] += 2
    rows[kind == 2, 0, 2:] -= 4
    target = torch.eye(2)[(kind > 0).long()]
    agree = {}
    for clustered in (0, 5):
        head = fitted(
            MPLBoost(groups=2, pooling="isr", rounds=20, shrinkage=0.1, clustered=clustered, seed=0), rows, target
        )
        group = head.scores(rows)[kind > 0, 0].argmax(-1)
        same = float((group == kind[kind > 0] - 1).float().mean())
        agree[clustered] = max(same, 1 - same)
    assert agree[5] > 0.95 and agree[0] < 0.9


@pytest.mark.parametrize("whitened", [0.0, 0.9])
def test_positives_that_do_not_differ_make_one_cluster(whitened: float) -> None:
    rows = torch.cat([torch.zeros(6, 1, 2), torch.ones(4, 1, 2)])
    head = fitted(MPLBoost(groups=3, rounds=8, whitened=whitened), rows, torch.eye(2)[torch.tensor([0] * 6 + [1] * 4)])
    assert head(rows).argmax(1).tolist() == [0] * 6 + [1] * 4


@pytest.mark.filterwarnings("error")
def test_whitened_features_that_do_not_vary_leave_no_stump() -> None:
    head = fitted(MPLBoost(groups=2, rounds=8, whitened=0.9), torch.ones(6, 1, 2), torch.eye(2)[torch.arange(6) % 2])
    assert not len(head.feature)


def test_clusters_of_no_use_do_not_end_boosting() -> None:
    """The cluster is all that the first stumps see; negatives lie in both, so that these stumps help nobody."""
    count = torch.arange(200)
    label, side = count % 2, count // 2 % 2
    informative = label + torch.randn(200, generator=torch.Generator().manual_seed(0))
    rows = torch.stack([20.0 * side - 10, informative], 1)[:, None]
    head = fitted(MPLBoost(groups=2, pooling="isr", rounds=20, shrinkage=0.1), rows, torch.eye(2)[label])
    assert len(head.curve) > 6 and head.curve[-1, 0] < head.curve[0, 0] - 0.05


def test_memberships_are_shares_of_the_groups_probabilities() -> None:
    features, target = some_bags(1)
    head = fitted(MPLBoost(groups=3, pooling="lse", r=4.0, rounds=10, seed=0), features, target)
    p = torch.sigmoid(2 * head.scores(features).double())
    pooled = lse(p, 4.0, ~p.isnan(), 1)
    torch.testing.assert_close(head.memberships(features), (pooled / pooled.sum(1, keepdim=True)).float())
