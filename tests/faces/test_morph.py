"""MORPH as it is released and as Kaggle has it: every protocol, whole runs, and incomplete, wrong or foreign trees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.face_releases import (
    MORPH_CSV,
    MORPH_SPLITS,
    morph_faces,
    morph_folders,
    morph_lists,
    morph_release,
    open_morph,
    picture,
)

from ldl.data.pictures import read_picture
from ldl.data.sampler import Draw
from ldl.errors import LDLError
from ldl.faces.morph_lists import stem

Row = dict[str, str]
FOLDS = {"random_10fold": 10, "s1_s2_s3": 2, "morph_sub": 6, "coral_list": 1}

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The fake images in both layouts, as data folders, with the lists below each."""
    folder = tmp_path_factory.mktemp("data")
    roots = {"release": morph_release(folder / "release"), "folders": morph_folders(folder / "folders")}
    for root in roots.values():
        morph_lists(root)
    return roots


@pytest.mark.parametrize(("protocol", "split_list"), MORPH_SPLITS)
def test_every_protocol_in_both_layouts(protocol: str, split_list: str | None, roots: dict[str, Path]) -> None:
    data, other = (open_morph(root, protocol, split_list) for root in roots.values())
    assert data.num_folds == FOLDS.get(protocol, 5)
    leaks = []
    for fold in range(data.num_folds):
        names = []
        for each in (data, other):
            each.select_fold(fold)
            names.append([[stem(each.records.files[row]) for row in rows] for rows in vars(each.split).values()])
        assert names[0] == names[1]
        parts = [data.split.train, data.split.val, data.split.test]
        assert all(len(rows) for rows in parts)
        assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts)) <= data.size == 72
        assert not np.isin(data.groups[data.split.val], data.groups[data.split.train]).any()
        leaks.append(data.leak)
    assert data.leaky == (protocol != "subject_exclusive") == (max(leaks) > 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"protocol": "subject_exclusiv"},
            "Morph.protocol 'subject_exclusiv' must be one of .*; did you mean 'subject_exclusive'",
        ),
        (
            {"split_list": "SE"},
            "protocol subject_exclusive follows no list: leave data.split_list out, or choose one of",
        ),
        ({"protocol": "coral_list", "split_list": "sub.txt"}, "must be the folder of the lists"),
        ({"protocol": "s1_s2_s3", "fold": 2}, r"fold 2 must be in 0..1, the folds of s1_s2_s3"),
        ({"alignment": "box"}, "name a JSON file of them in data.boxes"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str, roots: dict[str, Path]) -> None:
    with pytest.raises(LDLError, match=message) as error:
        open_morph(roots["release"], **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("protocol", ["caucasian", "s1_s2_s3", "morph_sub"])
def test_folders_without_races_need_a_list(protocol: str, tmp_path: Path) -> None:
    morph_lists(morph_folders(tmp_path, races=False))
    with pytest.raises(LDLError, match="no file lists the races"):
        open_morph(tmp_path, protocol)
    folder = next(folder for name, folder in MORPH_SPLITS if name == protocol and folder)
    assert len(open_morph(tmp_path, protocol, folder).split.test)


def _set(row: int, **values: str) -> Callable[[list[Row]], None]:
    return lambda rows: rows[row].update(values)


def _drop(column: str) -> Callable[[list[Row]], None]:
    def drop(rows: list[Row]) -> None:
        for row in rows:
            del row[column]

    return drop


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_drop("race"), "morph_2008_nonCommercial.csv has no column 'race'; its columns are id_num, picture_num, dob"),
        (_set(3, age="old"), "line 5, column 'age' is 'old', not a finite number"),
        (_set(3, age="21"), "line 5 is person 9072 of age 21, but its photo is 'Album2/009072_0M20.JPG'"),
        (_set(3, id_num="9073"), "line 5 is person 9073 of age 20, but its photo is 'Album2/009072_0M20.JPG'"),
        (_set(3, photo="Album2/somebody.JPG"), "its photo is 'Album2/somebody.JPG', not of the form"),
        (
            _set(3, photo="Album2/009055_0M18.JPG", id_num="9055", age="18"),
            "line 5 names .*, which an earlier line names",
        ),
        (_set(3, photo="Album2/009072_0M78.JPG", age="78"), r"009072_0M78.JPG has age 78, outside 16..77 years"),
        (
            _set(3, photo="Album2/009072_9M20.JPG"),
            "1 of 72 images cannot be read, the first: no image at .*_9M20.JPG",
        ),
    ],
)
def test_bad_tables_are_refused(change: Callable[[list[Row]], None], message: str, tmp_path: Path) -> None:
    morph_release(tmp_path, change)
    with pytest.raises(LDLError, match=message) as error:
        open_morph(tmp_path)
    assert "\n" not in str(error.value)


