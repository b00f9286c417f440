"""Another set of edges in BSDS500's layout, as NYUD is published: 320 x 240 pixels, train and test, no validation part.

All three detectors go through the commands of the README, and a forest trained on one set is tested on another.
"""

from __future__ import annotations

import json
from pathlib import Path

import fake_edges
import pytest
from places import ROOT

from ldl.cli import main as train
from ldl.edges.benchmark.evaluation import read_edge_map

pytestmark = pytest.mark.usefixtures("blank_charts")

CONFIGS = ROOT / "configs/runs"
SMALL = [
    *("-c", str(CONFIGS / "bsds_structured.yaml"), "--data.protocol=final"),
    *("--model.head.patches=200", "--model.head.trees=2", "--model.head.votes=1"),
]
SHAPE = (240, 320)


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_edges.bsds(tmp_path_factory.mktemp("rooms"), {"train": 3, "test": 2}, SHAPE)


def check(folder: Path, head: str) -> None:
    results = json.loads((folder / "results.json").read_text())
    assert results["head"] == head and results["protocol"] == "final"
    assert (results["folds"][0]["n_train"], results["folds"][0]["n_test"]) == (3, 2)
    assert {"ods", "ois", "ap", "r50"} <= set(results["mean"])
    maps = sorted((folder / "edges").iterdir())
    assert sorted(read_edge_map(path).shape for path in maps) == sorted([SHAPE, SHAPE[::-1]])
    assert (folder / "charts" / "precision_recall.png").is_file()


@pytest.mark.parametrize(
    "options", [[], ["--model.head.hyperplanes=2", "--model.head.kept=4", "--model.head.dsna=true"]]
)
def test_forests(rooms: Path, tmp_path: Path, options: list[str]) -> None:
    train([*SMALL, f"--data.path={rooms}", *options, f"--run_dir={tmp_path}"])
    check(tmp_path, "StructuredEdges")


@pytest.mark.parametrize("head", ["ldlf", "softmax"])
def test_networks(rooms: Path, tmp_path: Path, head: str) -> None:
    train(
        [
            "-c", str(CONFIGS / f"bsds_{head}.yaml"), f"--data.path={rooms}", "--data.protocol=final", "--data.crop=64",
            "--data.batch_size=2", "--trainer.max_epochs=1", "--trainer.limit_train_batches=1", f"--run_dir={tmp_path}",
            "--model.backbone.pretrained=false",
        ]
    )  # fmt: skip
    check(tmp_path, {"ldlf": "LDLF", "softmax": "Softmax"}[head])


def test_a_forest_of_another_set(rooms: Path, tmp_path: Path) -> None:
    photographs = fake_edges.bsds(tmp_path / "photographs", {"train": 2, "test": 1}, (96, 128))
    train([*SMALL, f"--data.path={photographs}", f"--run_dir={tmp_path / 'one'}"])
    forest = tmp_path / "one" / "checkpoints" / "last.ckpt"
    train([*SMALL, f"--data.path={rooms}", "--stage=test", f"--ckpt_path={forest}", f"--run_dir={tmp_path / 'two'}"])
    check(tmp_path / "two", "StructuredEdges")
