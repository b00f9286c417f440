"""The command of the benchmark: the original's own example, crispness, and folders that cannot be evaluated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes import edge_images

from ldl.edges.benchmark.evaluation import (
    crispness,
    evaluate_folder,
)
from ldl.edges.benchmark.ground_truth import write_edge_map
from ldl.edges.evaluation import main
from ldl.edges.votes import main as votes
from ldl.errors import LDLError

LINE = np.arange(20) == 10
REACH = 1.5 / np.hypot(20, 20)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return edge_images.maps_and_truth(tmp_path)


def test_the_originals_example(ldl_data: Path, tmp_path: Path) -> None:
    """``test_2/eval_bdry.txt`` of BSDS500's benchmark: threshold, R, P, ODS, then R, P and F of OIS, and AP."""
    bench = ldl_data / "bsds_bench"
    if not bench.is_dir():
        pytest.skip("LDL_DATA has no bsds_bench")
    out = tmp_path / "results" / "bench.json"
    main(["--pred", str(bench / "png"), "--gt", str(bench / "groundTruth"), "--out", str(out), "--thresholds", "5"])
    content = json.loads(out.read_text())
    original = np.loadtxt(bench / "test_2" / "eval_bdry.txt")
    assert [content["ods"], content["ois"], content["ap"]] == pytest.approx(original[[3, 6, 7]], abs=1e-3)
    assert list(content["best"].values()) == pytest.approx(original[:4], abs=1e-3)
    by_threshold = np.loadtxt(bench / "test_2" / "eval_bdry_thr.txt")
    np.testing.assert_allclose(content["thresholds"], by_threshold[:, 0], atol=1e-6)
    for column, name in enumerate(("recall", "precision", "f"), start=1):
        np.testing.assert_allclose(content["curve"][name], by_threshold[:, column], atol=1e-3)


def test_the_command_writes_metrics_curve_and_counts(folders: tuple[Path, Path], tmp_path: Path) -> None:
    out, chart = tmp_path / "out.json", tmp_path / "curve.png"
    pred, gt = folders
    main(["--pred", str(pred), "--gt", str(gt), "--out", str(out), "--human", "--chart", str(chart)])
    content = json.loads(out.read_text())
    assert len(content["thresholds"]) == len(content["curve"]["f"]) == 99
    assert content["thresholds"][0] == pytest.approx(0.01) and content["thresholds"][-1] == pytest.approx(0.99)
    assert set(content["images"]) == {"1", "2"}
    # The drawing of an annotator is found completely, up to its strength.
    assert content["curve"]["precision"] == [1.0] * 80 + [0.0] * 19
    recall = content["curve"]["recall"][0]
    assert content["ods"] == pytest.approx(content["ois"]) == pytest.approx(2 * recall / (1 + recall))
    assert 0 < content["human"]["f"] < 1
    assert chart.is_file()


@pytest.mark.parametrize(
    ("option", "value", "message", "written"),
    [
        ("--chart", "c.txt", "c.txt cannot be written: Format 'txt' is not supported", True),
        ("--chart", "file/c.png", "the results are in --out", True),
        (
            "--out",
            "file/out.json",
            "out.json cannot be written: File exists; free disk space, or give another --out",
            False,
        ),
        ("--workers", "-1", "workers -1 must be at least 1, or left out", False),
    ],
)
def test_what_cannot_be_written_is_reported_in_one_line(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture, option: str, value: str, message: str,
    written: bool,
) -> None:  # fmt: skip
    (tmp_path / "file").write_text("")
    options = {"--pred": folders[0], "--gt": folders[1], "--out": tmp_path / "out.json", "--thresholds": 3}
    options |= {option: value if option == "--workers" else tmp_path / value}
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for pair in options.items() for word in pair])
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and message in error and error.count("\n") == 1
    assert (tmp_path / "out.json").is_file() == written


@pytest.mark.parametrize("command", [main, votes])
def test_the_output_is_checked_before_the_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture, command: Callable[[list[str]], None]
) -> None:
    with pytest.raises(SystemExit):
        command(["--pred", "none", "--gt", "none", "--out", str(tmp_path)])
    assert capsys.readouterr().err.startswith(f"error: --out {tmp_path} exists, and this command did not write it")


def test_folders_that_do_not_fit_are_named(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    pred, gt = folders
    (pred / "2.png").rename(pred / "3.png")
    with pytest.raises(SystemExit) as stopped:
        main(["--pred", str(pred), "--gt", str(gt), "--out", str(tmp_path / "out.json")])
    assert stopped.value.code == 2
    assert "has no 2.png (1 of 2 images have no edge map)" in capsys.readouterr().err
    (pred / "2.png").write_bytes((pred / "3.png").read_bytes())
    with pytest.raises(LDLError, match="has no 3.mat"):
        evaluate_folder(pred, gt)
    with pytest.raises(LDLError, match="is no folder"):
        evaluate_folder(tmp_path / "nowhere", gt)
    (pred / "3.png").unlink()
    (pred / "2.png").write_bytes(b"no picture")
    with pytest.raises(LDLError, match="2.png cannot be read"):
        evaluate_folder(pred, gt)


def test_the_command_evaluates_crispness(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    edge_images.write_truth(tmp_path / "gt" / "a.mat", [np.tile(LINE, (20, 1))])
    write_edge_map(tmp_path / "pred" / "a.png", edge_images.upright_lines({9: 0.8, 10: 0.8, 11: 0.8}))
    folders = ["--pred", str(tmp_path / "pred"), "--gt", str(tmp_path / "gt"), "--max_dist", str(REACH)]
    standard, crisp = tmp_path / "standard.json", tmp_path / "crisp.json"
    main([*folders, "--out", str(standard)])
    main([*folders, "--out", str(crisp), "--crisp"])
    assert capsys.readouterr().out.splitlines()[1].startswith("ods 0.5000 ois 0.5000")
    content, plain = json.loads(crisp.read_text()), json.loads(standard.read_text())
    assert set(content) - set(plain) == {"ac", "stricter"} and plain["ods"] > 0.9
    assert crispness(np.zeros((9, 9))) == 1
    assert list(content["stricter"]) == [f"{REACH / 2:g}", f"{REACH / 4:g}"]
