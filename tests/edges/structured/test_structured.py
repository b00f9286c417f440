"""Structured edges from the command line, on a small tree in the layout of BSDS500."""

from __future__ import annotations

import json
from pathlib import Path

import fake_edges
import numpy as np
import pytest
from places import CONFIGS
from processes import weights

from ldl.cli import main
from ldl.edges.benchmark.evaluation import evaluate_folder, read_edge_map
from ldl.edges.benchmark.vote_counts import to_dict
from ldl.edges.votes import count_folder

pytestmark = pytest.mark.usefixtures("blank_charts")

SMALL = [
    *("-c", str(CONFIGS / "runs/bsds_structured.yaml"), "--wandb.mode=disabled", "--trainer.enable_progress_bar=false"),
    *("--model.head.patches=300", "--model.head.trees=4", "--model.head.votes=2"),
]


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
    return fake_edges.bsds(tmp_path_factory.mktemp("edges"), {"train": 4, "val": 2, "test": 3}, (160, 200))


@pytest.fixture(scope="module")
def done(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run(tree, folder, "--data.protocol=final")
    return folder


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


def test_threads_do_not_change_the_forest(tree: Path, done: Path, tmp_path: Path) -> None:
    run(tree, tmp_path, "--data.protocol=final", "--model.head.threads=2")
    one, two = (weights(folder) for folder in (done, tmp_path))
    assert "head.segments" in one and all(one[name].equal(two[name]) for name in one)
    same_maps(done, tmp_path)


def test_the_seed_is_that_of_the_run(tree: Path, tmp_path: Path) -> None:
    for name, option in (("run", "--seed_everything=5"), ("head", "--model.head.seed=5")):
        run(tree, tmp_path / name, option, "--model.head.trees=2")
    one, two = (weights(tmp_path / name) for name in ("run", "head"))
    assert all(one[name].equal(two[name]) for name in one)


def test_cost_sensitive_hyperplanes(tree: Path, tmp_path: Path) -> None:
    results = run(tree, tmp_path, "--model.head.hyperplanes=2")
    assert results["mean"]["ods"] > 0.7
    assert weights(tmp_path)["head.feature"].shape[1] == 16


def test_neighbours_of_the_leaves_vote_by_dsna(tree: Path, tmp_path: Path) -> None:
    options = ["--model.head.kept=5", "--model.head.dsna=true", "--model.head.clusters=2"]
    results = run(tree, tmp_path / "one", *options)
    assert results["mean"]["ods"] > 0.7
    checkpoint = f"--ckpt_path={tmp_path / 'one' / 'checkpoints' / 'last.ckpt'}"
    run(tree, tmp_path / "two", "--stage=test", checkpoint)
    same_maps(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--ckpt_path=none.ckpt", "no checkpoint at none.ckpt"),
        ("--data.path=nowhere", "no BSDS500 at"),
        ("--model.head.votes=9", "StructuredEdges.votes 9 must be in 1..4"),
        ("--model.head.sharpen=4", "StructuredEdges.sharpen 4 must be in 0..3"),
        ("--model.head.scales=[0]", "StructuredEdges.scales"),
        ("--model.head.scales=[]", "StructuredEdges.scales"),
        ("--model.head.gain=0", "StructuredEdges.gain"),
        ("--model.head.trees=0", "StructuredEdges.trees 0 must be in 1..10000"),
        ("--model.head.share=1.5", "StructuredEdges.share 1.5 must be in (0, 1]"),
        ("--model.head.components=4000", "StructuredEdges.components 4000 must be in 1..3328"),
        ("--model.head.depth=65", "StructuredEdges.depth 65 must be in 0..64"),
        ("--model.head.dsna=true", "set StructuredEdges.kept to how many a leaf keeps"),
        ("--model.head.clusters=0", "StructuredEdges.clusters 0 must be in 1..10000"),
        ("--model.head.width=0", "StructuredEdges.width 0"),
        ("--model.head.energy=1.5", "StructuredEdges.energy 1.5 must be in (0, 1]"),
        ("--model.backbone=PixelFeatures", "StructuredEdges cannot use the backbone PixelFeatures"),
    ],
)
def test_mistakes_are_named(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture, option: str, message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(tree, tmp_path, option)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("head", ["Softmax", "MeanPredictor"])
def test_only_heads_fitted_on_images_take_whole_images(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture, head: str
) -> None:
    with pytest.raises(SystemExit):
        main(["--model.head", head, "--model.backbone=WholeImages", "--data=BSDS500", f"--data.path={tree}"])
    assert f"{head} cannot use the backbone WholeImages" in capsys.readouterr().err


def test_data_without_annotators_are_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        main(["--model.head=StructuredEdges", "--model.backbone=null", "--data=RotatedDigits", f"--run_dir={tmp_path}"])
    assert "WholeImages got inputs of" in capsys.readouterr().err


def test_ground_truth_without_segmentations_is_named(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from scipy.io import savemat

    copy = fake_edges.bsds(tmp_path / "edges", {"train": 1, "val": 1}, (160, 200))
    cells = np.empty((1, 1), object)
    cells[0, 0] = {"Boundaries": np.eye(160, 200, dtype=np.uint8)}
    truth = next((copy / "groundTruth" / "train").iterdir())
    savemat(truth, {"groundTruth": cells})
    with pytest.raises(SystemExit):
        run(copy, tmp_path / "run")
    assert f"{truth.stem}.jpg has no Segmentation" in capsys.readouterr().err
