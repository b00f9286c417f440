"""The command that compares votes with maps, and folders that cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fakes import edge_images

from ldl.edges.benchmark.ground_truth import (
    read_ground_truth,
    write_edge_map,
)
from ldl.edges.votes import main


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parts ``test`` and ``val``; their maps are the share of annotators, with a bias."""
    folder = edge_images.bsds(tmp_path_factory.mktemp("votes"), {"test": 2, "val": 3})
    for subset in ("test", "val"):
        for file in (folder / "groundTruth" / subset).iterdir():
            near = read_ground_truth(file).boundaries.mean(0)
            edge_images.write_probability(folder / "maps" / subset / f"{file.stem}.png", 0.05 + 0.9 * near)
    return folder


def options(tree: Path, out: Path, *more: object) -> list[str]:
    words = ["--pred", tree / "maps/test", "--gt", tree / "groundTruth/test", "--out", out, *more]
    return list(map(str, words))


def test_the_command_writes_raw_and_calibrated_scores(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted = ("--fit_pred", tree / "maps/val", "--fit_gt", tree / "groundTruth/val", "--chart", tmp_path / "chart.png")
    main(options(tree, tmp_path / "results" / "votes.json", *fitted))
    content = json.loads((tmp_path / "results" / "votes.json").read_text())
    assert (content["images"], content["near"], content["band"], content["bins"]) == (2, 2.0, 5.0, 15)
    for region in ("all", "band"):
        for question in ("drawn", "near", "any"):
            raw, calibrated, constant = (content[way][region][question] for way in ("raw", "calibrated", "constant"))
            assert calibrated["nll"] < raw["nll"] and calibrated["nll"] < constant["nll"]
            assert calibrated["ece"] < raw["ece"] and calibrated["brier"] < constant["brier"]
            assert set(raw) == {"nll", "brier", "ece", "ece_mass"}
    assert 0 < content["disagreement"]["calibrated"]["all"] <= 1
    assert (tmp_path / "chart.png").is_file()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["constant", "raw", "calibrated"]


def test_what_cannot_be_compared_is_reported_in_one_line(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tmp_path / "small"
    for file in (tree / "maps/test").iterdir():
        write_edge_map(small / file.name, np.zeros((5, 6)))
    whole = tmp_path / "whole"
    for file in (tree / "maps/test").iterdir():
        (whole / file.name).parent.mkdir(exist_ok=True)
        (whole / file.name).write_bytes(file.read_bytes()[:200])
    for more, message in (
        (("--pred", small), "1001: map and ground truth differ in size, 5x6 and 48x64 pixels"),
        (("--pred", whole), "1001.png cannot be read as an image"),
        (("--pred", tmp_path / "none"), "none is no folder"),
        (("--fit_pred", small), "--fit_gt is missing"),
        (("--bins", 0), "--bins 0 must be at least 1"),
        (("--chart", whole / "1001.png" / "c.png"), "the results are in --out"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(options(tree, tmp_path / "x.json", *more))
        error = capsys.readouterr().err
        assert ended.value.code == 2 and message in error and error.count("\n") == 1
        assert (tmp_path / "x.json").is_file() == ("results" in message)
