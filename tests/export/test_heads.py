"""Every head exports, and says the same as before, or says why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_tasks import AGES, EMOTIONS, NO_YES, POSES, WIDTH, small_task

from ldl import heads
from ldl.data.tables.scaling import Scaling
from ldl.errors import LDLError
from ldl.export import export
from ldl.export.formats import quietly
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
    MPLBoost,
    Pool,
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
    "pool": (lambda: Pool(members=[MaxEnt(), StructRF(trees=3, depth=2)], folds=2), EMOTIONS, "standard"),
    "milboost": (lambda: MILBoost(rounds=4), NO_YES, "standard"),
    "mplboost": (lambda: MPLBoost(rounds=2, groups=2, pooling="nor", clustered=0), NO_YES, "standard"),
    "bagged": (lambda: Bagged(pooling="isr"), NO_YES, "standard"),
}


@pytest.fixture(scope="module", params=MADE)
def task(request: pytest.FixtureRequest) -> Task:
    make, labels, scaling = MADE[request.param]
    return small_task(make(), labels, scaling)


def test_onnx_says_what_torch_says(task: Task, tmp_path: Path) -> None:
    done = export(task, tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.rows == 72
    assert done.parity.largest <= 1e-5 and done.parity.apart == 0
    assert done.size == done.file.stat().st_size


def test_a_task_can_be_traced_and_exported_by_torch(task: Task) -> None:
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
