"""Rows take as many steps as the trees have, not as many as the options allow."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
import torch
from fakes.trees import problem
from torch import Tensor

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.heads import BoostedTrees, CostSensitiveForest, StructRF
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.validation.tensors import longest_path

MADE: dict[str, Callable[[], FittedHead]] = {
    "structrf": lambda: StructRF(trees=3, depth=60, min_leaf=20, out_of_bag=False),
    "boostedtrees": lambda: BoostedTrees(rounds=3, depth=60, min_leaf=20, patience=None),
    "the best depth": lambda: BoostedTrees(rounds=3, min_leaf=20),
    "costsensitiveforest": lambda: CostSensitiveForest(trees=3, depth=60, min_samples=60),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:FutureWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("name", MADE)
def test_a_graph_has_as_many_steps_as_the_trees(name: str) -> None:
    features, target = problem()
    fitted, loaded = MADE[name](), MADE[name]()
    for head in (fitted, loaded):
        head.build(features.shape[1], LabelSpace.nominal("abcd"))
    none = steps(fitted, features)
    fitted.fit(Rows(features, target), Collective())
    file = io.BytesIO()
    torch.save(fitted.state_dict(), file)
    file.seek(0)
    loaded.load_state_dict(torch.load(file, weights_only=True))
    deepest = max(depth(fitted, int(root)) for root in fitted.get_buffer("roots"))
    assert 1 < deepest < 12 and none == 0
    assert steps(fitted, features) == steps(loaded, features) == deepest


def steps(head: FittedHead, features: Tensor) -> int:
    """How often all rows are sent left or right in a recorded graph, of which the outputs are those of the head."""
    graph = torch.jit.trace(head.eval(), features, check_trace=False)
    assert torch.allclose(graph(features), head(features), atol=1e-6)
    sends = "aten::ge" if isinstance(head, CostSensitiveForest) else "aten::gt"
    recorded = graph.inlined_graph
    return sum(node.inputsAt(1).type().kind() == "TensorType" for node in recorded.findAllNodes(sends))


def depth(head: FittedHead, node: int) -> int:
    """Splits on the longest path below a node."""
    inner = head.get_buffer("split" if isinstance(head, CostSensitiveForest) else "feature") >= 0
    child = head.get_buffer("child")

    def below(node: int) -> int:
        return 1 + max(below(int(child[node])), below(int(child[node]) + 1)) if bool(inner[node]) else 0

    return below(node)


def test_of_no_tree_and_of_single_leaves() -> None:
    none = torch.empty(0, dtype=torch.int32)
    assert longest_path(none, none.bool(), none) == 0
    assert longest_path(torch.tensor([0, 1]), torch.tensor([False, False]), torch.tensor([0, 1])) == 0


def test_of_two_trees_the_deeper_one_counts() -> None:
    inner = torch.tensor([True, False, False, True, False, True, False, False])
    child = torch.tensor([1, 0, 1, 4, 2, 6, 3, 4])
    assert longest_path(torch.tensor([0, 3]), inner, child) == longest_path(torch.tensor([3, 0]), inner, child) == 2
