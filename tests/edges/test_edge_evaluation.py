"""The benchmark on folders: the original's own example, crispness, and folders that cannot be evaluated."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_edges
import numpy as np
import pytest
import scipy.io
from PIL import Image
from scipy.sparse import csc_matrix

from ldl import progress
from ldl.edges.benchmark.evaluation import (
    Curve,
    agreement,
    average_precision,
    crispness,
    curve,
    evaluate,
    evaluate_crisp,
    evaluate_folder,
    human,
    image_optimum,
    optimum,
    recall_at_half,
    scores,
    thresholds,
)
from ldl.edges.benchmark.ground_truth import GroundTruth, read_ground_truth, write_edge_map
from ldl.edges.benchmark.matching import Counts
from ldl.edges.evaluation import main
from ldl.edges.votes import main as votes
from ldl.errors import LDLError
from ldl.progress import Stop, Stopped

LINE = np.arange(20) == 10
REACH = 1.5 / np.hypot(20, 20)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two images with three annotators each; the maps are the drawings of the first."""
    rng = np.random.default_rng(0)
    for name, shape in (("1", (40, 52)), ("2", (52, 40))):
        _, boundaries, segments = fake_edges.scene(rng, shape)
        fake_edges.write_truth(tmp_path / "gt" / f"{name}.mat", boundaries, segments)
        write_edge_map(tmp_path / "pred" / f"{name}.png", boundaries[0] * 0.8)
    return tmp_path / "pred", tmp_path / "gt"


def test_the_originals_example(ldl_data: Path, tmp_path: Path) -> None:
    """``test_2/eval_bdry.txt`` of BSDS500's benchmark: threshold, R, P, ODS, then R, P and F of OIS, and AP."""
    bench = ldl_data / "bsds_bench"
    if not bench.is_dir():
        pytest.skip("LDL_DATA has no bsds_bench")
    out = tmp_path / "results" / "bench.json"
    main(["--pred", str(bench / "png"), "--gt", str(bench / "groundTruth"), "--out", str(out), "--thresholds", "5"])
    found = json.loads(out.read_text())
    original = np.loadtxt(bench / "test_2" / "eval_bdry.txt")
    assert [found["ods"], found["ois"], found["ap"]] == pytest.approx(original[[3, 6, 7]], abs=1e-3)
    assert list(found["best"].values()) == pytest.approx(original[:4], abs=1e-3)
    by_threshold = np.loadtxt(bench / "test_2" / "eval_bdry_thr.txt")
    np.testing.assert_allclose(found["thresholds"], by_threshold[:, 0], atol=1e-6)
    for column, name in enumerate(("recall", "precision", "f"), start=1):
        np.testing.assert_allclose(found["curve"][name], by_threshold[:, column], atol=1e-3)


def test_the_command_writes_metrics_curve_and_counts(folders: tuple[Path, Path], tmp_path: Path) -> None:
    out, chart = tmp_path / "out.json", tmp_path / "curve.png"
    pred, gt = folders
    main(["--pred", str(pred), "--gt", str(gt), "--out", str(out), "--human", "--chart", str(chart)])
    found = json.loads(out.read_text())
    assert len(found["thresholds"]) == len(found["curve"]["f"]) == 99
    assert found["thresholds"][0] == pytest.approx(0.01) and found["thresholds"][-1] == pytest.approx(0.99)
    assert set(found["images"]) == {"1", "2"}
    # The drawing of an annotator is found completely, up to its strength.
    assert found["curve"]["precision"] == [1.0] * 80 + [0.0] * 19
    recall = found["curve"]["recall"][0]
    assert found["ods"] == pytest.approx(found["ois"]) == pytest.approx(2 * recall / (1 + recall))
    assert 0 < found["human"]["f"] < 1
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
    given = {"--pred": folders[0], "--gt": folders[1], "--out": tmp_path / "out.json", "--thresholds": 3}
    given |= {option: value if option == "--workers" else tmp_path / value}
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for pair in given.items() for word in pair])
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and message in said and said.count("\n") == 1
    assert (tmp_path / "out.json").is_file() == written


@pytest.mark.parametrize("command", [main, votes])
def test_the_output_is_checked_before_the_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture, command: Callable[[list[str]], None]
) -> None:
    with pytest.raises(SystemExit):
        command(["--pred", "none", "--gt", "none", "--out", str(tmp_path)])
    assert capsys.readouterr().err.startswith(f"error: --out {tmp_path} exists, and this command did not write it")


