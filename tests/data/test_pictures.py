"""Pictures of every kind are read as RGB, or refused in one line."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from ldl.data.pictures import list_pictures, read_picture
from ldl.errors import LDLError

RGB = np.random.default_rng(0).integers(0, 256, (6, 9, 3)).astype(np.uint8)


GREY = RGB[:, :, 0]


def _three(grey: np.ndarray) -> np.ndarray:
    return np.repeat(grey[:, :, None], 3, axis=2)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp"])
def test_colour(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture{suffix}"
    Image.fromarray(RGB).save(path, lossless=True)
    np.testing.assert_array_equal(read_picture(path), RGB)


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "I;16", "I", "CMYK"])
def test_other_modes(mode: str, tmp_path: Path) -> None:
    path, expected = tmp_path / ("picture.tif" if mode in ("CMYK", "I") else "picture.png"), _three(GREY)
    if mode == "I;16":
        Image.fromarray(GREY.astype(np.uint16) * 256 + 13).save(path)
    elif mode == "I":
        Image.fromarray(GREY.astype(np.int32) * 256 + 200).save(path)
    elif mode == "CMYK":
        Image.fromarray(RGB).convert("CMYK").save(path)
        expected = RGB
    elif mode == "1":
        expected = _three(np.where(GREY > 127, 255, 0).astype(np.uint8))
        Image.fromarray(GREY > 127).save(path)
    else:
        Image.fromarray(GREY).convert(mode).save(path)
    np.testing.assert_array_equal(read_picture(path), expected)


@pytest.mark.parametrize(("kind", "number"), [(np.float32, 1), (np.int32, -1), (np.int32, 70_000)])
def test_numbers_that_no_picture_has_are_refused(kind: type, number: int, tmp_path: Path) -> None:
    Image.fromarray(np.full((3, 4), number, kind)).save(tmp_path / "a.tif")
    with pytest.raises(LDLError, match=r"a\.tif cannot be read as an image: its numbers are .*; save it with 8 or 16"):
        read_picture(tmp_path / "a.tif")


def test_what_is_transparent_is_white(tmp_path: Path) -> None:
    alpha = np.where(np.arange(9) < 4, 0, 255) * np.ones((6, 1))
    Image.fromarray(np.dstack([RGB, alpha.astype(np.uint8)])).save(tmp_path / "a.png")
    picture = read_picture(tmp_path / "a.png")
    assert (picture[:, :4] == 255).all()
    np.testing.assert_array_equal(picture[:, 4:], RGB[:, 4:])


def _odd_exif(kind: str) -> bytes:
    """An EXIF block that says 6 and has an entry of another type than its tag, or ends in the middle."""
    rows = [struct.pack("<HHII", 0x0112, 3, 1, 6)]
    if kind == "unknown type":
        rows.append(struct.pack("<HHII", 0x011A, 99, 1, 0))
    if kind == "text for a ratio":
        rows.append(struct.pack("<HHI4s", 0x011A, 2, 4, b"abc\0"))
    if kind == "ratio over nothing":
        rows.append(struct.pack("<HHII", 0x011A, 5, 1, 38))
    if kind == "maker note":
        rows.append(struct.pack("<HHI4s", 0x8769, 4, 1, b"\xff\xff\0\0"))
    body = b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(rows)) + b"".join(rows) + bytes(12)
    return b"Exif\0\0" + (body[:20] if kind == "cut" else body)


@pytest.mark.parametrize(
    "kind", ["plain", "unknown type", "text for a ratio", "ratio over nothing", "maker note", "cut"]
)
def test_an_odd_entry_of_exif_ends_nothing(kind: str, tmp_path: Path) -> None:
    large = RGB.repeat(8, 0).repeat(8, 1)
    Image.fromarray(large).save(tmp_path / "a.jpg", quality=100, exif=_odd_exif(kind))
    turned = np.rot90(large, -1) if kind != "cut" else large
    assert read_picture(tmp_path / "a.jpg").shape == turned.shape


LARGE = RGB.repeat(20, 0).repeat(20, 1) // 2 + np.arange(180, dtype=np.uint8)[:, None]


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".tif"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_upright(suffix: str, orientation: int, tmp_path: Path) -> None:
    """Pillow turns some formats while it decodes them, and others not."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    options = {".jpg": {"quality": 100, "subsampling": 0}, ".webp": {"lossless": True}}.get(suffix, {})
    Image.fromarray(LARGE).save(tmp_path / f"a{suffix}", exif=exif, **options)
    turns = {2: "hflip", 3: "180", 4: "vflip", 5: "transpose", 6: "270", 7: "transverse", 8: "90"}
    expected = {
        "hflip": LARGE[:, ::-1], "180": LARGE[::-1, ::-1], "vflip": LARGE[::-1], "transpose": LARGE.swapaxes(0, 1),
        "270": np.rot90(LARGE, -1), "transverse": np.rot90(LARGE.swapaxes(0, 1), 2), "90": np.rot90(LARGE),
    }.get(turns.get(orientation, ""), LARGE)  # fmt: skip
    found = read_picture(tmp_path / f"a{suffix}")
    assert found.shape == expected.shape and np.abs(found.astype(int) - expected).mean() < 3


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="no image at .*gone.png"):
        read_picture(tmp_path / "gone.png")
    with pytest.raises(LDLError, match="no folder at .*gone"):
        list_pictures(tmp_path / "gone")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(LDLError, match="holds no images, but by ending 1 .txt; .jpg"):
        list_pictures(tmp_path)


def test_pictures_are_found_at_any_depth_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = (".thumbs/one.jpg", "__MACOSX/._one.jpg", "a/.deep/one.png", ".DS_Store")
    for name in ("b/two.PNG", "a/deep/one.jpeg", "zero.TIFF", "a/notes.txt", "a/b.HEIC", "c.heic", "d.pts", *hidden):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [path.relative_to(tmp_path).as_posix() for path in list_pictures(tmp_path, beside=(".pts",))]
    assert "by ending: 2 .heic, 1 .txt; 3 images are read" in capsys.readouterr().out
    assert found == ["a/deep/one.jpeg", "b/two.PNG", "zero.TIFF"]
