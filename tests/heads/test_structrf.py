"""StructRF as a head: the contract, equal forests whatever grows them, equal leaves whatever reads them, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes.paths import ROOT
from fakes.trees import check_comes_back, check_importances, problem
from torch import Tensor

from ldl.collective import Collective
from ldl.command import main
from ldl.errors import LDLError
from ldl.heads import StructRF
from ldl.labels import LabelSpace
from ldl.methods.forest.predict import average, average_by_gathers, reach
from ldl.methods.forest.sampling import bootstrap
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl
from ldl.task import Task
from ldl.testing import check_head

pytestmark = pytest.mark.usefixtures("blank_charts")

LABELS = LabelSpace.nominal(["a", "b", "c", "d"])


def fitted(features: Tensor, target: Tensor, group: Tensor | None = None, **arguments: object) -> StructRF:
    head = StructRF(**{"trees": 9, "seed": 3, **arguments})  # type: ignore[arg-type]
    head.build(features.shape[1], LABELS)
    head.fit(Rows(features, target, group=group), Collective())
    return head.eval()


@pytest.mark.parametrize("arguments", [{}, {"criterion": "log_loss", "search": "histogram"}], ids=["paper", "log_loss"])
def test_contract(arguments: dict[str, object]) -> None:
    check_head(lambda: StructRF(**{"trees": 10, **arguments}))  # type: ignore[arg-type]


def test_prediction_is_the_mean_of_the_leaves_means() -> None:
    features, target = problem()
    head = fitted(features, target, trees=3, min_leaf=10, replace=False, sampling=0.5)
    new = problem()[0] + 0.1
    leaves = reach(new, head.forest, head.depth)
    expected = torch.zeros(len(new), 4, dtype=torch.float64)
    for tree in range(3):
        drawn = torch.from_numpy(bootstrap(len(features), 0.5, False, 3, tree)[0]).long()
        of_drawn = reach(features[drawn], head.forest, head.depth)[:, tree]
        for leaf in leaves[:, tree].unique():
            mean = target[drawn][of_drawn == leaf].double().mean(0)
            expected[leaves[:, tree] == leaf] += mean / 3
    torch.testing.assert_close(head(new).double(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("depth", [0, 20])
def test_gathers_reach_the_leaves_that_numba_reaches(depth: int) -> None:
    features, target = problem()
    features[:, 2] = features[:, 2].round()
    head = fitted(features, target, depth=depth)
    # Rows on the thresholds themselves, and infinite ones.
    cuts = head.threshold[head.feature >= 0][:40]
    edges = cuts[:, None].expand(-1, features.shape[1]) if len(cuts) else features[:0]
    rows = torch.cat([features, edges, torch.full((1, 7), torch.inf), torch.full((1, 7), -torch.inf)])
    leaves = reach(rows, head.forest, depth)
    assert torch.equal(average(rows, head.forest, depth), average_by_gathers(rows, head.forest, depth))
    assert leaves.unique().numel() > 9 or depth == 0


@pytest.mark.parametrize("criterion", ["clusters", "log_loss"])
def test_threads_change_nothing(criterion: str) -> None:
    features, target = problem()
    one, two = (fitted(features, target, threads=threads, trees=12, criterion=criterion) for threads in (1, 3))
    assert all(torch.equal(tensor, two.state_dict()[name]) for name, tensor in one.state_dict().items())
    many = features.repeat(20, 1)
    assert torch.equal(average(many, one.forest, 20, threads=3), average(many, one.forest, 20))


def test_seeds_change_the_forest(monkeypatch: pytest.MonkeyPatch) -> None:
    features, target = problem()
    assert not torch.equal(fitted(features, target, seed=4)(features), fitted(features, target)(features))
    monkeypatch.setenv("PL_GLOBAL_SEED", "3")
    assert torch.equal(fitted(features, target, seed=None)(features), fitted(features, target)(features))


def test_half_precision_keeps_the_leaves() -> None:
    features, target = problem()
    head = fitted(features, target)
    before = reach(features, head.forest, head.depth)
    rounded = features.bfloat16()
    distributions = head(rounded.float())
    head.bfloat16()
    # The sum of many trees has no room in 16 bits.
    assert head.values.dtype == head.threshold.dtype == torch.float32
    assert torch.equal(reach(features, head.forest, head.depth), before)
    assert head(rounded).dtype == torch.float32
    assert torch.equal(head(rounded), distributions)


def test_saved_and_loaded_predicts_equal() -> None:
    features, target = problem()
    head = fitted(features, target)
    check_comes_back(head, StructRF(trees=9), features)


def test_importances_name_the_features_that_matter() -> None:
    features, target = problem()
    check_importances(fitted(features, target, min_leaf=10))


@pytest.mark.parametrize("size", [1, 2])
def test_out_of_bag_estimate_is_that_of_trees_that_saw_no_row_of_the_group(size: int) -> None:
    features, target = problem()
    group = torch.arange(len(features)) % (len(features) // size)
    head = fitted(features, target, None if size == 1 else group)
    leaves = reach(features, head.forest, head.depth)
    divergences = []
    for row in range(len(features)):
        drawn = [group[bootstrap(len(features), 0.8, True, 3, tree)[0]] for tree in range(9)]
        blind = [tree for tree in range(9) if group[row] not in drawn[tree]]
        if blind:
            prediction = head.values[leaves[row, blind].long()].mean(0)
            divergences.append(float(kl(prediction, target[row])))
    assert 200 < len(divergences) <= 300
    assert float(head.out_of_bag_kl) == pytest.approx(np.mean(divergences), rel=1e-5)
    new = torch.randn(2000, 7, generator=torch.Generator().manual_seed(1))
    true = kl(head(new), torch.softmax(2 * new[:, :4], -1)).mean()
    assert head.out_of_bag_kl > true > 2 * kl(head(features), target).mean()


def test_out_of_bag_is_absent_where_groups_are_seen_by_nearly_all_trees() -> None:
    features, target = problem()
    rows = torch.arange(len(target))
    assert fitted(features, target, group=rows // 2, trees=50).summary()
    assert fitted(features, target, group=rows // 8, trees=50).summary() == {}


def test_out_of_bag_is_absent_where_every_tree_sees_every_row() -> None:
    assert fitted(*problem(), replace=False, sampling=1.0).summary() == {}
    assert fitted(*problem(), out_of_bag=False).summary() == {}


def test_one_row_equal_labels_or_constant_features_give_one_leaf() -> None:
    features, target = problem()
    head = fitted(features[:1], target[:1])
    assert len(head.feature) == 9 and torch.allclose(head(features), target[:1].expand(300, -1))
    head = fitted(features, target[:1].expand(300, -1))
    assert len(head.feature) == 9 and torch.allclose(head(features), target[:1].expand(300, -1))
    assert float(head.importances.abs().sum()) == 0
    head = fitted(torch.ones_like(features), target)
    assert len(head.feature) == 9 and len(head.values) == 9


def test_training_on_a_feature_that_is_no_number_is_refused() -> None:
    features, target = problem()
    features[255, 2] = float("nan")
    with pytest.raises(LDLError, match="cannot take nan: training row 255, feature 2"):
        fitted(features, target)


def test_adaptive_steps_are_refused_for_log_loss() -> None:
    with pytest.raises(LDLError, match="StructRF.search 'adaptive' .* use exact, histogram or random"):
        StructRF(criterion="log_loss", search="adaptive").build(3, LABELS)


def test_nan_is_refused_where_a_split_asks_for_it() -> None:
    features, target = problem()
    features[:, 6] = 0
    head = fitted(features, target)
    new = features.clone()
    new[:, 6] = float("nan")
    assert torch.equal(head(new), head(features))
    new[17, 0] = float("nan")
    with pytest.raises(LDLError, match="row 17"):
        head(new)
    with pytest.raises(LDLError, match="row 17"):
        reach(new, head.forest, head.depth)


CONSTANT = float(kl(problem()[1].mean(0), problem()[1]).mean())


def run(*options: str, data: Path, folder: Path) -> None:
    main(
        ["-c", str(ROOT / "configs/runs/tabular_structrf_paper.yaml"), f"--data.path={data}", "--run_dir", str(folder)]
        + ["--model.head.trees=5", "--wandb.mode=disabled", *options]
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    features, target = problem(rows=201)
    np.savez(tmp_path / "table.npz", features=features.numpy(), labels=target.double().numpy())
    return tmp_path / "table.npz"


def test_command_line(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--trainer.enable_progress_bar=true", data=table, folder=tmp_path / "run")
    assert "growing trees" in capsys.readouterr().out
    results = json.loads((tmp_path / "run/results.json").read_text())
    assert results["head"] == "StructRF" and results["mean"]["kl"] < 0.5 * CONSTANT
    assert "out_of_bag_kl" in (tmp_path / "run/metrics.csv").read_text()
    task = Task.load_from_checkpoint(tmp_path / "run/checkpoints/last.ckpt")
    assert len(task.head.roots) == 5