def test_a_table_from_another_system_is_read(tmp_path: Path) -> None:
    def change(rows: list[Row]) -> None:
        for row in rows:
            row.update(photo=row["photo"].replace("/", "\\"), race=f" {row['race'].lower()}", age=f"{row['age']}.0")
        rows[5]["gender"] = "F"

    table = morph_release(tmp_path, change) / "MORPH" / MORPH_CSV
    table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes())
    data = open_morph(tmp_path)
    assert set(data.records.facts["race"]) == {"B", "W", "H", "A"}
    assert dict(zip(*np.unique(data.records.facts["gender"], return_counts=True))) == {"M": 45, "F": 27}


def test_a_list_that_names_absent_pictures_is_refused_or_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    morph_lists(morph_folders(tmp_path))
    path = tmp_path / "lists" / "RS" / "Setting_3.txt"
    path.write_text(path.read_text() + "000001_0M20.JPG\t0\t20\tmorph\n000002_0M20.JPG\t1\t20\tmorph\n")
    with pytest.raises(LDLError, match="2 of 74 images of .* are not there, the first: 000001_0m20; add them, or"):
        open_morph(tmp_path, "random_80_20", "RS/Setting_3.txt")
    data = open_morph(tmp_path, "random_80_20", "RS/Setting_3.txt", skip_unreadable=True)
    assert "2 of 74 images of" in capsys.readouterr().out
    assert len(data.split.test) == 15


def test_bad_folders_are_refused(tmp_path: Path) -> None:
    images = morph_folders(tmp_path) / "MORPH" / "Images"
    picture(images / "Test" / "somebody.jpg", 30)
    with pytest.raises(LDLError, match="somebody.jpg is not named as an image of MORPH, such as 009055_1M54.JPG"):
        open_morph(tmp_path)
    (images / "Test" / "somebody.jpg").unlink()
    picture(images / "Test" / "009055_0m18.png", 30)
    with pytest.raises(LDLError, match="one image twice; remove one"):
        open_morph(tmp_path)
    with pytest.raises(LDLError, match="no MORPH II at .*absent"):
        open_morph(tmp_path, path="absent")


def test_boxes_place_the_faces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faces = [name for name, _ in morph_faces()]
    root = morph_release(tmp_path)
    corners = [3.5, 7.5, 11.5, 7.5, 11.5, 15.5, 3.5, 15.5]  # between the pixels
    entries = [{"img_path": f"MORPH/Album2/{name}.jpg", "aligned_bbox": corners} for name in faces[:-1]]
    (tmp_path / "boxes.json").write_text(json.dumps(entries))
    with pytest.raises(LDLError, match="boxes.json has no box of 1 of 72 images, the first: Album2/"):
        open_morph(root, boxes="boxes.json")
    data = open_morph(root, boxes="boxes.json", skip_unreadable=True, margin=0.0, crop_size=8)
    assert "left out: " in capsys.readouterr().out
    assert data.size == 71
    original = read_picture(data.records.folder / data.records.files[4])
    served = data.dataset(np.array([4]), train=False)[Draw(0, 1.0, 0)]["input"].permute(1, 2, 0).numpy()
    assert np.abs(served.astype(int) - original[8:16, 4:12]).max() <= 1
    whole = open_morph(root, boxes="boxes.json", alignment="none", crop_size=8)
    assert whole.size == 72
