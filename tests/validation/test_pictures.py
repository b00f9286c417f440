"""Damaged, dangerous or too large images are one line, and start nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes.paths import ROOT
from PIL import EpsImagePlugin, ExifTags, Image, ImageFile, features

from ldl.data.pictures import one_side, read_picture, upright
from ldl.edges.benchmark.ground_truth import read_edge_map
from ldl.errors import LDLError

RGB = np.random.default_rng(0).integers(0, 256, (6, 9, 3)).astype(np.uint8)


@pytest.mark.parametrize("content", [b"", b"no picture at all", b"\xff\xd8\xff\xe0" + bytes(40)])
def test_damaged_files_are_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.jpg"
    path.write_bytes(content)
    with pytest.raises(LDLError, match="broken.jpg cannot be read as an image: ") as caught:
        read_picture(path)
    assert "\n" not in str(caught.value)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    Image.fromarray(RGB.repeat(20, 0).repeat(20, 1)).save(tmp_path / "cut.jpg")
    whole = (tmp_path / "cut.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LDLError, match="cut.jpg cannot be read as an image: .*truncated"):
        read_picture(tmp_path / "cut.jpg")


LARGE = RGB.repeat(20, 0).repeat(20, 1) // 2 + np.arange(180, dtype=np.uint8)[:, None]


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 6\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.mark.parametrize("place", [0.1, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("exif", [False, True])
def test_a_changed_byte_of_a_png_is_found(place: float, exif: bool, tmp_path: Path) -> None:
    turned = Image.Exif()
    turned[ExifTags.Base.Orientation] = 6
    Image.fromarray(LARGE).save(tmp_path / "a.png", **({"exif": turned} if exif else {}))
    content = bytearray((tmp_path / "a.png").read_bytes())
    byte = int(place * len(content))
    content[byte : byte + 4] = bytes(255 - number for number in content[byte : byte + 4])
    (tmp_path / "a.png").write_bytes(content)
    readers: list[Callable[[Path], object]] = [read_picture, read_edge_map]
    if place > 0.2:  # before, Pillow reads no more than a header
        readers.append(lambda path: upright(Image.open(path)))
    for read in readers:
        with pytest.raises(LDLError) as caught:
            read(tmp_path / "a.png")
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".bmp", ".gif", ".tif", ".ppm", ".avif"])
@pytest.mark.parametrize("by_user", [False, True])
def test_a_cut_file_of_any_format_is_named(
    suffix: str, by_user: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another library has told Pillow to fill up what is missing with grey."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", by_user)
    if suffix == ".avif" and not features.check("avif"):
        pytest.skip("this Pillow has no AVIF")
    path = tmp_path / f"cut{suffix}"
    Image.fromarray(LARGE).save(path)
    assert read_picture(path).shape == LARGE.shape
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(LDLError, match=f"cut{suffix} cannot be read as an image: "):
        read_picture(path)
    assert by_user == ImageFile.LOAD_TRUNCATED_IMAGES


@pytest.mark.parametrize("name", ["a.png", "a.eps"])
def test_no_image_starts_a_program(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow reads EPS with Ghostscript, also under another name."""
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *arguments: pytest.fail("it ran"))
    (tmp_path / name).write_bytes(EPS)
    with pytest.raises(LDLError, match=f"{name} cannot be read as an image: unknown or damaged format; JPEG, PNG, "):
        read_picture(tmp_path / name)
    with pytest.raises(LDLError, match="no image can be read"):
        one_side([tmp_path / name])


def test_an_image_of_too_many_pixels_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "scan.png"
    Image.fromarray(RGB).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", RGB[:, :, 0].size // 2 - 1)
    with pytest.raises(LDLError, match=r"scan\.png is too large: Image size \(54 pixels\).*; make it smaller$"):
        read_picture(path)


def test_images_are_opened_in_one_place() -> None:
    found = {
        file.name
        for file in sorted((ROOT / "ldl").rglob("*.py"))
        if re.search(r"Image\.open\(|imread|imdecode|read_image\(|decode_image", file.read_text())
    }
    assert found == {"pictures.py"}
    assert "Image.open(" not in (ROOT / "ldl" / "data" / "pictures.py").read_text()


def test_a_size_is_not_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    Image.fromarray(RGB).save(tmp_path / "b.png")
    assert one_side([tmp_path / "a.png", tmp_path / "b.png"]) == 9
