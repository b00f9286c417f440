"""Sets of faces in the layouts in which they are handed out: their lists, their dry runs, their published parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes import face_lists
from fakes.face_releases import write_lines

from ldl.errors import LDLError
from ldl.faces import FaceFolder
from ldl.faces.lists import write_face_list
from ldl.faces.morph_lists import read_list
from ldl.faces.releases import MORPH_NAMES, RELEASES, names_digest

MADE: dict[str, Callable[[Path], Path]] = {
    name: getattr(face_lists, name.removesuffix("-true").replace("-", "_")) for name in RELEASES
}


def listed(name: str, root: Path) -> tuple[Path, Path | None]:
    """Folder and published list of a made-up release."""
    MADE[name](root)
    return (root / "pictures", root / "AgeDB.json") if name == "benchmark" else (root, None)


def opened(file: Path, cache: Path, **options: object) -> FaceFolder:
    data = FaceFolder(path=str(file), crop_size=16, cache_dir=str(cache), **options)  # type: ignore[arg-type]
    data.setup()
    return data


@pytest.mark.parametrize("name", RELEASES)
def test_the_list_says_what_the_release_does(name: str, tmp_path: Path) -> None:
    records = RELEASES[name].read(*listed(name, tmp_path / "set"))
    assert all(path.is_file() for path in records.paths())
    write_face_list(records, tmp_path / "faces.csv")
    again = FaceFolder(path=str(tmp_path / "faces.csv")).read()
    assert [Path(file) for file in again.files] == records.paths()
    np.testing.assert_array_equal(again.values, records.values)
    for column in ("groups", "sigmas", "anchors"):
        ours, theirs = getattr(records, column), getattr(again, column)
        assert (ours is None) == (theirs is None), column
        if ours is not None:
            np.testing.assert_array_equal(np.array(theirs), np.array(ours))
    assert {name: list(map(str, fact)) for name, fact in records.facts.items()} == {
        name: list(fact) for name, fact in again.facts.items()
    }


def test_columns_are_those_of_the_tables(tmp_path: Path) -> None:
    apparent, true = (RELEASES[name].read(*listed(name, tmp_path / name)) for name in ("appa-real", "appa-real-true"))
    assert apparent.values[:2].tolist() == [25.25, 26.25] and apparent.sigmas[:3].tolist() == [2, 2.125, 2.25]
    assert true.values[:2].tolist() == [24, 25] and true.sigmas is None
    assert apparent.files[12] == "valid/000000.jpg_face.jpg"
    clap = RELEASES["clap2016"].read(*listed("clap2016", tmp_path / "clap"))
    assert clap.files[:2] == ["train_1/000000.jpg", "train_2/000001.jpg"] and clap.files[12] == "valid/000000.jpg"
    assert clap.values[1] == 31.5 and clap.sigmas[1] == 3.1
    lap = RELEASES["lap2015"].read(*listed("lap2015", tmp_path / "lap"))
    entries = {
        file: (value, sigma, subset)
        for file, value, sigma, subset in zip(lap.files, lap.values, lap.sigmas, lap.facts["part"])
    }
    assert entries["Validation/image_13.jpg"] == (33, 3.3, "val") and len(entries) == 21
    afad = RELEASES["afad"].read(*listed("afad", tmp_path / "afad"))
    assert afad.values[afad.files.index("AFAD-Full/17/111/600-2.jpg")] == 17 and len(np.unique(afad.groups)) == 8
    imdb = RELEASES["imdb-clean"].read(*listed("imdb-clean", tmp_path / "imdb"))
    assert imdb.groups[:4].tolist() == ["nm0000000", "nm0000001", "nm0000002", "nm0000000"]
    np.testing.assert_array_equal(imdb.anchors[0], [[5, 6], [35, 6], [35, 40], [5, 40]])


@pytest.mark.parametrize(("count", "folds"), [(10, 5), (3, 1)])
def test_folders_are_the_splits_of_the_benchmark(count: int, folds: int, tmp_path: Path) -> None:
    face_lists.benchmark(tmp_path, count)
    write_face_list(RELEASES["benchmark"].read(tmp_path / "pictures", tmp_path / "AgeDB.json"), tmp_path / "agedb.csv")
    data = opened(tmp_path / "agedb.csv", tmp_path, protocol="folders")
    assert data.num_folds == folds
    folder = data.records.facts["folder"].astype(int)
    turned = [[(first + number) % 10 for number in range(10)] for first in (0, 2, 4, 5, 6)]
    expected = [(row[:6], row[6:8], row[8:]) for row in turned] if folds == 5 else [([0], [1], [2])]
    for fold, roles in enumerate(expected):
        data.select_fold(fold)
        for rows, role in zip((data.split.train, data.split.val, data.split.test), roles):
            assert set(folder[rows]) == set(role)
    # The box turned by the face, not the upright one around it.
    np.testing.assert_array_equal(data.records.anchors[0], [[4, 5], [34, 7], [32, 37], [2, 35]])


@pytest.mark.slow
def test_names_of_morph_are_those_of_the_published_lists(ldl_data: Path) -> None:
    names = [name for file in (ldl_data / "morph_splits/mwr/RS").rglob("*.txt") for name in read_list(file).stems]
    assert len(names) == 55134 and names_digest([f"Album2/{name.upper()}.JPG" for name in names]) == MORPH_NAMES
    assert names_digest(["b.jpg", "x/A.JPG"]) == hashlib.sha256(b"a\nb").hexdigest()


def test_wrong_fields_are_named(tmp_path: Path) -> None:
    agedb = face_lists.agedb(tmp_path / "agedb")
    (agedb / "0_MariaCallas_20_m.jpg").rename(agedb / "callas.jpg")
    with pytest.raises(LDLError, match="callas.jpg is not named as an image of this release; .*AgeDB lies as"):
        RELEASES["agedb"].read(agedb, None)
    lap = face_lists.lap2015(tmp_path / "lap")
    write_lines(lap / "Test/Reference.csv", ["image_20.jpg;5"])
    with pytest.raises(LDLError, match="line 1 is not image;mean;deviation"):
        RELEASES["lap2015"].read(lap, None)
    (tmp_path / "bad.json").write_text('[{"img_path": "a.jpg", "age": 3}]')
    with pytest.raises(LDLError, match="entry 0 needs img_path, age and folder"):
        RELEASES["benchmark"].read(agedb, tmp_path / "bad.json")
    write_lines(tmp_path / "faces.csv", ["path,age,part", "a.jpg,3,other"])
    with pytest.raises(
        LDLError,
        match="column 'part' is named like a published split, .* the first is 'other'",
    ):
        FaceFolder(path=str(tmp_path / "faces.csv")).read()
