"""MORPH II (Ricanek & Tesafaye, FG 2006): about 55,000 images of 13,600 persons, 16 to 77 years old."""

from __future__ import annotations

import re
from pathlib import Path

from ldl.collective import process_rank
from ldl.data.images.records import ImageRecords
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError
from ldl.faces.ages import FaceAges
from ldl.faces.lists import read_boxes, spelled_as_on_disk
from ldl.faces.morph_lists import (
    EXAMPLE,
    MORPH_PROTOCOLS,
    named_records,
    parse_name,
    read_list,
    read_rows,
    stem,
)
from ldl.validation.files import read_text, visible

RELEASE_CSV = "morph_2008_nonCommercial.csv"
USUAL_FOLDERS = ("MORPH", "Morph", "morph", "MORPH2", "MORPH-II", "MORPH_II", "morph2")


class Morph(FaceAges):
    """MORPH II, in either of the two forms it is distributed in. The data set needs a licence.

    - The release: ``morph_2008_nonCommercial.csv`` and the folder ``Album2`` that its column ``photo`` names.
    - Folders of images at any depth, such as Kaggle's ``Images/Train``, named as in the release: ``009055_1M54.JPG``
      (person, number, gender, age). CSV files below them that name images and have a column ``race`` supply the races,
      which only the protocols marked * need.

    Images are used whole, or cropped to the face with ``boxes``.

    Protocols (``split_list`` names a published list, or a folder of lists):

    - ``subject_exclusive``: ``folds`` folds of whole persons with the same distribution of ages, without leakage.
    - ``subject_exclusive_list``: the folds of a list. In the public list 180 persons are in several folds.
    - ``random_80_20``: ``folds`` random test sets of 20%, drawn independently; or the folds of a list.
    - ``random_10fold``: ten random folds (DLDL).
    - ``caucasian``*: 5,492 images of white persons, drawn once at random; each of ``folds`` folds tests a random fifth
      of them. Or lists ``*fold0_train.*``, ``*fold0_test.*``, ...
    - ``s1_s2_s3``* (Guo & Mu, CVPR 2011): S1 and S2 are the largest equal random sets with as many images of black as
      of white persons and three times as many of men as of women; S3 is the rest. Fold 0 trains on S1 and fold 1 on
      S2; each tests on the other two sets. Or lists ``*fold0.*``, ``*fold1.*``, ``*fold2.*``.
    - ``morph_sub``* (the LDLF paper): 21,060 images, for black and white persons each 7,960 of men and 2,570 of women,
      or as many as there are; or the images of a list. Every fold tests the same 40%. Fold 0 trains on 10%, fold 5 on
      60%, each fold on a superset of the one before, so report the folds one by one. The paper gives neither the
      selection of the images nor the test set below 60%.
    - ``coral_list``: the lists ``*train*.csv`` and ``*valid*.csv`` against ``*test*.csv`` (Cao et al. 2020).
    """

    protocols = MORPH_PROTOCOLS
    age_range = (16, 77)

    def read(self) -> ImageRecords:
        """List the images by name. Raises LDLError for a row or a name of another form."""
        folder = self.locate(next((name for name in USUAL_FOLDERS if (self.data_root / name).is_dir()), "MORPH"))
        release = [path for path in visible(folder, "*.csv") if path.name.lower() == RELEASE_CSV.lower()]
        elsewhere = folder == self.data_root and not self.path and not release
        named = not elsewhere or any(parse_name(path.name) for path in visible(folder, "**/*"))
        self.check_present(folder.is_dir() and named, "MORPH")
        files, races = read_release(release[0]) if release else _read_folders(folder)
        if self.alignment == "landmarks":
            raise LDLError("MORPH has no landmarks; set data.alignment: box with data.boxes, or none")
        if self.alignment == "none" or (self.alignment is None and not self.boxes):
            return named_records(folder, files, races)
        if not self.boxes:
            raise LDLError("MORPH comes without boxes; name a JSON file of them in data.boxes")
        source = self.find(self.boxes)
        boxes = read_boxes(source)
        if missing := [file for name, file in files.items() if name not in boxes]:
            message = f"{source} has no box of {len(missing)} of {len(files)} images, the first: {missing[0]}"
            if not self.skip_unreadable:
                raise LDLError(
                    f"{message}; leave them out with --data.skip_unreadable true, or set data.alignment: none"
                )
            if process_rank() == 0:
                print(f"left out: {message}", flush=True)
            files = {name: file for name, file in files.items() if name in boxes}
        records = named_records(folder, files, races)
        records.anchors = [boxes[stem(file)] for file in records.files]
        return records


def _read_folders(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return file and race of every image by stem."""
    files: dict[str, str] = {}
    for path in list_pictures(folder, beside=(".csv", ".txt")):
        if parse_name(path.name) is None:
            raise LDLError(
                f"{path} is not named as an image of MORPH, such as {EXAMPLE}; "
                f"data.path must be the folder of {RELEASE_CSV}, or one of such images only"
            )
        file = path.relative_to(folder).as_posix()
        if stem(file) in files:
            raise LDLError(f"{folder} holds {files[stem(file)]} and {file}, one image twice; remove one")
        files[stem(file)] = file
    races: dict[str, str] = {}
    for path in visible(folder, "**/*.csv"):
        # The header is read first, since a CSV file may hold anything else.
        if "race" in re.split(r"[^a-z]+", read_text(path).strip().partition("\n")[0].lower()):
            index = read_list(path)
            races.update(zip(index.stems, index.races or []))
    return files, races


def read_release(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return file and race of every image by stem, after checking that name and row agree on person and age.

    The gender is that of the name, since the column is coded in several ways.
    """
    table = read_rows(path)
    persons, ages = table.numbers(["id_num", "age"]).astype(int).T
    races = map(str.upper, table.column("race"))
    photos = [photo.replace("\\", "/") for photo in table.column("photo")]
    files: dict[str, str] = {}
    for row, (photo, file) in enumerate(zip(photos, spelled_as_on_disk(path.parent, photos))):
        name = parse_name(photo)
        if name is None or (name.person, name.age) != (persons[row], ages[row]):
            stated = f"person {persons[row]} of age {ages[row]}"
            raise LDLError(f"{table.where(row)} is {stated}, but its photo is {photo!r}, not of the form {EXAMPLE}")
        if stem(photo) in files:
            raise LDLError(f"{table.where(row)} names {photo}, which an earlier line names too; remove one")
        files[stem(photo)] = file
    return files, dict(zip(files, races))
