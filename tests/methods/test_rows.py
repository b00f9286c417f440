"""Training rows, and heads whose ``fit`` was written for version 0.2.0."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from fakes.paths import ROOT
from torch import Tensor

from ldl.collective import Collective
from ldl.command import main
from ldl.errors import LDLError
from ldl.heads import DSNA, MaxEnt, StructRF
from ldl.inference import Predictor
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.metrics import registry
from ldl.plugins import discover
from ldl.testing import check_head

EMOTIONS = LabelSpace.nominal(["calm", "happy", "sad"])
QUIET = [
    "--data=OldPatients", "--data.folds=3", "--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu",
    "--wandb.mode=disabled",
]  # fmt: skip
OTHER_HEADS = ("OldSquares", "OldMean", "OldForest")


def some_rows(**columns: Tensor) -> Rows:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(40, 4, generator=generator)
    return Rows(features, torch.softmax(features[:, :3], -1), **columns)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module of plugins of 0.2.0, in a folder of plugins."""
    metrics = dict(registry._registered)
    folder = tmp_path_factory.mktemp("project") / "plugins"
    folder.mkdir()
    shutil.copy(ROOT / "tests" / "fakes" / "plugin_of_0_2_0.py", folder)
    with pytest.warns(DeprecationWarning, match=r"OldSquares.fit takes features and target, as in ldl 0.2.0; change"):
        discover(folder)
    yield sys.modules["ldl_plugins.plugin_of_0_2_0"]
    registry._registered.clear()
    registry._registered.update(metrics)


def test_slices_keep_every_column() -> None:
    rows = some_rows(weight=torch.arange(40.0) + 1, group=torch.arange(40) // 4)
    some = rows[torch.tensor([3, 8])]
    assert len(some) == 2 and list(some.columns) == ["features", "target", "weight", "group"]
    assert some.weight is not None and some.weight.tolist() == [4, 9] and torch.equal(some.target, rows.target[[3, 8]])
    assert torch.allclose(some.share, torch.tensor([4, 9]).double() / 13)
    assert torch.equal(some_rows().share, torch.full((40,), 1 / 40, dtype=torch.float64))


def test_whole_groups_are_held_out() -> None:
    rows = some_rows(group=torch.arange(40) // 4)
    train, held_out = rows.hold_out(0.3, seed=1)
    assert len(held_out) == 12 and sorted([*train, *held_out]) == list(range(40))
    assert not set(train // 4) & set(held_out // 4)


@pytest.mark.parametrize("name", ["OldSquares", "OldForest", "OldWrapper", "OldOdds"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_heads_keep_the_contract(plugin: ModuleType, name: str) -> None:
    check_head(getattr(plugin, name))


def test_old_heads_get_the_columns_that_they_name(plugin: ModuleType) -> None:
    head = plugin.OldMean()
    head.build(4, EMOTIONS)
    head.fit(some_rows(group=torch.arange(40), weight=torch.ones(40)), Collective())
    assert head.columns.tolist() == [0, 40, 40]
    head.fit(some_rows(), Collective())
    assert head.columns.tolist() == [0, 0, 0]
    with pytest.raises(LDLError, match="OldSquares takes no row weights"):
        plugin.OldSquares().fit(some_rows(weight=torch.ones(40)), Collective())


@pytest.mark.parametrize(("name", "change"), [("OldForest", torch.sign), ("OldWrapper", torch.square)])
def test_old_heads_on_heads_of_today(plugin: ModuleType, name: str, change: Any) -> None:
    """A subclass and a wrapper give weights and groups on to the ``fit`` of a head that takes rows."""
    rows = some_rows(group=torch.arange(40) // 8, weight=torch.arange(40) % 3 + 1.0)
    old, head = getattr(plugin, name)(), StructRF() if name == "OldForest" else MaxEnt()
    for each in (old, head):
        each.build(4, EMOTIONS)
    with pytest.warns(DeprecationWarning, match="fit is called with features and target"):
        old.fit(rows, Collective())
    head.fit(Rows(change(rows.features), rows.target, weight=rows.weight, group=rows.group), Collective())
    assert torch.equal(old(rows.features), head(change(rows.features)))
    assert getattr(old, "head", old).summary() == head.summary()


def test_a_head_of_today_takes_old_arguments_with_a_warning() -> None:
    rows, weight = some_rows(), torch.arange(40) % 3 + 1.0
    old, new = StructRF(trees=3), StructRF(trees=3)
    for head in (old, new):
        head.build(4, EMOTIONS)
    with pytest.warns(DeprecationWarning, match=r"StructRF.fit is called with features and target, as in ldl 0.2.0"):
        old.fit(rows.features, rows.target, Collective(), weight=weight)
    new.fit(some_rows(weight=weight), Collective())
    assert torch.equal(old(rows.features), new(rows.features))
    dsna = DSNA()
    dsna.build(4, EMOTIONS)
    with pytest.warns(DeprecationWarning), pytest.raises(LDLError, match="DSNA takes no row weights"):
        dsna.fit(rows.features, rows.target, Collective(), weight=weight)


@pytest.mark.parametrize(
    "head", ["OldOdds", "OldWrapper", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHER_HEADS)]
)
@pytest.mark.usefixtures("blank_charts")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_plugins_of_0_2_0_run_unchanged(plugin: ModuleType, head: str, tmp_path: Path) -> None:
    """Train, resume, test, predict and cross-validate with head, data module and metric of a plugin of 0.2.0."""
    weights = [] if head == "OldSquares" else ["--data.weighted=true"]

    def run(name: str, *options: str) -> dict[str, Any]:
        main([f"--model.head={head}", *QUIET, *weights, *options, f"--run_dir={tmp_path / name}"])
        path = tmp_path / name / "results.json"
        return json.loads(path.read_text()) if path.exists() else {}

    trained = run("run", "--trainer.max_epochs=2")
    checkpoint = tmp_path / "run/checkpoints/last.ckpt"
    assert trained["head"] == head and 0 <= trained["mean"]["old_agreement"] <= 1
    half = run("half", "--trainer.max_epochs=1")
    shutil.copytree(tmp_path / "half", tmp_path / "resumed")
    resumed = run("resumed", "--trainer.max_epochs=2", f"--ckpt_path={tmp_path / 'half/checkpoints/last.ckpt'}")
    assert resumed["mean"] == (trained["mean"] if head == "OldOdds" else half["mean"])
    tested = run("tested", "--stage=test", f"--ckpt_path={checkpoint}")
    assert tested["mean"] == trained["mean"]
    run("predicted", "--stage=predict", f"--ckpt_path={checkpoint}")
    assert (tmp_path / "predicted/predictions.csv").is_file()
    folds = run("folds", "--trainer.max_epochs=1", "--stage=crossval")["folds"]
    assert [fold["fold"] for fold in folds] == [0, 1, 2]
    prediction = Predictor.from_checkpoint(checkpoint).predict(torch.randn(5, 10).numpy()).distribution
    assert prediction.shape == (5, len(range(20, 391, 40)))
