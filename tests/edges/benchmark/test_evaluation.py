"""The metrics of the benchmark by hand, and maps that cannot be evaluated."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from fakes import edge_images
from PIL import Image

from ldl import progress
from ldl.edges.benchmark.evaluation import (
    Curve,
    agreement,
    average_precision,
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
from ldl.errors import LDLError
from ldl.progress import Stop, Stopped

LINE = np.arange(20) == 10
REACH = 1.5 / np.hypot(20, 20)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return edge_images.maps_and_truth(tmp_path)


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
    precision = average_precision(Curve(np.array([0.5, 0.5, 0.2]), np.array([0.4, 0.8, 0.9])))
    assert precision == pytest.approx(sum(0.9 - 0.5 * k / 30 for k in range(31)) / 100)


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
    alone = edge_images.write_truth(folders[1] / "3.mat", [np.eye(9)])
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


def test_empty_and_colour_maps_are_read(folders: tuple[Path, Path]) -> None:
    write_edge_map(folders[0] / "1.png", np.zeros((40, 52)))
    Image.open(folders[0] / "2.png").convert("RGB").save(folders[0] / "2.png")
    counts = evaluate_folder(*folders, allow_empty=True).counts
    assert counts.detected[0].sum() == 0 < counts.detected[1].sum()


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
    measured, more = evaluate_crisp(
        ["a"], lambda name: (edge_images.upright_lines(profile), truth), max_dist=REACH, levels=9
    )
    assert scores(measured.thresholds, measured.counts)["ods"] == pytest.approx(ods)
    assert [figures["ods"] for figures in more["stricter"].values()] == pytest.approx(stricter, abs=1e-9)
    assert more["ac"] == pytest.approx(ac)
