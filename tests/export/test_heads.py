"""Every head exports, and says the same as before, or says why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession
from small_tasks import AGES, EMOTIONS, NO_YES, POSES, WIDTH, small_task
from torch import Tensor, nn

from ldl import heads
from ldl.data.tables.scaling import Scaling
from ldl.errors import LDLError
from ldl.export import Deployed, export
from ldl.export.formats import quietly, write_onnx
from ldl.export.parity import draw, measure
from ldl.head import FittedHead, Head
from ldl.heads import (
    AAKNN,
    DSNA,
    LDLF,
    MSLP,
    Bagged,
    BoostedTrees,
    CostSensitiveForest,
    MaxEnt,
    MeanPredictor,
    MILBoost,
    Mirrored,
    MPLBoost,
    Pool,
    Scaled,
    Softmax,
    StructRF,
    Trained,
)
from ldl.labels import LabelSpace
from ldl.task import Task

Made = tuple[Callable[[], Head], LabelSpace, Scaling]

MADE: dict[str, Made] = {
    "softmax": (lambda: Softmax(hidden=[4]), AGES, "standard"),
    "ldlf": (lambda: LDLF(trees=4, depth=3, hidden=[4], members=2, anneal=2.0), EMOTIONS, "hellinger"),
    "structrf": (lambda: StructRF(trees=5, depth=4, out_of_bag=False), EMOTIONS, "none"),
    "boostedtrees": (lambda: BoostedTrees(rounds=8, depth=3, patience=None, min_leaf=3), EMOTIONS, "standard"),
    "a_tree_a_label": (lambda: BoostedTrees(rounds=3, patience=None, min_leaf=3, trees="label"), NO_YES, "standard"),
    "costsensitiveforest": (lambda: CostSensitiveForest(trees=3, depth=2, kernel="sum"), POSES, "standard"),
    "mslp": (lambda: MSLP(kernel="rbf"), EMOTIONS, "standard"),
    "aaknn": (lambda: AAKNN(), EMOTIONS, "standard"),
    "maxent": (lambda: MaxEnt(), EMOTIONS, "quantile_normal"),
    "meanpredictor": (lambda: MeanPredictor(), EMOTIONS, "standard"),
    "trained": (lambda: Trained(epochs=1, repeats=2, scaling="quantile_uniform"), EMOTIONS, "none"),
    "scaled": (lambda: Scaled(AAKNN(), clip=2.0), EMOTIONS, "none"),
    "mirrored": (lambda: Mirrored(MaxEnt(), [1, 0, 2, 3, 5, 4]), EMOTIONS, "standard"),
    "pool": (lambda: Pool(members=[MaxEnt(), StructRF(trees=3, depth=2)], folds=2), EMOTIONS, "standard"),
    "milboost": (lambda: MILBoost(rounds=4), NO_YES, "standard"),
    "mplboost": (lambda: MPLBoost(rounds=2, groups=2, pooling="nor", clustered=0), NO_YES, "standard"),
    "bagged": (lambda: Bagged(pooling="isr"), NO_YES, "standard"),
}


class Together(nn.Module):
    """Several models of one input as one, because the first node of a graph takes longer than the next hundred."""

    def __init__(self, models: dict[str, Deployed]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models.values())
        first = next(iter(models.values()))
        self.input_shape, self.takes_pictures = first.input_shape, first.takes_pictures
        self.outputs = [f"{name}/{output}" for name, model in models.items() for output in model.outputs]

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(output for model in self.models for output in model(inputs))


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return {name: small_task(make(), labels, scaling) for name, (make, labels, scaling) in MADE.items()}


@pytest.fixture(scope="module", params=[False, True], ids=["rows", "bags"])
def graph(request: pytest.FixtureRequest, tasks: dict[str, Task]) -> tuple[dict[str, Task], InferenceSession]:
    """All tasks of rows, or of bags, and a graph of them."""
    chosen = {name: task for name, task in tasks.items() if task.head.takes_bags == request.param}
    together: Any = Together({name: Deployed(task).eval() for name, task in chosen.items()})
    example = torch.from_numpy(draw(next(iter(chosen.values())), 7, np.random.default_rng(1)))
    with quietly():
        data = write_onnx(together, example, {"versions": '{"ldl": ""}'})
    return chosen, InferenceSession(data, providers=["CPUExecutionProvider"])


def test_onnx_says_what_torch_says(graph: tuple[dict[str, Task], InferenceSession]) -> None:
    tasks, session = graph
    for name, task in tasks.items():
        wanted = [output.name for output in session.get_outputs() if output.name.startswith(f"{name}/")]
        parity = measure(task, lambda inputs, wanted=wanted: session.run(wanted, {"input": inputs}))
        assert parity.rows == 72 and parity.apart == 0 and parity.largest <= 1e-5, (name, parity)


def test_what_predictor_refuses_is_nan(graph: tuple[dict[str, Task], InferenceSession]) -> None:
    tasks, session = graph
    for name, task in tasks.items():
        some = draw(task, 4, np.random.default_rng(0))
        some[1, ..., 0], some[2, ..., 0] = np.inf, np.nan
        (found,) = session.run([f"{name}/distribution"], {"input": some})
        assert np.isnan(found).any(1).tolist() == [False, True, not task.head.takes_missing, False], name


def test_what_has_no_root_is_not_taken_for_missing() -> None:
    task = small_task(BoostedTrees(rounds=3, patience=None, min_leaf=3), AGES, "hellinger")
    some = torch.tensor([[1.0] * WIDTH, [-1.0] * WIDTH, [torch.nan] * WIDTH], dtype=torch.float64)
    for output in Deployed(task)(some):
        assert output.isnan().reshape(3, -1).all(1).tolist() == [False, True, False]


@pytest.mark.parametrize("name", MADE)
def test_a_task_can_be_traced_and_exported_by_torch(name: str, tasks: dict[str, Task]) -> None:
    task = tasks[name]
    some = torch.randn(7, *([3] if task.head.takes_bags else []), WIDTH)
    others = torch.randn(9, *([2] if task.head.takes_bags else []), WIDTH)
    sizes = {axis: torch.export.Dim.DYNAMIC for axis in range(some.ndim - 1)}
    with quietly():
        traced = torch.jit.trace(task, some, check_trace=False)
        program = torch.export.export(task, (some,), dynamic_shapes=(sizes,))
        wanted = task(others)
        for found in (traced(others), program.module()(others)):
            torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_torchscript_with_values_and_missing_features(tmp_path: Path) -> None:
    task = small_task(BoostedTrees(rounds=5, depth=3, patience=None, min_leaf=3), AGES, "quantile_uniform")
    task.temperature = 1.3
    done = export(task, tmp_path / "model.pt", "torchscript")
    assert done.parity is not None and done.parity.largest <= 1e-5 and done.parity.apart == 0


def test_a_row_that_a_tree_refuses_is_nan() -> None:
    task = small_task(StructRF(trees=5, depth=4, out_of_bag=False))
    some = torch.randn(4, WIDTH)
    some[1] = torch.nan
    with quietly():
        traced = torch.jit.trace(task, some, check_trace=False)
    assert traced(some).isnan().any(1).tolist() == [False, True, False, False]


def test_every_head_exports_or_says_why_not() -> None:
    made = {type(make()) for make, _, _ in MADE.values()}
    for name in heads.__all__:
        head = getattr(heads, name)
        assert (head in made) != bool(head.no_graph), f"{name} is neither tested here nor says why it cannot export"


def test_a_head_without_a_graph_is_refused_wherever_it_is(tmp_path: Path) -> None:
    pool = Pool(members=[DSNA(trees=2, depth=2), MaxEnt()], folds=2)
    assert isinstance(pool, FittedHead)
    task = Task(pool)
    task.build(EMOTIONS, (WIDTH,))
    with pytest.raises(LDLError, match="^DSNA cannot be exported: .* ONNX has no operator"):
        export(task, tmp_path / "model.onnx")
