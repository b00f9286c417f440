"""Trees of MORPH that are incomplete, wrong, or from another system."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_faces import (
    MORPH_CSV,
    MORPH_SPLITS,
    morph_faces,
    morph_folders,
    morph_lists,
    morph_release,
    open_morph,
    picture,
    write_lines,
)

from ldl.data.faces.morph.names import stem
from ldl.data.pictures import read_picture
from ldl.data.sampler import Draw
from ldl.errors import LDLError

Row = dict[str, str]


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake release as a data folder, with the lists below it."""
    root = morph_release(tmp_path_factory.mktemp("data"))
    morph_lists(root)
    return root


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"protocol": "subject_exclusiv"},
            "Morph has no protocol 'subject_exclusiv'; did you mean 'subject_exclusive'",
        ),
        (
            {"split_list": "SE"},
            "protocol subject_exclusive follows no list: leave data.split_list out, or choose one of",
        ),
        ({"protocol": "coral_list"}, "must be the folder of the lists"),
        ({"protocol": "subject_exclusive_list"}, "follows a published list; name it in data.split_list"),
        ({"protocol": "s1_s2_s3", "fold": 2}, r"fold 2 must be in 0..1, the folds of s1_s2_s3"),
        ({"protocol": "caucasian", "split_list": "RS_partial", "fold": 5}, r"fold 5 must be in 0..4"),
        ({"alignment": "landmarks"}, "MORPH has no landmarks"),
        ({"alignment": "box"}, "name a JSON file of them in data.boxes"),
        ({"boxes": "absent.json"}, "no file of boxes at .*absent.json"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str, root: Path) -> None:
    with pytest.raises(LDLError, match=message) as error:
        open_morph(root, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("protocol", ["caucasian", "s1_s2_s3", "morph_sub"])
def test_folders_without_races_need_a_list(protocol: str, tmp_path: Path) -> None:
    morph_lists(morph_folders(tmp_path, races=False))
    with pytest.raises(LDLError, match="no file says the races"):
        open_morph(tmp_path, protocol)
    place = next(place for name, place in MORPH_SPLITS if name == protocol and place)
    assert len(open_morph(tmp_path, protocol, place).split.test)


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
        (_drop("age"), "morph_2008_nonCommercial.csv has no column 'age'; its columns are id_num, picture_num, dob"),
        (_drop("photo"), "has no column 'photo'"),
        (_drop("race"), "has no column 'race'"),
        (_set(3, age="old"), "line 5 has age 'old', but its photo Album2/009072_0M20.JPG says 20; correct the line"),
        (_set(3, age=""), "line 5 has age ''"),
        (_set(3, age="inf"), "line 5 has age 'inf'"),
        (_set(3, age="21"), "line 5 has age '21', but its photo Album2/009072_0M20.JPG says 20"),
        (_set(3, id_num="9073"), "line 5 has id_num '9073', but its photo Album2/009072_0M20.JPG says 9072"),
        (
            _set(3, photo="Album2/somebody.JPG"),
            "line 5 names the photo 'Album2/somebody.JPG', which is not of the form",
        ),
        (
            _set(3, photo="Album2/009055_0M18.JPG", id_num="9055", age="18"),
            "line 5 names .*, which an earlier line names",
        ),
        (_set(3, photo="Album2/009072_0M78.JPG", age="78"), r"009072_0M78.JPG has age 78, outside 16..77 years"),
        (
            _set(3, photo="Album2/009072_9M20.JPG"),
            "1 of 72 pictures cannot be read, the first: no picture at .*_9M20.JPG",
        ),
    ],
)
def test_bad_tables_are_refused(change: Callable[[list[Row]], None], message: str, tmp_path: Path) -> None:
    morph_release(tmp_path, change)
    with pytest.raises(LDLError, match=message) as error:
        open_morph(tmp_path)
    assert "\n" not in str(error.value)


def test_a_row_with_a_field_too_few_is_refused(tmp_path: Path) -> None:
    table = morph_release(tmp_path) / "MORPH" / MORPH_CSV
    table.write_text(table.read_text() + "009055,1,6/21/1949\n")
    with pytest.raises(LDLError, match="line 74 has 3 fields, line 1 has 11"):
        open_morph(tmp_path)


def test_a_table_from_another_system_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(rows: list[Row]) -> None:
        for row in rows:
            row.update(photo=row["photo"].replace("/", "\\"), race=f" {row['race'].lower()}", age=f"{row['age']}.0")
        rows[5]["gender"] = "F"

    table = morph_release(tmp_path, change) / "MORPH" / MORPH_CSV
    table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes())
    data = open_morph(tmp_path)
    assert set(data.records.facts["race"]) == {"B", "W", "H", "A"}
    assert dict(zip(*np.unique(data.records.facts["gender"], return_counts=True))) == {"M": 45, "F": 27}
    assert "1 genders differ from the names, which are believed; the first: Album2/" in capsys.readouterr().out


