"""Faces in the images that a model predicts: boxes of a file by the names of images."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.faces.locator import FaceLocator, shows_faces


@pytest.mark.parametrize(("preprocessing", "faces"), [(None, True), ({}, True), ({"faces": False}, False)])
def test_checkpoints_that_do_not_state_it_show_faces(preprocessing: dict[str, bool] | None, faces: bool) -> None:
    assert shows_faces(preprocessing) is faces


def test_boxes_are_found_by_the_names_of_images(tmp_path: Path) -> None:
    corners = [1, 2, 5, 2, 5, 8, 1, 8]
    (tmp_path / "boxes.json").write_text(json.dumps([{"img_path": "set/A.jpg", "aligned_bbox": corners}]))
    box, missing = FaceLocator().read_places(tmp_path / "boxes.json", ["x/a.jpg", "b.jpg"])
    assert missing is None
    np.testing.assert_array_equal(box, np.reshape(corners, (4, 2)))
    with pytest.raises(LDLError, match="one box for several images named a; give them other names"):
        FaceLocator().read_places(tmp_path / "boxes.json", ["x/a.jpg", "y/a.jpg"])
