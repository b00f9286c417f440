"""The cache of aligned crops: what its key sees, what it keeps, and how it fails."""

from __future__ import annotations

import os
import pickle
import runpy
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from ldl.data import cache
from ldl.data.faces import crops as module
from ldl.data.faces.align import crop
from ldl.data.faces.crops import Crops, cached_crops
from ldl.data.faces.records import FaceRecords
from ldl.data.pictures import read_picture
from ldl.errors import LDLError


@pytest.fixture
def records(tmp_path: Path) -> FaceRecords:
    rng = np.random.default_rng(0)
    for number in range(5):
        pixels = rng.integers(0, 256, (30, 20 + number, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    anchors = [20 * np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]) + number for number in range(5)]
    return FaceRecords(tmp_path, [f"{number}.png" for number in range(5)], np.arange(5.0), anchors=anchors)


def test_crops_are_those_of_the_pictures(records: FaceRecords, tmp_path: Path) -> None:
    crops = cached_crops(records, 16, 0.1, tmp_path / "cache")
    assert crops.failed == {}
    for row, path in enumerate(records.paths()):
        np.testing.assert_array_equal(crops[row], crop(read_picture(path), records.anchor(row), 16, 0.1))


def test_the_second_time_no_picture_is_read(
    records: FaceRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = cached_crops(records, 16, None, tmp_path / "cache")
    assert "cropping 5 pictures to 16x16" in capsys.readouterr().out

    def refuse(path: Path) -> np.ndarray:
        raise AssertionError(path)

    monkeypatch.setattr(module, "read_picture", refuse)
    again = cached_crops(records, 16, None, tmp_path / "cache")
    assert capsys.readouterr().out == ""
    assert again.key == first.key
    np.testing.assert_array_equal(again[3], first[3])


@pytest.mark.parametrize("what", ["size", "margin", "anchor", "picture", "list", "time"])
def test_the_key_sees_all_that_makes_a_crop(what: str, records: FaceRecords, tmp_path: Path) -> None:
    size, margin = 16, 0.1
    before = cached_crops(records, size, margin, tmp_path / "cache").key
    if what == "size":
        size = 17
    elif what == "margin":
        margin = 0.10001
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


def test_what_does_not_make_a_crop_leaves_the_key(records: FaceRecords, tmp_path: Path) -> None:
    before = cached_crops(records, 16, None, tmp_path / "cache").key
    records = replace(records, values=records.values + 1, persons=np.zeros(5))
    assert cached_crops(records, 16, None, tmp_path / "cache").key == before


def test_failures_are_kept_with_their_reasons(records: FaceRecords, tmp_path: Path) -> None:
    records.paths()[1].write_bytes(b"broken")
    records.paths()[3].unlink()
    for _ in range(2):
        crops = cached_crops(records, 16, None, tmp_path / "cache")
        assert list(crops.failed) == [1, 3]
        assert "1.png cannot be read" in crops.failed[1] and "no picture at" in crops.failed[3]
        assert crops[4].any()


def test_pictures_that_an_earlier_run_could_not_read_are_tried_again(records: FaceRecords, tmp_path: Path) -> None:
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


def test_what_a_process_launches_is_of_the_same_run(tmp_path: Path) -> None:
    (tmp_path / "failures.json").touch()
    launched = runpy.run_path(cache.__file__)
    assert not launched["of_earlier_run"](tmp_path / "failures.json")


def test_room_is_taken_before_pictures_are_cropped(records: FaceRecords, tmp_path: Path) -> None:
    for path in records.paths()[1:]:
        path.unlink()
    status = cached_crops(records, 256, None, tmp_path / "cache").file.stat()
    # Also that of pictures which are not there: a hole meets a full disk where it is mapped, which ends the process.
    assert 512 * status.st_blocks >= status.st_size > 5 * 256 * 256 * 3


def test_threads_of_opencv_are_as_before_where_a_crop_cannot_be_made(
    records: FaceRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "read_picture", lambda path: None)
    before = cv2.getNumThreads()
    cv2.setNumThreads(3)
    try:
        with pytest.raises(AttributeError):
            cached_crops(records, 16, None, tmp_path / "cache")
        assert cv2.getNumThreads() == 3
    finally:
        cv2.setNumThreads(before)


def test_a_loader_process_opens_the_file_itself(records: FaceRecords, tmp_path: Path) -> None:
    crops = cached_crops(records, 16, None, tmp_path / "cache")
    expected = crops[2]
    sent = pickle.dumps(crops)
    assert len(sent) < 500
    np.testing.assert_array_equal(pickle.loads(sent)[2], expected)


def test_a_cache_that_cannot_be_written_is_named(records: FaceRecords, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, no folder")
    with pytest.raises(LDLError, match="the cache .* cannot be written: .*; set data.cache_dir or LDL_CACHE"):
        cached_crops(records, 16, None, tmp_path / "cache")


def test_an_interrupted_run_leaves_no_half_cache(
    records: FaceRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def interrupt(*arguments: object) -> np.ndarray:
            raise KeyboardInterrupt

        patched.setattr(module, "crop", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cached_crops(records, 16, None, tmp_path / "cache")
        assert [path.suffix for path in (tmp_path / "cache" / "crops").iterdir()] in ([], [".lock"])
    crops = cached_crops(records, 16, None, tmp_path / "cache")
    assert all(crops[row].any() for row in range(5))
