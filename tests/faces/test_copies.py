"""The same image twice: found by its bytes, kept in one part of a split, and counted where it is in two."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.edge_images import bsds
from fakes.face_releases import fgnet, morph_release, picture, utkface, write_lines

from ldl.data.pictures import same_bytes, units
from ldl.edges import BSDS500
from ldl.errors import LDLError
from ldl.faces import FGNET, FaceFolder, Morph, UTKFace
from ldl.protocols import Fold, keep_together, leak

pytestmark = pytest.mark.usefixtures("own_cache")
KAGGLE = ("UTKFace", "utkface_aligned_cropped/UTKFace", "utkface_aligned_cropped/crop_part1")


def _kaggle(root: Path) -> Path:
    utkface(root)
    for folder in KAGGLE[1:]:
        shutil.copytree(root / "UTKFace", root / "UTKFace" / folder if folder == "UTKFace" else root / folder)
    return root


def _folder(root: Path) -> Path:
    """Twenty pictures of four persons, of which the last five are copies of the first, of another person each."""
    lines = ["path,age,person,part"]
    for number in range(20):
        name = f"{number}.jpg"
        picture(root / name, 3 * number, number)
        if number >= 15:
            shutil.copy(root / f"{number - 15}.jpg", root / name)
        lines.append(f"{name},{3 * number},{number // 5},{'test' if number % 4 == 0 else 'train'}")
    return write_lines(root / "faces.csv", lines)


def _folds(data: Any) -> list[float]:
    data.setup()
    shares = []
    for fold in range(data.num_folds):
        data.select_fold(fold)
        shares.append(data.copied)
    return shares


@pytest.mark.parametrize("protocol", ["stratified"])
def test_three_copies_of_a_folder_stay_on_one_side(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"path": str(_kaggle(tmp_path)), "crop_size": 8, "val_fraction": 0.2, "protocol": protocol}
    data = UTKFace(**options)
    assert max(_folds(data)) == 0 and data.leaky is None and data.copies is not None
    assert leak(Fold(data.split.train, data.split.test[:0], data.split.val), data.copies) == 0
    assert data.size == 120 and len(data.split.train) + len(data.split.val) + len(data.split.test) == 120
    output = capsys.readouterr().out
    assert "120 of 120 images are there more than once, byte for byte, in 40 groups, such as UTKFace/" in output
    split = UTKFace(**options, split_copies=True)
    assert min(_folds(split)) > 0.5 and split.leaky is True


@pytest.mark.parametrize(
    ("protocol", "kept"),
    [
        ("stratified", True),
        ("subject_exclusive", True),
        ("holdout", True),
        ("parts", False),
        ("leave_one_person_out", 0),
    ],
)
def test_published_protocols_stay_and_are_marked(protocol: str, kept: bool, tmp_path: Path) -> None:
    data = FaceFolder(
        path=str(_folder(tmp_path)), alignment="none", crop_size=24, protocol=protocol, folds=2, val_fraction=0
    )
    shares = _folds(data)
    assert (max(shares) == 0) is bool(kept)
    assert data.leaky is (protocol not in ("stratified", "subject_exclusive"))
    if protocol in ("stratified", "subject_exclusive"):
        assert data.leak == 0, "a person whose picture is a copy of another's goes with them"


def _spoil(root: Path, first: str, second: str) -> None:
    files = sorted(path for path in root.rglob("*") if path.suffix.lower() == ".jpg")
    one, other = (next(path for path in files if name in path.as_posix()) for name in (first, second))
    shutil.copy(one, other)


@pytest.mark.parametrize(
    ("make", "kind", "pair", "options"),
    [
        (fgnet, FGNET, ("001A", "002A"), {}),
        (morph_release, Morph, ("009055_0", "009072_0"), {}),
        (lambda root: bsds(root / "BSDS500" / "data"), BSDS500, ("train/1001", "val/1005"), {"crop": 32}),
    ],
)
def test_every_set_of_images_counts_them(
    make: Any, kind: Any, pair: tuple[str, str], options: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path)
    _spoil(tmp_path, *pair)
    data = kind(root=str(tmp_path), **options)
    data.setup()
    assert "2 of" in (output := capsys.readouterr().out) and "more than once, byte for byte, in 1 groups" in output
    assert data.copied is not None
    if kind is not Morph:  # its default keeps both persons in one part
        assert data.leaky is True and data.copied > 0


def test_rows_of_one_file_are_no_copies_and_those_of_two_files_are(tmp_path: Path) -> None:
    for name, text in (("a", "xx"), ("b", "yy"), ("c", "xx"), ("d", "x")):
        (tmp_path / name).write_text(text)
    paths = [tmp_path / name for name in ("b", "b", "a", "d", "c", "a", "gone", "gone")]
    assert same_bytes(paths).tolist() == [0, 1, 2, 3, 2, 2, 6, 7]


def test_copies_join_groups() -> None:
    joined = units(np.array([0, 1, 0, 3, 4]), np.array(["a", "a", "b", "c", "c"]))
    assert len(set(joined[:3])) == 1 and joined[3] == joined[4] != joined[0]


def test_a_split_of_copies_alone_is_refused() -> None:
    fold = Fold(np.array([0, 1]), np.array([], int), np.array([2, 3]))
    with pytest.raises(LDLError, match="4 instances have only 2 different inputs"):
        keep_together(fold, np.array([0, 1, 0, 1]))
    kept = keep_together(fold, np.array([0, 1, 0, 3]))
    assert (kept.train.tolist(), kept.test.tolist()) == ([0, 1, 2], [3])
