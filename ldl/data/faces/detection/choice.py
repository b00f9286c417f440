"""A detector by its name."""

from __future__ import annotations

from pathlib import Path

from ldl.data.faces.detection.face import Detector
from ldl.errors import LDLError


def find_detector(given: str | Path) -> Detector:
    """``mtcnn``, or the path of an ONNX file. Raises LDLError for another name, or what cannot be loaded."""
    if str(given) == "mtcnn":
        from ldl.data.faces.detection.mtcnn import MTCNN

        return MTCNN()
    if str(given).lower().endswith(".onnx"):
        from ldl.data.faces.detection.onnx_file import OnnxDetector

        return OnnxDetector(Path(given))
    raise LDLError(f"no detector {str(given)!r}; give mtcnn, or the path of an ONNX file that ends in .onnx")
