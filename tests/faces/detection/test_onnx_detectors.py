"""Detectors in ONNX files: made-up networks in the layouts of YuNet and UltraFace, which find what is white."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ldl.errors import LDLError
from ldl.faces.detection import find_faces
from ldl.faces.detectors import Face, OnnxDetector, distinct

onnx = pytest.importorskip("onnx", reason="makes the files")
pytest.importorskip("onnxruntime", reason="pip install 'ldl[faces]'")
SIDE, STRIDES = 64, (8, 16, 32)


def _save(path: Path, nodes: list, constants: dict[str, np.ndarray], outputs: list[str], sides: list) -> Path:
    """A network that takes one picture (1, 3, *sides); its outputs may have any shape."""
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes,
        "detector",
        [onnx.helper.make_tensor_value_info("input", kind, [1, 3, *sides])],
        [onnx.helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def yunet(path: Path, sides: list) -> Path:
    """Every cell that is blue all over is a face: from a cell to the left to two to the right, and two high."""
    node, nodes, outputs = onnx.helper.make_node, [], []
    constants = {
        "white": np.array(255, np.float32), "zero": np.array([0]), "one": np.array([1]), "channel": np.array([1]),
        "flat": np.array([1, -1, 1]), "four": np.array([[[0.5, 1.0, np.log(3), np.log(2)]]], np.float32),
        "ten": np.arange(10, dtype=np.float32).reshape(1, 1, 10),
    }  # fmt: skip
    nodes += [node("Slice", ["input", "zero", "one", "channel"], ["blue"]), node("Div", ["blue", "white"], ["light"])]
    for stride in STRIDES:
        each = f"_{stride}"
        pool = {"kernel_shape": [stride, stride], "strides": [stride, stride]}
        nodes += [
            node("AveragePool", ["light"], [f"map{each}"], **pool),
            node("Reshape", [f"map{each}", "flat"], [f"flat{each}"]),
            # Only the finest map may find something, so that every face is found once.
            node("Mul", [f"flat{each}", f"sure{each}"], [f"cls{each}"]),
            node("Identity", [f"cls{each}"], [f"obj{each}"]),
            node("Mul", [f"flat{each}", "nothing"], [f"none{each}"]),
            node("Add", [f"none{each}", "four"], [f"bbox{each}"]),
            node("Add", [f"none{each}", "ten"], [f"kps{each}"]),
        ]
        constants[f"sure{each}"] = np.array(float(stride == 8), np.float32)
        outputs += [f"{name}{each}" for name in ("cls", "obj", "bbox", "kps")]
    return _save(path, nodes, constants | {"nothing": np.array(0, np.float32)}, outputs, sides)


def ultraface(path: Path, sides: list) -> Path:
    """Of two boxes the second is as sure as the picture is bright."""
    node = onnx.helper.make_node
    boxes = np.array([[[0.1, 0.2, 0.3, 0.4], [0.25, 0.5, 0.75, 1.0]]], np.float32)
    constants = {"both": boxes, "low": np.zeros((1, 2, 2), np.float32), "where": np.array([[0, 1, 1]])}
    nodes = [
        node("ReduceMax", ["input"], ["bright"], keepdims=0),
        node("Reshape", ["bright", "single"], ["flat"]),
        node("ScatterND", ["low", "where", "flat"], ["scores"]),
        node("Identity", ["both"], ["boxes"]),
    ]
    return _save(path, nodes, constants | {"single": np.array([1])}, ["scores", "boxes"], sides)


def test_yunet_counts_from_its_cells(tmp_path: Path) -> None:
    detector = OnnxDetector(yunet(tmp_path / "a.onnx", [SIDE, SIDE]))
    picture = np.zeros((2 * SIDE, 2 * SIDE, 3), np.uint8)
    picture[32:48, 64:80, 2] = 255  # a cell of the picture at half its size: column 4, row 2
    (face,) = detector(picture)
    # Centre (4 + 0.5, 2 + 1) cells of 8 pixels, 3 wide and 2 high, of a picture twice as large.
    np.testing.assert_allclose(face.box, np.array([3, 2, 6, 4]) * 16, atol=1e-4)
    np.testing.assert_allclose(face.points, (np.arange(10).reshape(5, 2) + [4, 2]) * 16, atol=1e-4)
    assert face.confidence == pytest.approx(1)
    assert detector(picture[:, :, ::-1]) == []  # channels are fed from blue to red: only the third is looked at


def test_a_file_that_takes_any_size(tmp_path: Path) -> None:
    detector = OnnxDetector(yunet(tmp_path / "a.onnx", ["height", "width"]))
    picture = np.zeros((50, 100, 3), np.uint8)
    picture[8:16, 80:88] = 255
    (face,) = detector(picture)
    np.testing.assert_allclose(face.box, np.array([9, 1, 12, 3]) * 8, atol=1e-4)
    wide = np.zeros((320, 1280, 3), np.uint8)
    wide[16:32, 160:176] = 255
    (face,) = detector(wide)  # seen at half its size
    np.testing.assert_allclose(face.box, np.array([9, 1, 12, 3]) * 16, atol=1e-4)


@pytest.mark.parametrize(("height", "width"), [(48, 64), (480, 641)])
def test_ultraface_has_shares_of_what_it_sees(height: int, width: int, tmp_path: Path) -> None:
    detector = OnnxDetector(ultraface(tmp_path / "a.onnx", [48, 64]))
    scale = min(48 / height, 64 / width)
    (face,) = detector(np.full((height, width, 3), 127 + 115, np.uint8))
    np.testing.assert_allclose(face.box, np.array([16, 24, 48, 48]) / scale, rtol=1e-5)
    assert face.confidence == pytest.approx(115 / 128) and face.points is None
    assert detector(np.full((height, width, 3), 127 + 70, np.uint8)) == []


def test_a_face_is_found_once() -> None:
    boxes = np.array(
        [[0, 0, 10, 10.0], [1, 1, 11, 11], [0, 0, 10, 4], [50, 50, 60, 60], [0, 0, np.nan, 9], [5, 5, 4, 9]]
    )
    # The second overlaps with the surer first by 81 of 119, the third by 40 of 100; the fourth is not sure enough.
    assert distinct(np.array(boxes, float), np.array([0.9, 0.8, 0.7, 0.3, 1, 1]), 0.4).tolist() == [0]
    assert distinct(np.array(boxes, float), np.array([0.5, 0.8, 0.7, 0.4, 1, 1]), 0.4).tolist() == [1, 2, 3]


def test_other_files_are_refused(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Identity", ["input"], ["heat"])
    other = _save(tmp_path / "other.onnx", [node], {}, ["heat"], [8, 8])
    with pytest.raises(LDLError, match=r"no detector of a known layout: it has outputs 'heat'"):
        OnnxDetector(other)
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(LDLError, match="text.onnx cannot be read as ONNX"):
        OnnxDetector(tmp_path / "text.onnx")


def test_faces_are_looked_for_once(tmp_path: Path) -> None:
    Image.fromarray(np.full((48, 64, 3), 242, np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"?")
    detector, paths = OnnxDetector(ultraface(tmp_path / "a.onnx", [48, 64])), [tmp_path / "a.png", tmp_path / "b.png"]
    found = find_faces(paths, detector, tmp_path / "cache")
    assert [len(faces) for faces in found.faces] == [1, 0] and "b.png" in found.failed[1] and found.without == []

    class Never(OnnxDetector):
        def __call__(self, picture: np.ndarray) -> list[Face]:
            raise AssertionError("they are known")

    again = find_faces(paths, Never(tmp_path / "a.onnx"), tmp_path / "cache")
    np.testing.assert_array_equal(again.faces[0][0].box, found.faces[0][0].box)
    with pytest.raises(AssertionError):  # another picture is looked at
        (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes() + b" ")
        find_faces(paths, Never(tmp_path / "a.onnx"), tmp_path / "cache")
