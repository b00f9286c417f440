"""Every head exports and predicts as before, or names the reason why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from fakes.tasks import AGES, EMOTIONS, NO_YES, POSES, WIDTH, small_task
from onnxruntime import InferenceSession
from torch import Tensor, nn

from ldl import heads
from ldl.backbones import Tabular
from ldl.bags import Bagged, MILBoost, MPLBoost
from ldl.data.tables.scaling import Scaling
from ldl.deploy.export import Deployed, draw, export, measure
from ldl.deploy.export_onnx import quietly, write_onnx
from ldl.errors import LDLError
from ldl.head import FittedHead, Head
from ldl.heads import (
    AAKNN,
    DSNA,
    LDLF,
    MSLP,
    BoostedTrees,
    CostSensitiveForest,
    MaxEnt,
    MeanPredictor,
    Mirrored,
    Pool,
    Scaled,
    Softmax,
    StructRF,
    Trained,
)
from ldl.inference import Predictor
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
    "trained_network": (
        lambda: Trained(
            LDLF(trees=2, depth=3), Tabular(members=3, hidden=[8], embedding=4, bins=6), 1, scaling="ranks"
        ),
        EMOTIONS,
        "none",
    ),
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
        self.input_shape, self.takes_pictures, self.encoding = first.input_shape, first.takes_pictures, None
        self.outputs = [f"{name}/{output}" for name, model in models.items() for output in model.outputs]

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(output for model in self.models for output in model(inputs))


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return {name: small_task(make(), labels, scaling) for name, (make, labels, scaling) in MADE.items()}


def check(name: str, task: Task, run: Callable[[np.ndarray], list[np.ndarray]]) -> None:
    """The graph predicts what the task does, and NaN for what Predictor refuses."""
    parity = measure(task, run)
    assert parity.rows == 72 and parity.apart == 0 and parity.largest <= 1e-5, (name, parity)
    some = draw(task, 4, np.random.default_rng(0))
    some[1, ..., 0], some[2, ..., 0] = np.inf, np.nan
    some[3] = np.nan  # a bag without instances, or a row without features
    answers = run(some)
    refused = np.isnan(answers[0]).any(1).tolist()
    assert refused == [False, True, not task.head.takes_missing, not task.head.takes_missing], name
    assert all(np.isnan(answer[refused]).all() for answer in answers), name
    for number, row in enumerate(some):
        try:
            Predictor(task).predict(row[None])
        except LDLError:
            assert refused[number], name
        else:
            assert not refused[number], name


@pytest.mark.parametrize("name", MADE)
def test_a_deployed_task_predicts_as_before(name: str, tasks: dict[str, Task]) -> None:
    task = tasks[name]
    model = Deployed(task).eval()
    with torch.no_grad(), patch.object(torch.compiler, "is_exporting", lambda: True):
        check(name, task, lambda inputs: [output.numpy() for output in model(torch.from_numpy(inputs))])


@pytest.mark.slow
@pytest.mark.parametrize("bags", [False, True], ids=["rows", "bags"])
def test_onnx_predicts_what_torch_does(bags: bool, tasks: dict[str, Task]) -> None:
    chosen = {name: task for name, task in tasks.items() if task.head.takes_bags == bags}
    together: Any = Together({name: Deployed(task).eval() for name, task in chosen.items()})
    example = torch.from_numpy(draw(next(iter(chosen.values())), 7, np.random.default_rng(1)))
    with quietly():
        data = write_onnx(together, example, {"versions": '{"ldl": ""}'})
    session = InferenceSession(data, providers=["CPUExecutionProvider"])
    for name, task in chosen.items():
        wanted = [output.name for output in session.get_outputs() if output.name.startswith(f"{name}/")]
        check(name, task, lambda inputs, wanted=wanted: session.run(wanted, {"input": inputs}))


def test_what_has_no_root_is_not_taken_for_missing() -> None:
    task = small_task(BoostedTrees(rounds=3, patience=None, min_leaf=3), AGES, "hellinger")
    some = torch.tensor([[1.0] * WIDTH, [-1.0] * WIDTH, [torch.nan] * WIDTH], dtype=torch.float64)
    for output in Deployed(task)(some):
        assert output.isnan().reshape(3, -1).all(1).tolist() == [False, True, False]


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
