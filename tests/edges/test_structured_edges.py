"""Structured edges from the command line, on small trees in the layout of BSDS500."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fakes import edge_images
from fakes.paths import CONFIGS
from fakes.processes import weights

from ldl.command import main
from ldl.edges.benchmark.evaluation import evaluate_folder
from ldl.edges.benchmark.ground_truth import read_edge_map
from ldl.edges.benchmark.votes import to_dict
from ldl.edges.votes import count_folder

pytestmark = pytest.mark.usefixtures("blank_charts")
SMALL = [
    *("-c", str(CONFIGS / "runs/bsds_structured.yaml"), "--wandb.mode=disabled", "--trainer.enable_progress_bar=false"),
    *("--model.head.patches=300", "--model.head.trees=4", "--model.head.votes=2"),
]


ROOMS = (240, 320)
"""The size of the images of NYUD, which has no validation set."""


def run(tree: Path, folder: Path, *options: str) -> dict:
    main([*SMALL, f"--data.path={tree}", *options, f"--run_dir={folder}"])
    return json.loads((folder / "results.json").read_text())


def same_maps(one: Path, two: Path) -> None:
    names = sorted(path.name for path in (one / "edges").iterdir())
    assert names and names == sorted(path.name for path in (two / "edges").iterdir())
    for name in names:
        np.testing.assert_array_equal(read_edge_map(one / "edges" / name), read_edge_map(two / "edges" / name))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edge_images.bsds(tmp_path_factory.mktemp("edges"), {"train": 4, "val": 2, "test": 3}, (160, 200))


@pytest.fixture(scope="module")
def done(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run(tree, folder, "--data.protocol=final")
    return folder


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edge_images.bsds(tmp_path_factory.mktemp("rooms"), {"train": 3, "test": 2}, ROOMS)


def test_one_command_trains_detects_evaluates_and_draws(tree: Path, done: Path) -> None:
    results = json.loads((done / "results.json").read_text())
    assert (results["head"], results["protocol"]) == ("StructuredEdges", "final")
    assert (results["folds"][0]["n_train"], results["folds"][0]["n_test"]) == (6, 3)
    # A disc on plain ground is easy.
    assert results["mean"]["ods"] > 0.8
    assert (done / "config.yaml").is_file()
    drawn = {path.stem for path in (done / "charts").iterdir()}
    assert drawn == {"precision_recall", "edges", "disagreement"}
    again = evaluate_folder(done / "edges", tree / "groundTruth" / "test")
    assert again.to_dict() == json.loads((done / "evaluation.json").read_text())
    counts = count_folder(done / "strengths", tree / "groundTruth" / "test")
    votes = to_dict(counts, {"raw": counts.stated()})
    assert votes == json.loads((done / "votes.json").read_text())
    assert results["mean"]["near_nll"] == pytest.approx(votes["raw"]["all"]["near"]["nll"])
    assert results["mean"]["disagreement"] == pytest.approx(votes["disagreement"]["raw"]["all"])
    name = next((done / "strengths").iterdir()).name
    strength, expected = (read_edge_map(done / kind / name) for kind in ("strengths", "disagreement"))
    np.testing.assert_allclose(expected, 4 * strength * (1 - strength), atol=0.01)


@pytest.mark.slow
def test_a_trained_forest_is_used_again(tree: Path, done: Path, tmp_path: Path) -> None:
    checkpoint = f"--ckpt_path={done / 'checkpoints' / 'last.ckpt'}"
    results = run(tree, tmp_path / "test", "--data.protocol=final", "--stage=test", checkpoint)
    assert results["protocol"] == "final"
    assert results["fit_seconds"] == 0
    same_maps(done, tmp_path / "test")
    main([*SMALL, f"--data.path={tree}", "--data.protocol=final", "--stage=predict", checkpoint]
         + [f"--run_dir={tmp_path / 'predict'}"])  # fmt: skip
    same_maps(done, tmp_path / "predict")
    assert run(tree, tmp_path / "resumed", "--data.protocol=final", checkpoint)["mean"]["ods"] == results["mean"]["ods"]
    same_maps(done, tmp_path / "resumed")


@pytest.mark.slow
def test_hyperplanes_split_and_neighbours_of_the_leaves_vote_by_dsna(tree: Path, tmp_path: Path) -> None:
    options = ["--model.head.kept=5", "--model.head.dsna=true", "--model.head.clusters=2", "--model.head.hyperplanes=2"]
    results = run(tree, tmp_path / "one", *options)
    assert results["mean"]["ods"] > 0.7 and weights(tmp_path / "one")["head.feature"].shape[1] == 16
    checkpoint = f"--ckpt_path={tmp_path / 'one' / 'checkpoints' / 'last.ckpt'}"
    run(tree, tmp_path / "two", "--stage=test", checkpoint)
    same_maps(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model.backbone=PixelFeatures"], "StructuredEdges cannot use the backbone PixelFeatures"),
        (["--model.head=Softmax", "--model.backbone=WholeImages"], "Softmax cannot use the backbone WholeImages"),
    ],
)
def test_mistakes_are_named(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture, options: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(tree, tmp_path, *options)
    error = capsys.readouterr().err
    assert ended.value.code == 2 and message in error and error.count("\n") == 1


def test_ground_truth_without_segmentations_is_named(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from scipy.io import savemat

    copy = edge_images.bsds(tmp_path / "edges", {"train": 1, "val": 1}, (160, 200))
    cells = np.empty((1, 1), object)
    cells[0, 0] = {"Boundaries": np.eye(160, 200, dtype=np.uint8)}
    truth = next((copy / "groundTruth" / "train").iterdir())
    savemat(truth, {"groundTruth": cells})
    with pytest.raises(SystemExit):
        run(copy, tmp_path / "run")
    assert f"{truth.stem}.jpg has no Segmentation" in capsys.readouterr().err


def check_rooms(folder: Path, head: str) -> None:
    results = json.loads((folder / "results.json").read_text())
    assert results["head"] == head and results["protocol"] == "final"
    assert (results["folds"][0]["n_train"], results["folds"][0]["n_test"]) == (3, 2)
    assert {"ods", "ois", "ap", "r50"} <= set(results["mean"])
    maps = sorted((folder / "edges").iterdir())
    assert sorted(read_edge_map(path).shape for path in maps) == sorted([ROOMS, ROOMS[::-1]])
    assert (folder / "charts" / "precision_recall.png").is_file()


@pytest.mark.slow
def test_a_network(rooms: Path, tmp_path: Path) -> None:
    options = "data.protocol=final data.crop=64 data.batch_size=2 model.backbone.pretrained=false "
    options += "trainer.max_epochs=1 trainer.limit_train_batches=1"
    words = ["-c", str(CONFIGS / "runs/bsds_ldlf.yaml"), *(f"--{option}" for option in options.split())]
    main([*words, f"--data.path={rooms}", f"--run_dir={tmp_path}"])
    check_rooms(tmp_path, "LDLF")


@pytest.mark.slow
def test_a_forest_of_another_set(rooms: Path, tmp_path: Path) -> None:
    """A forest trained on one set is tested on another."""
    photographs = edge_images.bsds(tmp_path / "photographs", {"train": 2, "test": 1}, (96, 128))
    small = [*SMALL, "--data.protocol=final"]
    main([*small, f"--data.path={photographs}", f"--run_dir={tmp_path / 'one'}"])
    forest = tmp_path / "one" / "checkpoints" / "last.ckpt"
    main([*small, f"--data.path={rooms}", "--stage=test", f"--ckpt_path={forest}", f"--run_dir={tmp_path / 'two'}"])
    check_rooms(tmp_path / "two", "StructuredEdges")
