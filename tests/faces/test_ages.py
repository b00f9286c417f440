"""FG-NET, UTKFace, lists of faces and extra images: fake trees in the exact layouts, and the real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import albumentations as A
import numpy as np
import pytest
import torch
from fakes.face_releases import fgnet, picture, utkface, write_lines

from ldl.errors import LDLError
from ldl.faces import FGNET, FaceFolder, UTKFace
from ldl.faces.ages import FaceAges
from ldl.protocols import leak

pytestmark = pytest.mark.usefixtures("own_cache")


def _open(kind: type[FaceAges], root: Path, **options: Any) -> FaceAges:
    data = kind(root=str(root), **{"crop_size": 24, "val_fraction": 0, **options})
    data.setup()
    return data


def _folder(root: Path, *lines: str) -> Path:
    for number, line in enumerate(lines[1:]):
        picture(root / line.partition(",")[0], 10 * number + 5, number)
    return write_lines(root / "faces.csv", lines)


@pytest.mark.parametrize("alignment", ["landmarks", "box"])
def test_fgnet_leaves_each_person_out_once(alignment: Any, tmp_path: Path) -> None:
    data = _open(FGNET, fgnet(tmp_path), alignment=alignment)
    assert data.num_folds == 8 and data.size == 32 and data.groups is not None
    tested = []
    for fold in range(8):
        data.select_fold(fold)
        train, test = data.split.train, data.split.test
        assert set(data.groups[test]) == {fold + 1} and fold + 1 not in set(data.groups[train])
        assert len(train) + len(test) == 32 and data.leak == 0
        tested += test.tolist()
    assert sorted(tested) == list(range(32))
    with pytest.raises(LDLError, match=r"fold 8 must be in 0..7"):
        data.select_fold(8)


def test_fgnet_reads_persons_and_ages_from_names(tmp_path: Path) -> None:
    data = _open(FGNET, fgnet(tmp_path))
    (batch,) = list(_open(FGNET, tmp_path, batch_size=64).whole_dataloader())
    for row, name in enumerate(data.names or []):
        person, age = Path(name).stem.upper().split("A")
        assert data.groups is not None and data.groups[row] == int(person)
        assert batch["value"][row] == int(age.rstrip("B"))
    brightness = batch["input"].float().mean((1, 2, 3))
    assert np.corrcoef(brightness, batch["value"])[0, 1] > 0.99
    assert batch["target"].shape == (32, 70) and batch["input"].dtype == torch.uint8


def _remove(root: Path, name: str) -> None:
    (root / "FGNET" / name).unlink()


def _break_points(root: Path, name: str) -> None:
    lines = (root / "FGNET" / name).read_text().splitlines()
    write_lines(root / "FGNET" / name, lines[:20] + lines[21:])


def _stray(root: Path, name: str) -> None:
    picture(root / "FGNET" / "images" / name, 20)


@pytest.mark.parametrize(
    ("spoil", "name", "message"),
    [
        (_remove, "points/001a02.pts", "no landmarks at .*001a02.pts; give --data.alignment box or none"),
        (_break_points, "points/001a02.pts", "001a02.pts holds 134 numbers between braces; FG-NET's landmarks are 68"),
        (_stray, "holiday.jpg", "holiday.jpg is no name of FG-NET, such as 001A02.JPG"),
    ],
)
def test_bad_trees_of_fgnet_are_refused(spoil: Any, name: str, message: str, tmp_path: Path) -> None:
    spoil(fgnet(tmp_path), name)
    with pytest.raises(LDLError, match=message):
        _open(FGNET, tmp_path)


def test_utkface_reads_ages_of_irregular_names_too(tmp_path: Path) -> None:
    data = _open(UTKFace, utkface(tmp_path), protocol="holdout")
    assert data.values is not None and sorted(data.values) == list(range(1, 81, 2))
    assert (data.leaky, data.leak, data.groups) == (None, None, None)
    assert len(data.split.test) == 4 and len(data.labels) == 117


def test_an_age_outside_the_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=r"age 71, outside 0..70 years \(5 such images\); widen data.min_age"):
        _open(UTKFace, utkface(tmp_path), max_age=70)


def test_a_list_with_all_columns(tmp_path: Path) -> None:
    lines = [f"p{number}.png,{20 + number},{'ab'[number % 2]},{1 + number / 2},4,4,30,30" for number in range(6)]
    _folder(tmp_path, "path,age,person,sigma,x0,y0,x1,y1", *lines)
    data = _open(FaceFolder, tmp_path, path="faces.csv", protocol="leave_one_person_out", batch_size=8)
    assert data.num_folds == 2 and data.leak == 0
    (batch,) = list(data.whole_dataloader())
    ages = torch.arange(101.0)
    mean = batch["target"] @ ages
    spread = (batch["target"] * (ages - mean[:, None]) ** 2).sum(1).sqrt()
    torch.testing.assert_close(spread, 1 + torch.arange(6) / 2, atol=0.02, rtol=0)
    assert data.crops.key != _open(FaceFolder, tmp_path, path="faces.csv", alignment="none", folds=2).crops.key


def test_stratified_folds_keep_persons_whole(tmp_path: Path) -> None:
    _folder(tmp_path, "path,age,person", *(f"p{n}.png,{20 + n % 7},{n // 3}" for n in range(24)))
    data = _open(FaceFolder, tmp_path, path="faces.csv", folds=4, val_fraction=0.2)
    assert data.groups is not None
    for fold in range(4):
        data.select_fold(fold)
        assert leak(data.split, data.groups) == 0 and data.leak == 0
        assert not set(data.groups[data.split.val]) & set(data.groups[data.split.train])


@pytest.mark.parametrize("name", ["part", "split", "Usage", "set"])
def test_a_column_of_sets_is_the_published_split(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = ("train", "training", "valid", "PrivateTest")
    _folder(tmp_path, f"path,age,{name},note", *(f"p{n}.png,{20 + n % 7},{sets[n % 4]},x" for n in range(12)))
    data, rows = _open(FaceFolder, tmp_path, path="faces.csv", val_fraction=0.2), np.arange(12)
    assert (data.protocol, data.num_folds) == ("parts", 1) and data.split.train.tolist() == rows[rows % 4 < 2].tolist()
    assert (data.split.val.tolist(), data.split.test.tolist()) == (rows[2::4].tolist(), rows[3::4].tolist())
    shown = "'part'" if name == "part" else f"part {name!r}"
    assert f"columns 'path', 'age', {shown}; left out 'note'\n" in capsys.readouterr().out
    other = _open(FaceFolder, tmp_path, path="faces.csv", protocol="stratified", folds=3)
    assert other.protocol == "stratified" and len(other.split.test) == 4
    line = f"columns 'path', 'age'; left out 'note'; protocol stratified does not use {name!r}\n"
    assert line in capsys.readouterr().out


def test_a_protocol_reads_only_the_facts_that_it_uses(tmp_path: Path) -> None:
    _folder(tmp_path, "path,age,fold,folder", *(f"p{n}.png,{20 + n % 7},{n % 5},wild" for n in range(12)))
    data = _open(FaceFolder, tmp_path, path="faces.csv", protocol="stratified", folds=3)
    assert data.taken == "columns 'path', 'age'; protocol stratified does not use 'fold', 'folder'"
    with pytest.raises(LDLError, match="column 'fold' is named like a published split"):
        _open(FaceFolder, tmp_path, path="faces.csv")
    with pytest.raises(LDLError, match="a number from 0 on in the column 'folder', and p0.png has 'wild'"):
        _open(FaceFolder, tmp_path, path="faces.csv", protocol="folders")


@pytest.mark.parametrize("name", ["person", "subject", "patient_id", "Participant", "identity"])
def test_a_column_of_persons_keeps_them_apart(name: str, tmp_path: Path) -> None:
    _folder(tmp_path, f"path,age,{name},folder", *(f"p{n}.png,{20 + n % 7},{n // 3},{n % 3}" for n in range(24)))
    data = _open(FaceFolder, tmp_path, path="faces.csv", folds=4)
    assert (data.protocol, data.leaky, data.leak, data.taken) == (
        "stratified",
        False,
        0,
        f"columns 'path', 'age', {'' if name == 'person' else 'person '}{name!r}; protocol stratified does not use "
        "'folder'",
    )
    folders = _open(FaceFolder, tmp_path, path="faces.csv", protocol="folders")
    assert "'folder'" in folders.taken and "does not use" not in folders.taken


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["path,age,fold", "a.png,3,0"], {}, "column 'fold' is named like a published split, but 1 entries are no tr"),
        (["path,age,person,patient", "a.png,3,0,1"], {}, "each of 'person', 'patient' may be the group; choose one"),
        (["path,age", "a.png,3"], {"group_key": "persn"}, "no key 'persn'"),
        (["path,years", "a.png,3"], {}, "has no column 'age'; its columns are path, years"),
        (["path,age", "a.png,young"], {}, "line 2, column 'age' is 'young', not a finite number"),
        (["path,age", "a.png,3"], {"alignment": "box"}, "has no columns x0, y0, x1, y1; set data.alignment: none"),
        (["path,age,x0,y0,x1,y1", "a.png,3,9,0,0,9"], {}, "line 2: the box x0 9, y0 0, x1 0, y1 9 ends before it"),
        (["path,age", "a.png,3"], {"train_transforms": [A.RandomCrop(64, 64)]}, "RandomCrop cannot take an image of"),
        (["path,age", "a.png,3"], {"protocol": "startified"}, "stratified"),
        (["path,age,part", "a.png,3,train", "b.png,4,val"], {"protocol": "parts"}, "no instance is in the set 'test'"),
        (["path,age", "a.png,3"], {"split_list": "x.txt"}, "protocol stratified follows no list"),
        (["path,age,person", "a.png,3,ann", "b.png,4,"], {}, "line 3, column 'person' is '', which is no name"),
        (["path,age", "a.png,3", "b.png,4", "./a.png,3"], {}, r"line 4 lists \./a\.png again, after line 2; keep one"),
    ],
)
def test_bad_lists_are_refused(lines: list[str], options: dict[str, Any], message: str, tmp_path: Path) -> None:
    for line in lines[1:]:
        picture(tmp_path / line.partition(",")[0], 20)
    write_lines(tmp_path / "faces.csv", lines)
    with pytest.raises(LDLError, match=message):
        _open(FaceFolder, tmp_path, path="faces.csv", **options)


def test_the_real_fgnet(ldl_data: Path) -> None:
    alignment = "landmarks"
    records = FGNET(root=str(ldl_data), alignment=alignment).read()
    assert len(records) == 1002 and len(np.unique(records.groups)) == 82 and records.alignment == alignment
    assert (records.values.min(), records.values.max()) == (0, 69)


@pytest.mark.slow
def test_the_real_utkface(ldl_data: Path) -> None:
    data = UTKFace(root=str(ldl_data))
    records = data.read()
    assert len(records) == 12000 and records.values.min() >= 0 and records.values.max() <= 116