def test_metrics_by_hand() -> None:
    two = Counts(*(np.array(rows) for rows in ([[6, 2], [4, 0]], [[8, 8], [8, 8]], [[4, 2], [4, 0]], [[8, 2], [4, 0]])))
    whole = curve(two)
    np.testing.assert_allclose(whole.recall, [10 / 16, 2 / 16])
    np.testing.assert_allclose(whole.precision, [8 / 12, 1.0])
    assert optimum(np.array([0.3, 0.6]), whole).f == pytest.approx(2 * 0.625 * (2 / 3) / (0.625 + 2 / 3))
    # Both images are best at the first threshold: F 0.6 against 0.4, and 2/3 against 0.
    assert image_optimum(two) == pytest.approx(2 * 0.625 * (2 / 3) / (0.625 + 2 / 3))
    steps = [k / 100 for k in range(101) if 0.125 <= k / 100 <= 0.625]
    line = [1 - (recall - 0.125) / 0.5 / 3 for recall in steps]
    assert average_precision(whole) == pytest.approx(sum(line) / 100)
    assert recall_at_half(whole) == pytest.approx(0.625)
    assert recall_at_half(Curve(np.array([0.9, 0.5]), np.array([0.4, 0.6]))) == pytest.approx(0.7)
    # A few lonely pixels at the highest threshold, right by half, are no recall.
    ragged = Curve(np.array([0.9, 0.5, 0.001]), np.array([0.4, 0.6, 0.5]))
    assert recall_at_half(ragged) == pytest.approx(0.7)
    assert recall_at_half(Curve(np.array([0.9, 0.5]), np.array([0.4, 0.3]))) == 0
    best = optimum(np.array([0.2, 0.4]), Curve(np.array([1.0, 0.2]), np.array([0.2, 1.0])))
    assert best.f == pytest.approx(0.6, abs=1e-3) and best.threshold == pytest.approx(0.3, abs=2e-3)
    nothing = Counts(*(np.zeros((2, 5), int) for _ in range(4)))
    assert scores(thresholds(5), nothing) == {"ods": 0, "ois": 0, "ap": 0, "r50": 0}


def test_of_equal_recalls_the_lowest_threshold_counts() -> None:
    """Its precision, .4, falls from .9 at recall .2: at the recalls .2, .21, ..., .5."""
    found = average_precision(Curve(np.array([0.5, 0.5, 0.2]), np.array([0.4, 0.8, 0.9])))
    assert found == pytest.approx(sum(0.9 - 0.5 * k / 30 for k in range(31)) / 100)


def test_a_terminated_run_skips_the_queued_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "stop", Stop())
    read, drawn = [], np.eye(20, dtype=bool)

    def load(name: str) -> tuple[np.ndarray, GroundTruth]:
        progress.stop.signal = signal.SIGTERM
        read.append(name)
        return drawn.astype(float), GroundTruth(drawn[None], None)

    with pytest.raises(Stopped):
        evaluate([str(number) for number in range(1000)], load, workers=1)
    assert len(read) < 1000


def test_humans_are_compared_with_the_others(folders: tuple[Path, Path]) -> None:
    agreed = human(["1", "2"], lambda name: read_ground_truth(folders[1] / f"{name}.mat"))
    assert agreed.names == [f"{name}:{a}" for name in "12" for a in range(3)]
    drawn = [read_ground_truth(folders[1] / f"{name}.mat").boundaries for name in "12"]
    assert agreed.counts.detected.sum() == sum(maps.sum() for maps in drawn)
    assert agreed.counts.drawn.sum() == 2 * sum(maps.sum() for maps in drawn)
    alone = fake_edges.write_truth(folders[1] / "3.mat", [np.eye(9)])
    with pytest.raises(LDLError, match="3 has a single annotator"):
        human(["3"], lambda name: read_ground_truth(alone))
    assert agreement(["3"], lambda name: read_ground_truth(alone)) is None


@pytest.mark.slow
def test_human_agreement_on_bsds(ldl_data: Path) -> None:
    """F on every tenth test image; all 200 give 0.803."""
    folder = ldl_data / "BSDS500" / "data" / "groundTruth" / "test"
    if not folder.is_dir():
        pytest.skip("LDL_DATA has no BSDS500")
    names = sorted(file.stem for file in folder.glob("*.mat"))[::20]
    point = agreement(names, lambda name: read_ground_truth(folder / f"{name}.mat"))
    assert point is not None and point.f == pytest.approx(0.80, abs=0.04)


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (Image.fromarray(np.full((40, 52), 300, np.uint16)), "has 16 bits"),
        (Image.fromarray(np.arange(6240, dtype=np.uint32).reshape(40, 52, 3).astype(np.uint8)), "image of mode RGB"),
        (Image.fromarray(np.zeros((40, 52), np.uint8)), "1.png is empty.*--allow_empty"),
        (Image.fromarray((255 * np.eye(52, 40)).astype(np.uint8)), "1: .*differ in size, 52x40 and 40x52"),
    ],
)
def test_unusable_maps_are_named(folders: tuple[Path, Path], picture: Image.Image, message: str) -> None:
    picture.save(folders[0] / "1.png")
    with pytest.raises(LDLError, match=message):
        evaluate_folder(*folders)


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


