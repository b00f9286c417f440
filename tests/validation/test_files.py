"""Files that a user gives: what is no file is not opened, text is UTF-8, and the line names file, line and byte."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ldl.backbones.timm import Timm
from ldl.bags.bags import read_bags
from ldl.checkpoint import read_checkpoint
from ldl.data.pictures import read_picture
from ldl.data.synthetic import read_mnist
from ldl.data.tables.reading import read_table, read_values
from ldl.edges.benchmark.ground_truth import read_edge_map, read_ground_truth
from ldl.edges.pixel_features import PixelFeatures
from ldl.errors import LDLError
from ldl.faces import FaceFolder
from ldl.faces.ages import read_points
from ldl.faces.lists import read_boxes
from ldl.faces.morph_lists import read_list
from ldl.faces.pointing04 import read_pose_box
from ldl.tables.csv_table import read_csv
from ldl.validation.files import EXAMPLES, check_file, find_path, read_text

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32\nsize 12345\n"


def weights_of(path: Path) -> Any:
    return Timm("test_resnet", weights=str(path)).build((3, 32, 32))


def found_weights_of(path: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDL_WEIGHTS", str(path.parent))
        return PixelFeatures("test_resnet", True).build((3, 32, 32))


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "table": ("a.csv", read_table),
    "matrix": ("a.mat", read_table),
    "archive": ("a.npz", read_values),
    "bags": ("a.csv", read_bags),
    "fields": ("a.csv", read_csv),
    "faces": ("a.csv", lambda path: FaceFolder(path=str(path)).read()),
    "list": ("a.txt", read_list),
    "boxes": ("a.json", read_boxes),
    "landmarks": ("a.pts", read_points),
    "box": ("a.txt", lambda path: read_pose_box(path.with_suffix(".jpg"))),
    "picture": ("a.png", read_picture),
    "edge map": ("a.png", read_edge_map),
    "ground truth": ("a.mat", read_ground_truth),
    "parquet": ("a.parquet", read_table),
    "parts": ("a.parquet", lambda path: read_table(path.parent)),
    "matrices": ("features.npy", lambda path: read_table(path.parent, target_key="features")),
    "checkpoint": ("a.ckpt", read_checkpoint),
    "weights": ("a.pth", weights_of),
    "backbone of a checkpoint": ("a.ckpt", weights_of),
    "weights found": ("test_resnet.safetensors", found_weights_of),
    "digits": ("mnist.npz", lambda path: read_mnist(path.parent)),
}


def said(read: Callable[[Path], Any], path: Path) -> str:
    with pytest.raises(LDLError) as caught:
        read(path)
    assert len(str(caught.value).splitlines()) == 1 and len(str(caught.value)) < 500
    return str(caught.value)


@pytest.mark.parametrize("reader", READERS)
def test_no_reader_opens_what_is_no_file(reader: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    if reader not in ("parts", "weights found"):  # where there is no such file, none is looked for
        assert name in said(read, tmp_path / name)
    os.mkfifo(tmp_path / name)
    assert name in said(read, tmp_path / name)  # opening it would wait for ever
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    assert name in said(read, tmp_path / name)


@pytest.mark.parametrize("reader", ["table", "bags", "fields", "faces", "list", "boxes", "landmarks"])
@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("a,b\nö,1\n".encode("latin-1"), "no text in UTF-8: byte 4 is 0xf6, in line 2"),
        ("a,b\n".encode("utf-16"), "no text in UTF-8: byte 0 is 0xff, in line 1"),
        ("\ufeffa\n".encode() + b"\xff", "no text in UTF-8: byte 5 is 0xff, in line 2"),
        (b"a,b\n1,\0\n", "no text: byte 6 is 0x00, in line 2"),
        (b"\x89PNG\r\n\x1a\n\0", "no text in UTF-8: byte 0 is 0x89, in line 1"),
    ],
)
def test_every_text_is_utf_8(reader: str, content: bytes, where: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    (tmp_path / name).write_bytes(content)
    assert f"{tmp_path / name} is {where}; save it as UTF-8" in said(read, tmp_path / name)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_names_a_pointer_of_git_lfs(reader: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    (tmp_path / name).write_bytes(LFS)
    assert f"{name} is a pointer of Git LFS and not the " in (message := said(read, tmp_path / name))
    assert message.endswith("itself; fetch it with: git lfs pull")


def test_kinds_and_names(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffä\n".encode())
    assert read_text(tmp_path / "a.txt") == "ä\n" and check_file(tmp_path / "a.txt") == tmp_path / "a.txt"
    assert said(check_file, tmp_path) == f"no file at {tmp_path}, which is a folder; correct the path"
    assert said(check_file, Path("/dev/zero")) == "no file at /dev/zero, which is no regular file; correct the path"
    assert said(check_file, tmp_path / "none") == f"no file at {tmp_path / 'none'}; correct the path"
    assert said(check_file, tmp_path / "a.txt" / "b") == f"no file at {tmp_path / 'a.txt' / 'b'}; correct the path"
    assert "File name too long" in said(check_file, tmp_path / ("a" * 300))
    assert "embedded null byte" in said(check_file, Path("a\0b"))
    (tmp_path / "round").symlink_to("round")
    assert "symbolic links" in said(check_file, tmp_path / "round")


def test_examples_are_found_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_path("nodules.csv", "data") == EXAMPLES / "nodules.csv"
    assert find_path("examples.csv", "data") == Path("data/examples.csv")
    assert find_path(".", "data") == Path(".") and find_path("", "data") == Path("data")
    for place in (Path("data/nodules.csv"), Path("nodules.csv")):
        place.parent.mkdir(exist_ok=True)
        place.touch()
        assert find_path("nodules.csv", "data") == place


def test_examples_are_small_and_attributed() -> None:
    files = {path.name: path for path in EXAMPLES.iterdir()}
    assert files.keys() == {"README.md", "nodules.csv", "readings.csv"}
    assert sum(path.stat().st_size for path in files.values()) < 400_000
    text = files["README.md"].read_text()
    assert all(name in text for name in ("CC BY 3.0", "by/3.0/", "Armato", "10.7937/K9/TCIA.2015.LO9QL9SX", "Changes"))
