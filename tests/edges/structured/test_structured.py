"""Structured edges from the command line, on a small tree in the layout of BSDS500."""

from __future__ import annotations

import json
from pathlib import Path

import fake_edges
import numpy as np
import pytest
from safetensors.numpy import load_file

from ldl.edges.benchmark.evaluation import evaluate_folder, read_edge_map
from ldl.edges.structured.__main__ import main

SMALL = ["--forest.patches=300", "--forest.trees=4", "--detector.votes=2", "--levels=9"]


def run(tree: Path, folder: Path, *options: str) -> dict:
    # What comes later wins, over a configuration file too.
    main([f"--data.path={tree}", *SMALL, *options, f"--run_dir={folder}"])
    return json.loads((folder / "results.json").read_text())


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
    assert (results["head"], results["protocol"]) == ("structured_edges", "final")
    assert (results["folds"][0]["n_train"], results["folds"][0]["n_test"]) == (6, 3)
    # A disc on plain ground is easy.
    assert results["mean"]["ods"] > 0.8
    assert (done / "config.yaml").is_file()
    assert {path.name for path in (done / "charts").iterdir()} == {"precision_recall.png", "edges.png"}
    again = evaluate_folder(done / "edges", tree / "groundTruth" / "test", levels=9)
    assert again.to_dict() == json.loads((done / "evaluation.json").read_text())


def test_a_trained_forest_is_used_again(tree: Path, done: Path, tmp_path: Path) -> None:
    results = run(tree, tmp_path, "-c", str(done / "config.yaml"), f"--load={done / 'forest.safetensors'}")
    assert results["protocol"] == "final"
    assert results["fit_seconds"] is None
    for path in (done / "edges").iterdir():
        np.testing.assert_array_equal(read_edge_map(path), read_edge_map(tmp_path / "edges" / path.name))


def test_threads_do_not_change_the_forest(tree: Path, done: Path, tmp_path: Path) -> None:
    run(tree, tmp_path, "--data.protocol=final", "--forest.threads=2", "--workers=2")
    one, two = (load_file(folder / "forest.safetensors") for folder in (done, tmp_path))
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_cost_sensitive_hyperplanes(tree: Path, tmp_path: Path) -> None:
    results = run(tree, tmp_path, "--forest.hyperplanes=2")
    assert results["mean"]["ods"] > 0.7
    assert load_file(tmp_path / "forest.safetensors")["feature"].shape[1] == 16


def test_neighbours_of_the_leaves_vote_by_dsna(tree: Path, tmp_path: Path) -> None:
    options = ["--forest.kept=5", "--detector.dsna=true", "--dsna.clusters=2"]
    results = run(tree, tmp_path / "one", *options)
    assert results["mean"]["ods"] > 0.7
    run(tree, tmp_path / "two", *options, f"--load={tmp_path / 'one' / 'forest.safetensors'}", "--workers=2")
    for path in (tmp_path / "one" / "edges").iterdir():
        np.testing.assert_array_equal(read_edge_map(path), read_edge_map(tmp_path / "two" / "edges" / path.name))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--load=none.safetensors", "none.safetensors is no structured forest"),
        ("--data.path=nowhere", "no folder at"),
        ("--detector.votes=9", "detector.votes 9 must be in 1..4"),
        ("--detector.sharpen=4", "detector.sharpen 4 must be in 0..3"),
        ("--detector.scales=[0]", "detector.scales"),
        ("--detector.gain=0", "detector.gain"),
        ("--forest.trees=0", "forest.trees 0 must be at least 1"),
        ("--forest.share=1.5", "forest.share 1.5 must be in"),
        ("--forest.components=4000", "forest.components 4000 must be at most 3328"),
        ("--forest.depth=65", "forest.depth 65 must be in"),
        ("--detector.dsna=true", "set forest.kept to how many a leaf keeps"),
        ("--dsna.width=0", "dsna.width 0"),
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
