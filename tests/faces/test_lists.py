"""Lists of faces: names as other systems spell them."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from fakes.face_releases import picture, write_lines

from ldl.errors import LDLError
from ldl.faces import FaceFolder
from ldl.faces.ages import FaceAges
from ldl.faces.lists import box_name

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize(("listed", "stored"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_list_may_spell_names_otherwise_than_the_disk(listed: str, stored: str, tmp_path: Path) -> None:
    picture(tmp_path / unicodedata.normalize(stored, "Zoë/é.jpg"), 30)
    lines = ["path,age", unicodedata.normalize(listed, "Zoë/é.jpg") + ",30"]
    records = FaceFolder(path=str(write_lines(tmp_path / "faces.csv", lines)), alignment="none").read()
    assert records.paths()[0].is_file()
    assert box_name(records.files[0]) == box_name(unicodedata.normalize(listed, "é.jpg"))


def test_a_list_of_faces_may_write_folders_as_windows_does(tmp_path: Path) -> None:
    picture(tmp_path / "a/b/1.jpg", 30)
    lines = ["path,age", "a\\b\\1.jpg,30"]
    assert FaceFolder(path=str(write_lines(tmp_path / "faces.csv", lines)), alignment="none").read().files == [
        "a/b/1.jpg"
    ]


def _open(kind: type[FaceAges], root: Path, **options: Any) -> FaceAges:
    data = kind(root=str(root), **{"crop_size": 24, "val_fraction": 0, **options})
    data.setup()
    return data


def test_a_face_that_is_listed_again_as_windows_writes_is_refused(tmp_path: Path) -> None:
    picture(tmp_path / "f/a.png", 20)
    write_lines(tmp_path / "faces.csv", ["path,age", "f/a.png,3", r"f\a.png,4"])
    with pytest.raises(LDLError, match=r"line 3 lists f\\a\.png again, after line 2; keep one"):
        _open(FaceFolder, tmp_path, path="faces.csv")
