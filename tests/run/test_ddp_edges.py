"""Two processes on maps of pixels: the weights, metrics and edge maps of one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes.edge_images import bsds
from fakes.forks import run_several
from fakes.processes import ROOT, TWO, assert_close, logged, run_here, weights, without_times
from PIL import Image

pytestmark = [pytest.mark.usefixtures("blank_charts"), pytest.mark.slow]

# Five training images in batches of two: in the last batch the second process holds nothing but padding. Pixels that
# are learned from differ in number between crops.
RUN = [
    *("-c", str(ROOT / "configs/runs/bsds_softmax.yaml"), "--wandb.mode", "disabled", "--trainer.accelerator=cpu"),
    *("--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false", "--trainer.max_epochs=2"),
    *("--trainer.precision=64-true", "--data.protocol=final", "--data.crop=32", "--data.batch_size=2"),
    *("--model.backbone.name=mobilenetv2_050", "--model.backbone.pretrained=false", "--model.backbone.width=8"),
]


# Three trees: the second process grows one of them.
FOREST = [
    *("-c", str(ROOT / "configs/runs/bsds_structured.yaml"), "--wandb.mode", "disabled", "--trainer.accelerator=cpu"),
    *("--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false", "--trainer.precision=64-true"),
    *("--data.protocol=final", "--model.head.trees=3", "--model.head.votes=2", "--model.head.patches=200"),
    *("--model.head.hyperplanes=1", "--model.head.kept=3", "--model.head.dsna=true"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders one/ and two/, with the run by one process and by two."""
    return by_one_and_by_two(tmp_path_factory.mktemp("edges"), RUN)


@pytest.fixture(scope="module")
def forests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``runs``, of structured edges."""
    return by_one_and_by_two(tmp_path_factory.mktemp("forests"), FOREST, (60, 72))


def by_one_and_by_two(folder: Path, options: list[str], shape: tuple[int, int] = (48, 64)) -> Path:
    data = ["--data.path", str(bsds(folder / "data", {"train": 3, "val": 2, "test": 3}, shape))]
    run_here([*options, *data, "--run_dir", str(folder / "one")], folder)
    run_several([[*options, *data, *TWO, "--run_dir", str(folder / "two")]], folder)
    return folder


def test_two_processes_measure_what_one_measures(runs: Path) -> None:
    one, two = (without_times(json.loads((runs / name / "results.json").read_text())) for name in ("one", "two"))
    assert {"kl", "ods", "ois", "ap", "r50"} <= set(one["mean"])
    assert_close(one, two)
    assert_close(logged(runs / "one" / "metrics.csv"), logged(runs / "two" / "metrics.csv"))
    assert_close(*(json.loads((runs / name / "evaluation.json").read_text()) for name in ("one", "two")))
    same_maps(runs)


def test_two_processes_grow_the_trees_of_one(forests: Path) -> None:
    one, two = (weights(forests / name) for name in ("one", "two"))
    assert len(one["head.roots"]) == 3 and one["head.kept_points"].dtype == torch.float32
    assert one.keys() == two.keys() and all(one[name].equal(two[name]) for name in one)
    results = [without_times(json.loads((forests / name / "results.json").read_text())) for name in ("one", "two")]
    assert_close(*results)
    evaluations = [(forests / name / "evaluation.json").read_text() for name in ("one", "two")]
    assert evaluations[0] == evaluations[1]
    same_maps(forests)


def same_maps(runs: Path) -> None:
    for kind in ("strengths", "edges", "disagreement"):
        one, two = (sorted((runs / name / kind).glob("*.png")) for name in ("one", "two"))
        assert [path.name for path in one] == [path.name for path in two] and len(one) == 3
        for a, b in zip(one, two):
            np.testing.assert_array_equal(np.asarray(Image.open(a)), np.asarray(Image.open(b)))
