"""LDLF.objective: loss and leaf update of the forest as one mixture, against loops in float64."""

from __future__ import annotations

import pytest
import torch
from small_forests import batch, learn, made, tree_outputs
from torch import Tensor

from ldl.collective import Collective
from ldl.heads import LDLF
from ldl.metrics.functional import kl
from ldl.testing import check_head


def forest_loss(head: LDLF, features: Tensor, target: Tensor) -> Tensor:
    """KL divergence from the mean of the trees' outputs."""
    return kl(sum(tree_outputs(head, features)) / head.trees, target).mean()  # type: ignore[arg-type]


def test_the_loss_is_that_of_what_is_predicted() -> None:
    head = made(objective="forest")
    features, target = batch()
    loss = head.loss(features, target)["loss"]
    torch.testing.assert_close(loss, forest_loss(head, features, target))
    torch.testing.assert_close(loss, kl(head(features), target).mean())
    assert loss < made().loss(features, target)["loss"] - 1e-3


def test_a_leaf_update_is_that_of_one_mixture_of_all_leaves() -> None:
    """Eq. 12 with the leaves of all trees as those of one, each reached with the mean of the trees' shares."""
    head = made(objective="forest", iterations=3, batches=2, leaf_floor=0.0)
    parts = [batch(seed=seed) for seed in range(2)]
    leaves = head.leaves.double()
    for features, target in parts:
        learn(head, features, target)
    features, target = (torch.cat(part).double() for part in zip(*parts))
    reach = head.route(features.float()).double() / head.trees
    for _ in range(3):
        output = sum(reach[:, k, leaf, None] * leaves[k, leaf] for k in range(3) for leaf in range(4))
        grown = torch.zeros_like(leaves)
        for k in range(3):
            for leaf in range(4):
                grown[k, leaf] = (target / output * reach[:, k, leaf, None]).sum(0) * leaves[k, leaf]
        leaves = grown / grown.sum(-1, keepdim=True)
    head.update(Collective())
    torch.testing.assert_close(head.leaves.double(), leaves, atol=1e-6, rtol=1e-5)
    apart = made(iterations=3, batches=2, leaf_floor=0.0)
    for part in parts:
        learn(apart, *part)
    apart.update(Collective())
    assert not torch.allclose(apart.leaves, head.leaves, atol=1e-3)


@pytest.mark.parametrize("routing", ["step", "current"])
@pytest.mark.parametrize("seed", range(5))
def test_no_update_raises_the_loss(routing: str, seed: int) -> None:
    head = made(objective="forest", iterations=1, batches=1, routing=routing)
    features, target = batch(rows=30, seed=seed)
    before = forest_loss(head, features, target)
    for _ in range(10):
        learn(head, features, target)
        head.update(Collective())
        after = forest_loss(head, features, target)
        assert after <= before + 1e-6
        before = after
    torch.testing.assert_close(head.leaves.sum(-1), torch.ones(3, 4))


def test_it_is_a_head() -> None:
    check_head(lambda: LDLF(trees=2, depth=3, outputs=None, hidden=[8], batches=2, objective="forest"))


def test_one_tree_has_one_objective() -> None:
    heads = [made(trees=1, objective=objective) for objective in ("trees", "forest")]
    parts = batch()
    for head in heads:
        learn(head, *parts)
        head.update(Collective())
    torch.testing.assert_close(heads[0].leaves, heads[1].leaves)
    torch.testing.assert_close(heads[0].loss(*parts)["loss"], heads[1].loss(*parts)["loss"])
