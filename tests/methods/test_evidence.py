"""Evidence: the order of the parts of a prediction."""

from __future__ import annotations

import torch

from ldl.methods.evidence import of_leaves, weigh

DISTRIBUTIONS = torch.eye(4)


def test_parts_stand_by_falling_absolute_weight_without_those_of_weight_0() -> None:
    evidence = weigh(list("abcd"), torch.tensor([0.25, 0.0, -0.5, 0.25]), DISTRIBUTIONS)
    assert evidence.names == ["c", "a", "d"] and evidence.weights.tolist() == [-0.5, 0.25, 0.25]
    assert torch.equal(evidence.distributions, DISTRIBUTIONS[[2, 0, 3]])
    assert evidence.first(2).names == ["c", "a"] and len(evidence.first(2).weights) == 2


def test_leaves_of_all_trees_weigh_the_same() -> None:
    evidence = of_leaves(torch.tensor([3, 0], dtype=torch.int32), DISTRIBUTIONS)
    assert evidence.names == ["tree 0, leaf 3", "tree 1, leaf 0"] and evidence.weights.tolist() == [0.5, 0.5]
    assert torch.equal(evidence.distributions, DISTRIBUTIONS[[3, 0]])