def test_empty_and_colour_maps_are_read(folders: tuple[Path, Path]) -> None:
    write_edge_map(folders[0] / "1.png", np.zeros((40, 52)))
    Image.open(folders[0] / "2.png").convert("RGB").save(folders[0] / "2.png")
    counts = evaluate_folder(*folders, allow_empty=True).counts
    assert counts.detected[0].sum() == 0 < counts.detected[1].sum()


def _cells(*cells: dict[str, Any]) -> dict[str, Any]:
    """Return the variable of a ground truth file with these annotators."""
    found = np.empty((1, len(cells)), object)
    found[0, :] = cells
    return {"groundTruth": found}


def _maps(*maps: Any) -> dict[str, Any]:
    return _cells(*({"Boundaries": drawn} for drawn in maps))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_maps(), "holds no annotators"),
        (_maps(np.ones((4, 5)), np.ones((5, 4))), "annotators 0 and 1 differ in size, 4x5 and 5x4"),
        (_maps(*[csc_matrix((2**16, 2**10))] * 5), "sparse matrices of 335544320 pixels in all, 268435456 at most"),
        ({"x": 1}, "no variable groundTruth"),
        (_cells({"Segmentation": np.ones((3, 3))}), "annotator 0 has no Boundaries, but Segmentation"),
        (b"MATLAB 5.0 MAT-file, but not really" * 9, "cannot be read"),
        (None, "no ground truth at"),
    ],
)
def test_unusable_ground_truth_is_named(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "a.mat"
    if isinstance(content, dict):
        scipy.io.savemat(path, content)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(LDLError, match=message):
        read_ground_truth(path)


def test_sparse_maps_become_dense(tmp_path: Path) -> None:
    drawn = np.stack([np.eye(4, 5), np.zeros((4, 5))])
    scipy.io.savemat(tmp_path / "a.mat", _maps(*map(csc_matrix, drawn)))
    assert np.array_equal(read_ground_truth(tmp_path / "a.mat").boundaries, drawn > 0)


def upright(profile: dict[int, float]) -> np.ndarray:
    """Return a map (20, 20) whose every row has these strengths by column."""
    return np.tile([profile.get(x, 0.0) for x in range(20)], (20, 1))


@pytest.mark.parametrize(
    ("profile", "ods", "stricter", "ac"),
    [
        # Found completely, but two of three pixels are errors: F of 1/3 and 1. Thinned, there would be no error.
        ({9: 0.8, 10: 0.8, 11: 0.8}, 0.5, [0.5, 0.5], 1.0),
        # Above its slopes the line is one pixel wide; half the mass lies on them.
        ({9: 0.5, 10: 1.0, 11: 0.5}, 1.0, [1.0, 1.0], 0.5),
        # A pixel off: within 1.5 pixels, not within 0.75.
        ({11: 1.0}, 1.0, [0.0, 0.0], 1.0),
        # Where the line is strong it is a pixel off; of both pixels one is right.
        ({10: 0.25, 11: 0.75}, 1.0, [2 / 3, 2 / 3], 0.75),
    ],
)
def test_crispness_of_lines_by_hand(profile: dict[int, float], ods: float, stricter: list[float], ac: float) -> None:
    truth = GroundTruth(np.tile(LINE, (1, 20, 1)), None)
    # At a distance of 1.5 all pixels of the first map are near enough, and one of a row is assigned.
    measured, more = evaluate_crisp(["a"], lambda name: (upright(profile), truth), max_dist=REACH, levels=9)
    assert scores(measured.thresholds, measured.counts)["ods"] == pytest.approx(ods)
    assert [figures["ods"] for figures in more["stricter"].values()] == pytest.approx(stricter, abs=1e-9)
    assert more["ac"] == pytest.approx(ac)


def test_the_command_evaluates_crispness(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fake_edges.write_truth(tmp_path / "gt" / "a.mat", [np.tile(LINE, (20, 1))])
    write_edge_map(tmp_path / "pred" / "a.png", upright({9: 0.8, 10: 0.8, 11: 0.8}))
    folders = ["--pred", str(tmp_path / "pred"), "--gt", str(tmp_path / "gt"), "--max_dist", str(REACH)]
    standard, crisp = tmp_path / "standard.json", tmp_path / "crisp.json"
    main([*folders, "--out", str(standard)])
    main([*folders, "--out", str(crisp), "--crisp"])
    assert capsys.readouterr().out.splitlines()[1].startswith("ods 0.5000 ois 0.5000")
    found, plain = json.loads(crisp.read_text()), json.loads(standard.read_text())
    assert set(found) - set(plain) == {"ac", "stricter"} and plain["ods"] > 0.9
    assert crispness(np.zeros((9, 9))) == 1
    assert list(found["stricter"]) == [f"{REACH / 2:g}", f"{REACH / 4:g}"]