def test_missing_and_damaged_pictures_are_left_out_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    morph_lists(morph_release(tmp_path))
    album = tmp_path / "MORPH" / "Album2"
    (album / "009055_1M19.JPG").unlink()
    (album / "009055_2M20.JPG").write_bytes(b"no picture")
    with pytest.raises(LDLError, match="2 of 72 pictures cannot be read, .*skip_unreadable"):
        open_morph(tmp_path)
    for protocol, split_list in MORPH_SPLITS:
        data = open_morph(tmp_path, protocol, split_list, skip_unreadable=True)
        said = capsys.readouterr().out
        assert "left out 2 of 72 unreadable pictures" in said
        assert "009055_1M19.JPG" in said and "009055_2M20.JPG" in said
        assert data.size == 70
        assert not {"009055_1m19", "009055_2m20"} & {stem(file) for file in data.records.files}
        if protocol == "random_80_20" and split_list:
            assert "2 of 72 pictures of" in said and "are not there, the first: 009055_1m19" in said
            assert len(np.concatenate(list(vars(data.split).values()))) == 70


def test_a_list_that_names_absent_pictures_is_refused_or_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    morph_lists(morph_folders(tmp_path))
    path = tmp_path / "lists" / "RS" / "Setting_3.txt"
    path.write_text(path.read_text() + "000001_0M20.JPG\t0\t20\tmorph\n000002_0M20.JPG\t1\t20\tmorph\n")
    with pytest.raises(LDLError, match="2 of 74 pictures of .* are not there, the first: 000001_0m20; add them, or"):
        open_morph(tmp_path, "random_80_20", "RS/Setting_3.txt")
    data = open_morph(tmp_path, "random_80_20", "RS/Setting_3.txt", skip_unreadable=True)
    assert "2 of 74 pictures of" in capsys.readouterr().out
    assert len(data.split.test) == 15


def test_a_list_of_other_pictures_is_refused(tmp_path: Path) -> None:
    morph_lists(morph_folders(tmp_path))
    write_lines(tmp_path / "lists" / "other.txt", ["filename fold", "000001_0M20.JPG 0", "000002_0M20.JPG 1"])
    with pytest.raises(LDLError, match="0 pictures of training and 0 of test are there"):
        open_morph(tmp_path, "random_80_20", "other.txt", skip_unreadable=True)


def test_bad_folders_are_refused(tmp_path: Path) -> None:
    images = morph_folders(tmp_path) / "MORPH" / "Images"
    picture(images / "Test" / "somebody.jpg", 30)
    with pytest.raises(LDLError, match="somebody.jpg is not named as a picture of MORPH, such as 009055_1M54.JPG"):
        open_morph(tmp_path)
    (images / "Test" / "somebody.jpg").unlink()
    picture(images / "Test" / "009055_0m18.png", 30)
    with pytest.raises(LDLError, match="one picture twice; remove one"):
        open_morph(tmp_path)
    with pytest.raises(LDLError, match="no MORPH II at .*absent"):
        open_morph(tmp_path, path="absent")


@pytest.mark.parametrize("name", ["MORPH-II", "morph"])
def test_other_names_of_the_folder_are_found(name: str, tmp_path: Path) -> None:
    (morph_release(tmp_path) / "MORPH").rename(tmp_path / name)
    assert open_morph(tmp_path).size == 72
    assert open_morph(tmp_path / "nowhere", path=str(tmp_path / name)).size == 72


def test_boxes_place_the_faces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faces = [name for name, _ in morph_faces()]
    root = morph_release(tmp_path)
    corners = [3.5, 7.5, 11.5, 7.5, 11.5, 15.5, 3.5, 15.5]  # between the pixels
    entries = [{"img_path": f"MORPH/Album2/{name}.jpg", "aligned_bbox": corners} for name in faces[:-1]]
    (tmp_path / "boxes.json").write_text(json.dumps(entries))
    with pytest.raises(LDLError, match="boxes.json has no box of 1 of 72 pictures, the first: Album2/"):
        open_morph(root, boxes="boxes.json")
    data = open_morph(root, boxes="boxes.json", skip_unreadable=True, margin=0.0, crop_size=8)
    assert "left out: " in capsys.readouterr().out
    assert data.size == 71
    original = read_picture(data.records.folder / data.records.files[4])
    served = data.dataset(np.array([4]), train=False)[Draw(0, 1.0, 0)]["input"].permute(1, 2, 0).numpy()
    assert np.abs(served.astype(int) - original[8:16, 4:12]).max() <= 1
    whole = open_morph(root, boxes="boxes.json", alignment="none", crop_size=8)
    assert whole.size == 72
