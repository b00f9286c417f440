"""The detectors of faces by name, and images in which there is none."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.faces.detectors import find_detector

pytest.importorskip("facenet_pytorch", reason="pip install 'ldl[faces]'")


@pytest.mark.parametrize("shape", [(1, 1), (19, 400), (20, 20), (64, 64), (21, 900)])
def test_pictures_of_any_size_may_have_no_face(shape: tuple[int, int]) -> None:
    assert find_detector("mtcnn")(np.full((*shape, 3), 128, np.uint8)) == []


@pytest.mark.parametrize("name", ["retina", "yunet.onnx"])
def test_unknown_detectors_are_refused(name: str) -> None:
    with pytest.raises(LDLError, match=f"^no detector '{name}'; give mtcnn, or in Python a detector of your own$"):
        find_detector(name)
