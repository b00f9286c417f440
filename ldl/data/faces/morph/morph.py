"""MORPH II (Ricanek & Tesafaye, FG 2006): about 55,000 pictures of 13,600 persons, 16 to 77 years old."""

from __future__ import annotations

from pathlib import Path

from ldl.collective import process_rank
from ldl.data.csv_table import read_header
from ldl.data.faces.ages import FaceAges
from ldl.data.faces.boxes import read_boxes
from ldl.data.faces.morph.lists import named_records, read_list
from ldl.data.faces.morph.names import EXAMPLE, parse_name, stem
from ldl.data.faces.morph.protocols import MORPH_PROTOCOLS
from ldl.data.faces.morph.release import RELEASE_CSV, read_release
from ldl.data.faces.records import FaceRecords
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError

_USUAL = ("MORPH", "Morph", "morph", "MORPH2", "MORPH-II", "MORPH_II", "morph2")


class Morph(FaceAges):
    """MORPH II, in either of the forms in which people have it; it needs a licence.

    - The release: ``morph_2008_nonCommercial.csv`` and the folder ``Album2`` that its column ``photo`` names.
    - Folders of pictures at any depth, such as Kaggle's ``Images/Train``, named as in the release,
      ``009055_1M54.JPG`` (person, number, gender, age). A CSV file beside them that names pictures and has a
      column ``race`` tells the races, which only the protocols marked * need.

    Pictures are taken whole, or with ``boxes`` by the face's box.

    Protocols (``split_list`` names a published list, or the folder of several, where there is a "list"):

    - ``subject_exclusive``: ``folds`` folds of whole persons with the same mix of ages. Nothing leaks.
    - ``subject_exclusive_list``: the folds of a list. The public one has 180 persons in several folds.
    - ``random_80_20``: ``folds`` random fifths, drawn anew each; or the folds of a list.
    - ``random_10fold``: ten random folds (DLDL).
    - ``caucasian``*: 5,492 pictures of white persons, drawn at random once, of which each of ``folds`` folds tests
      a random fifth; or lists ``*fold0_train.*``, ``*fold0_test.*``, ...
    - ``s1_s2_s3``* (Guo & Mu, CVPR 2011): S1 and S2 are the largest equal sets with as many pictures of black as
      of white persons and three times as many of men as of women, drawn at random; S3 is all else. Trained on S1 and
      on S2 in turn, tested on the other two. Or lists ``*fold0.*``, ``*fold1.*``, ``*fold2.*``.
    - ``morph_sub``* (the LDLF paper's): 21,060 pictures, 7,960 of men and 2,570 of women, of black and of white
      persons each, or as many as there are; or those of a list. 40% are tested. Fold 0 trains on 10%, fold 5 on
      60%, each on all that the one before had; so read its folds one by one, not their mean. This is our reading:
      the paper says neither how the pictures were chosen, nor what is tested below 60%.
    - ``coral_list``: the lists ``*train*.csv`` and ``*valid*.csv`` against ``*test*.csv`` (Cao et al. 2020).
    """

    protocols = MORPH_PROTOCOLS
    age_range = (16, 77)

    def read(self) -> FaceRecords:
        """List the pictures by name. Raises LDLError for a row or a name that is not as in the release."""
        folder = self.locate(next((name for name in _USUAL if (self.data_root / name).is_dir()), _USUAL[0]))
        release = [path for path in folder.glob("*.csv") if path.name.lower() == RELEASE_CSV.lower()]
        elsewhere = folder == self.data_root and not self.path and not release
        if not folder.is_dir() or (elsewhere and not any(parse_name(path.name) for path in list_pictures(folder))):
            raise self.absent(_USUAL[0])
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
            what = f"{source} has no box of {len(missing)} of {len(files)} pictures, the first: {missing[0]}"
            if not self.skip_unreadable:
                raise LDLError(f"{what}; leave them out with --data.skip_unreadable true, or set data.alignment: none")
            if process_rank() == 0:
                print(f"left out: {what}", flush=True)
            files = {name: file for name, file in files.items() if name in boxes}
        records = named_records(folder, files, races)
        records.anchors = [boxes[stem(file)] for file in records.files]
        return records


def _read_folders(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    files: dict[str, str] = {}
    for path in list_pictures(folder):
        if parse_name(path.name) is None:
            raise LDLError(
                f"{path} is not named as a picture of MORPH, such as {EXAMPLE}; "
                f"data.path must be the folder of {RELEASE_CSV}, or one of such pictures only"
            )
        file = path.relative_to(folder).as_posix()
        if stem(file) in files:
            raise LDLError(f"{folder} holds {files[stem(file)]} and {file}, one picture twice; remove one")
        files[stem(file)] = file
    races: dict[str, str] = {}
    for path in sorted(folder.rglob("*.csv")):
        # It may be of whatever content: only its header is read.
        if "race" in map(str.lower, read_header(path, blanks=True)):
            index = read_list(path)
            races.update(zip(index.stems, index.races or []))
    return files, races
