"""Faces that a detector finds, and the cache of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ldl.faces.detection import find_faces
from ldl.faces.detectors import Face


class OneFace:
    """Detects the same face in every image."""

    name, key = "one face", "1"

    def __call__(self, picture: np.ndarray) -> list[Face]:
        return [Face(np.array([16.0, 24.0, 48.0, 48.0]), 0.9)]


class Never(OneFace):
    """Has the same key, and must not be called."""

    def __call__(self, picture: np.ndarray) -> list[Face]:
        raise AssertionError("they are known")


def test_faces_are_looked_for_once(tmp_path: Path) -> None:
    Image.fromarray(np.full((48, 64, 3), 242, np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"?")
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    detected = find_faces(paths, OneFace(), tmp_path / "cache")
    assert (
        [len(faces) for faces in detected.faces] == [1, 0] and "b.png" in detected.failed[1] and detected.without == []
    )
    again = find_faces(paths, Never(), tmp_path / "cache")
    np.testing.assert_array_equal(again.faces[0][0].box, detected.faces[0][0].box)
    with pytest.raises(AssertionError):  # another picture is looked at
        (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes() + b" ")
        find_faces(paths, Never(), tmp_path / "cache")
