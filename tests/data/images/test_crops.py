"""Alignment of faces against a least-squares solver, and the cache of aligned crops: its key, content and failures."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ldl.data.images import crops as module
from ldl.data.images.crops import BOX_CORNERS, FACE_POINTS, Crops, cached_crops, crop, placement, similarity
from ldl.data.images.records import ImageRecords
from ldl.data.pictures import read_picture
from ldl.errors import LDLError


@pytest.fixture
def records(tmp_path: Path) -> ImageRecords:
    rng = np.random.default_rng(0)
    for number in range(5):
        pixels = rng.integers(0, 256, (30, 20 + number, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    anchors = [20 * np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]) + number for number in range(5)]
    return ImageRecords(tmp_path, [f"{number}.png" for number in range(5)], np.arange(5.0), anchors=anchors)


def test_crops_are_those_of_the_pictures(records: ImageRecords, tmp_path: Path) -> None:
    crops = cached_crops(records, 16, 0.1, tmp_path / "cache")
    assert crops.failed == {}
    for row, path in enumerate(records.paths()):
        np.testing.assert_array_equal(crops[row], crop(read_picture(path), records.anchor(row), 16, 0.1))


def test_the_second_time_no_picture_is_read(
    records: ImageRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = cached_crops(records, 16, None, tmp_path / "cache")
    assert "cropping 5 images to 16x16" in capsys.readouterr().out

    def refuse(path: Path) -> np.ndarray:
        raise AssertionError(path)

    monkeypatch.setattr(module, "read_picture", refuse)
    again = cached_crops(records, 16, None, tmp_path / "cache")
    assert capsys.readouterr().out == ""
    assert again.key == first.key
    np.testing.assert_array_equal(again[3], first[3])


@pytest.mark.parametrize("what", ["size", "anchor", "picture", "list", "time"])
def test_the_key_sees_all_that_makes_a_crop(what: str, records: ImageRecords, tmp_path: Path) -> None:
    size, margin = 16, 0.1
    before = cached_crops(records, size, margin, tmp_path / "cache").key
    if what == "size":
        size = 17
    elif what == "anchor":
        assert records.anchors is not None
        records = replace(records, anchors=[*records.anchors[:4], records.anchors[4] + 1e-9])
    elif what == "picture":
        path = records.paths()[2]
        Image.fromarray(255 - read_picture(path)).save(path)
    elif what == "list":
        records = records.take(np.array([0, 1, 2, 4]))
    else:
        os.utime(records.paths()[0], ns=(0, 5))
    crops = cached_crops(records, size, margin, tmp_path / "cache")
    assert crops.key != before
    row = 3 if what == "list" else 2
    expected = crop(read_picture(records.paths()[row]), records.anchor(row), size, margin)
    np.testing.assert_array_equal(crops[row], expected)


def test_failures_are_kept_with_their_reasons(records: ImageRecords, tmp_path: Path) -> None:
    records.paths()[1].write_bytes(b"broken")
    records.paths()[3].unlink()
    for _ in range(2):
        crops = cached_crops(records, 16, None, tmp_path / "cache")
        assert list(crops.failed) == [1, 3]
        assert "1.png cannot be read" in crops.failed[1] and "no image at" in crops.failed[3]
        assert crops[4].any()


def test_pictures_that_an_earlier_run_could_not_read_are_tried_again(records: ImageRecords, tmp_path: Path) -> None:
    path = records.paths()[1]
    content, time = path.read_bytes(), path.stat().st_mtime_ns

    def cropped(content: bytes) -> Crops:
        path.write_bytes(content)
        os.utime(path, ns=(time, time))
        return cached_crops(records, 16, None, tmp_path / "cache")

    first = cropped(bytes(len(content)))
    assert list(first.failed) == [1] == list(cropped(content).failed)
    os.utime(first.file.with_suffix(".json"), (1, 1))
    again = cropped(content)
    assert again.failed == {} and again.key == first.key
    np.testing.assert_array_equal(again[1], crop(read_picture(path), records.anchor(1), 16, None))


def test_room_is_taken_before_pictures_are_cropped(records: ImageRecords, tmp_path: Path) -> None:
    for path in records.paths()[1:]:
        path.unlink()
    status = cached_crops(records, 256, None, tmp_path / "cache").file.stat()
    # Also that of pictures which are not there: a hole meets a full disk where it is mapped, which ends the process.
    assert 512 * status.st_blocks >= status.st_size > 5 * 256 * 256 * 3


def test_a_loader_process_opens_the_file_itself(records: ImageRecords, tmp_path: Path) -> None:
    crops = cached_crops(records, 16, None, tmp_path / "cache")
    expected = crops[2]
    sent = pickle.dumps(crops)
    assert len(sent) < 500
    np.testing.assert_array_equal(pickle.loads(sent)[2], expected)


def test_an_interrupted_run_leaves_no_half_cache(
    records: ImageRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def interrupt(*arguments: object) -> np.ndarray:
            raise KeyboardInterrupt

        patched.setattr(module, "crop", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cached_crops(records, 16, None, tmp_path / "cache")
        assert not list((tmp_path / "cache" / "crops").glob("*.json"))
    crops = cached_crops(records, 16, None, tmp_path / "cache")
    assert all(crops[row].any() for row in range(5))


SEEDS = range(3)


def _least_squares(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Solves for (a, b, x, y) of the rows a x - b y + x = u, b x + a y + y = v."""
    ones, zeros = np.ones(len(source)), np.zeros(len(source))
    x, y = source.T
    rows = np.concatenate([np.stack([x, -y, ones, zeros], 1), np.stack([y, x, zeros, ones], 1)])
    a, b, shift_x, shift_y = np.linalg.lstsq(rows, target.T.ravel(), rcond=None)[0]
    return np.array([[a, -b, shift_x], [b, a, shift_y]])


def _moved(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    turn, scale, shift = rng.uniform(-1, 1), rng.uniform(20, 90), rng.uniform(40, 90, 2)
    matrix = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return points @ matrix.T + shift


@pytest.mark.parametrize("seed", SEEDS)
def test_similarity_is_the_least_squares_solution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, target = rng.normal(size=(2, rng.integers(2, 9), 2))
    np.testing.assert_allclose(similarity(source, target), _least_squares(source, target), atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_every_pose_of_a_face_gives_the_same_places(seed: int, margin: float) -> None:
    rng = np.random.default_rng(seed)
    for points in (FACE_POINTS, BOX_CORNERS):
        anchor = _moved(points, rng)
        matrix = placement(anchor, 200, 200, 64, margin)
        expected = 64 * (margin + points) / (1 + 2 * margin) - 0.5
        np.testing.assert_allclose(anchor @ matrix[:, :2].T + matrix[:, 2], expected, atol=1e-6)


@pytest.mark.parametrize("scale", [0.7, 8.0])
def test_a_turned_face_is_cropped_upright_at_any_size(scale: float) -> None:
    """A dot on each landmark lands where the template has that landmark, also when the picture is shrunk first."""
    rng = np.random.default_rng(1)
    anchor = _moved(FACE_POINTS, rng) * scale + 20 * scale
    side = int(anchor.max() + 40 * scale)
    y, x = np.mgrid[:side, :side]
    width = 2.5 * scale
    picture = np.zeros((side, side, 3), np.uint8)
    for u, v in anchor:
        picture[(x - u) ** 2 + (y - v) ** 2 < width**2] = 255
    face = crop(picture, anchor, 64, 0.2)[:, :, 0].astype(float)
    rows, columns = np.mgrid[:64, :64]
    for u, v in 64 * (0.2 + FACE_POINTS) / 1.4 - 0.5:
        near = face * ((columns - u) ** 2 + (rows - v) ** 2 < 6**2)
        assert near.sum() > 0
        assert (near * columns).sum() / near.sum() == pytest.approx(u, abs=0.35)
        assert (near * rows).sum() / near.sum() == pytest.approx(v, abs=0.35)


def test_a_whole_picture_fits_and_its_border_goes_on() -> None:
    picture = np.zeros((40, 20, 3), np.uint8)
    picture[:, :10], picture[:, 10:] = (200, 0, 0), (0, 0, 200)
    face = crop(picture, None, 40, None)
    assert (face[:, :19] == (200, 0, 0)).all() and (face[:, 21:] == (0, 0, 200)).all()
    same = np.random.default_rng(0).integers(0, 255, (24, 24, 3)).astype(np.uint8)
    np.testing.assert_array_equal(crop(same, None, 24, None), same)


@pytest.mark.parametrize("points", [np.ones((5, 2)), np.full((4, 2), np.nan)], ids=["one place", "nan"])
def test_points_that_place_no_face_are_refused(points: np.ndarray) -> None:
    with pytest.raises(LDLError, match="do not place a face"):
        placement(points, 50, 50, 32, None)


pytestmark = pytest.mark.usefixtures("own_cache")


SQUARE = np.array([[10, 5], [30, 5], [30, 25], [10, 25]], float)


def _one_line(caught: pytest.ExceptionInfo[LDLError]) -> None:
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("anchor", "message"),
    [
        (SQUARE / 48, r"shares of its sides, not pixels\? multiply x by 40 and y by 48"),
        (FACE_POINTS, r"landmarks .* shares of its sides, not pixels"),
        (SQUARE + 100, "lies outside of it; points are x, y in pixels"),
        (SQUARE - 60, "lies outside of it"),
        (SQUARE[[1, 0, 3, 2]], "is mirrored or empty; its corners go clockwise"),
        (SQUARE[:, ::-1], "is mirrored or empty; its corners go clockwise, x before y"),
        (SQUARE[[2, 3, 0, 1]], "is upside down"),
        (FACE_POINTS[:, ::-1] * 20 + 10, "are no face; x before y"),
        (FACE_POINTS[[1, 0, 2, 4, 3]] * 20 + 10, "are no face; x before y"),
    ],
)
def test_points_that_are_no_pixels_of_a_face_are_refused(anchor: np.ndarray, message: str) -> None:
    with pytest.raises(LDLError, match=message) as caught:
        crop(np.zeros((48, 40, 3), np.uint8), anchor, 24, None)
    _one_line(caught)


def test_faces_that_are_turned_or_reach_out_of_the_picture_are_cropped() -> None:
    black = np.zeros((48, 40, 3), np.uint8)
    turn = np.array([[-1, 0.01], [-0.01, -1]])
    for anchor in (SQUARE - 12, SQUARE @ turn + (40, 30), FACE_POINTS * 20 @ turn + (35, 35), None):
        assert crop(black, anchor, 24, None).shape == (24, 24, 3)
