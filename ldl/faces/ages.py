"""Data modules of faces and ages: FG-NET, UTKFace, and lists of the user's own images."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import numpy as np

from ldl.data.cache import cache_root
from ldl.data.images.records import PUBLISHED_SPLIT, ImageRecords
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError, some
from ldl.faces.detection import one_face_each
from ldl.faces.detectors import find_detector
from ldl.faces.lists import BOX, box_name, read_boxes, read_face_list, read_named_faces
from ldl.faces.module import Faces
from ldl.faces.protocols import FOLDERS, HOLDOUT, LEAVE_ONE_PERSON_OUT, STRATIFIED, SUBJECT_EXCLUSIVE
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.tables.entries import read_number
from ldl.validation.files import read_text, visible

FGNET_POINTS = (31, 36, 67, 48, 54)
"""FG-NET's landmarks for the centres of the left and right eye, the tip of the nose and the corners of the mouth."""


@options
class FaceAges(Faces):
    """Face images with ages in years. A subclass lists its files in ``read`` and names its protocols.

    Args:
        min_age: Lowest age of the label space; None takes the usual range of the data set.
        max_age: Highest age; None takes the usual range of the data set.
        extra: Additional training images for every fold, never tested: a folder of images named as in UTKFace, or a
            list as in ``FaceFolder``.
        extra_limit: Largest number of extra images, drawn at random by ``fold_seed``; None takes all.
        extra_share: Share of extra images among the drawn training images; None draws all images equally often.
    """

    age_range: ClassVar[tuple[int, int]] = (0, 100)

    min_age: int | None = option(default=None, least=0, most=1000, what="years", null="the usual", role="label")
    max_age: int | None = option(default=None, least=0, most=1000, what="years", null="the usual", role="label")
    extra: str | None = None
    extra_limit: int | None = option(default=None, least=1, most=2**31 - 1, null="all")
    extra_share: float | None = option(default=None, above=0, below=1, null="as they come")

    def label_space(self, records: ImageRecords) -> LabelSpace:
        """Return every year of the range. Raises LDLError for an age outside it."""
        low = self.age_range[0] if self.min_age is None else self.min_age
        high = self.age_range[1] if self.max_age is None else self.max_age
        if len(outside := np.flatnonzero(~((records.values >= low) & (records.values <= high)))):
            row = outside[0]
            raise LDLError(
                f"{records.files[row]} has age {records.values[row]:g}, outside {low}..{high} years "
                f"({len(outside)} such images); widen data.min_age and data.max_age, or correct it"
            )
        return LabelSpace.ordinal(range(low, high + 1), "years")

    def gather(self) -> ImageRecords:
        """Return the images of the data set, followed by the extra images. Raises LDLError."""
        records = self.read()
        if self.extra is None:
            return records
        extra = self.find(self.extra)
        if not extra.exists():
            raise LDLError(f"data.extra: nothing at {extra}; give a folder of images named as UTKFace's, or a CSV list")
        other = read_named_faces(extra) if extra.is_dir() else read_face_list(extra, alone=True)
        if both := {path.resolve() for path in records.paths()} & {path.resolve() for path in other.paths()}:
            raise LDLError(
                f"data.extra {self.extra} has {len(both)} images of {type(self).__name__}, such as {min(both)}, "
                "which would be learned from where they are tested; leave them out"
            )
        if self.extra_limit is not None and self.extra_limit < len(other):
            drawn = np.random.default_rng(self.fold_seed).choice(len(other), self.extra_limit, replace=False)
            other = other.take(np.sort(drawn))
        return records.joined(other, self.sigma)

    def often(self) -> np.ndarray | None:
        """Return how often each training row is drawn; see :meth:`LDLDataModule.often`."""
        often, extra = super().often(), self.records.extra
        if extra is None or self.extra_share is None:
            return often
        often = np.ones(len(self.split.train)) if often is None else often
        taken = extra[self.split.train]
        for rows, share in ((taken, self.extra_share), (~taken, 1 - self.extra_share)):
            often[rows] *= share * len(often) / often[rows].sum()
        return often

    @property
    def train_values(self) -> np.ndarray | None:
        """Ages of the training set without extra images, which decide which ages are rare."""
        extra, values = self.records.extra, super().train_values
        return values if extra is None or values is None else values[~extra[self.split.train]]


class FGNET(FaceAges):
    """FG-NET (Lanitis et al. 2002): 1,002 images of 82 persons.

    Files are ``images/001A02.JPG`` (person, age, optional letter) and ``points/001a02.pts``. Faces are located by five
    of the 68 landmarks, or with ``alignment: box`` by ``face_boxes.json`` or ``boxes``.

    Protocols: ``leave_one_person_out`` (82 folds); ``subject_exclusive`` (``folds`` folds of whole persons).
    """

    protocols = {"leave_one_person_out": LEAVE_ONE_PERSON_OUT, "subject_exclusive": SUBJECT_EXCLUSIVE}
    age_range = (0, 69)

    def read(self) -> ImageRecords:
        """List ``images``. Raises LDLError for a name of another form, or missing landmarks or boxes."""
        folder = self.locate("FGNET")
        self.check_present((folder / "images").is_dir(), "FGNET")
        files = [path.relative_to(folder).as_posix() for path in list_pictures(folder / "images")]
        names = [re.fullmatch(r"(\d{3})a(\d{2})[a-z]?", Path(file).stem, re.IGNORECASE | re.ASCII) for file in files]
        if None in names:
            wrong = folder / files[names.index(None)]
            raise LDLError(f"{wrong} is no name of FG-NET, such as 001A02.JPG: person, A, age")
        persons, ages = (np.array([int(name[field]) for name in names if name]) for field in (1, 2))
        return ImageRecords(folder, files, ages.astype(float), persons, self._anchors(folder, files))

    def _anchors(self, folder: Path, files: list[str]) -> list[np.ndarray] | None:
        if self.alignment == "none":
            return None
        stems = [box_name(file) for file in files]
        if self.alignment == "box" or self.boxes:
            source = self.find(self.boxes) if self.boxes else folder / "face_boxes.json"
            boxes = read_boxes(source)
            if missing := [file for file, stem in zip(files, stems) if stem not in boxes]:
                raise LDLError(f"{source} has no box of {missing[0]} ({len(missing)} such images)")
            return [boxes[stem] for stem in stems]
        return [read_points(folder / "points" / f"{stem}.pts")[list(FGNET_POINTS)] for stem in stems]


def read_points(path: Path) -> np.ndarray:
    """Return the landmarks of a ``.pts`` file, (68, 2), in pixels from the upper left. Raises LDLError."""
    text = read_text(path, "landmarks", "give --data.alignment box or none to do without")
    numbers = np.array([read_number(field) for field in text.partition("{")[2].partition("}")[0].split()])
    if numbers.shape != (136,) or not np.isfinite(numbers).all():
        raise LDLError(f"{path} holds {len(numbers)} numbers between braces; FG-NET's landmarks are 68 finite x, y")
    return numbers.reshape(-1, 2)


class UTKFace(FaceAges):
    """UTKFace (Zhang, Song & Qi, CVPR 2017): aligned and cropped faces named ``age_gender_race_date.jpg``.

    Only the age, the first field, is read; three names of the release lack others. The persons are not published, so no
    protocol can keep a person in one set, and leakage cannot be counted. The images are used whole, without
    ``margin``.

    Protocols: ``stratified`` (``folds`` folds with the same distribution of ages); ``holdout`` (tests a random tenth
    and trains on the rest).
    """

    protocols = {"stratified": STRATIFIED, "holdout": HOLDOUT}
    age_range = (0, 116)
    unused = ("alignment", "boxes")

    def read(self) -> ImageRecords:
        """List the folder. Raises LDLError for a name that does not begin with an age."""
        folder = self.locate("UTKFace")
        named = self.path or any(re.match("[0-9]+_", path.name) for path in visible(folder, "**/*"))
        self.check_present(folder.is_dir() and bool(named), "UTKFace")
        return read_named_faces(folder)


@options
class FaceFolder(FaceAges):
    """Your own face images, listed in a CSV file: ``--data.path faces.csv``.

    Columns: ``path`` (relative to the file) and ``age`` (years), and optionally ``person`` or another usual name of a
    group, ``sigma`` (standard deviation of the label distribution in years), ``x0, y0, x1, y1`` (box of the face in
    pixels; with ``x2, y2, x3, y3`` its four corners, clockwise from the upper left), ``part`` or another usual name of
    a published split (train, val or test), and ``folder`` (a number).
    Without boxes the images are used whole, or a ``detector`` finds the largest face in each. ``ldl faces`` writes such
    lists for published data sets.

    Protocols: ``parts`` (the published split), the default if a column names its sets; ``stratified`` (``folds`` folds
    with the same distribution of ages, of whole persons if they are known), else the default;
    ``leave_one_person_out`` and ``subject_exclusive`` (both need the persons); ``holdout`` (a random tenth);
    ``folders`` (the five splits of the Facial Age Estimation Benchmark: six folders for training, two for validation,
    two for test; of three folders one each).

    Args:
        detector: Face detector, ``mtcnn``.
        group_key: Column of the persons; None takes the only usual one, such as ``person`` or ``subject``.
        split_column: Column of the sets of a published split: ``train``, ``val`` and ``test``, or usual synonyms; None
            takes the only usual one, such as ``part`` or ``split``.

    Examples:
        >>> import pandas as pd
        >>> from PIL import Image
        >>> from ldl.faces import FaceFolder
        >>> names = [f"{number}.png" for number in range(20)]
        >>> for grey, name in enumerate(names):
        ...     Image.new("L", (32, 32), grey).save(name)
        >>> pd.DataFrame({"path": names, "age": range(20, 40)}).to_csv("faces.csv", index=False)
        >>> data = FaceFolder(path="faces.csv", crop_size=32)
        >>> data.setup()
        taken from faces.csv: columns 'path', 'age'
        cropping 20 images to 32x32 into .../crops
        >>> data.values[:3]
        array([20., 21., 22.])
    """

    protocols = {
        "stratified": STRATIFIED,
        "subject_exclusive": SUBJECT_EXCLUSIVE,
        "leave_one_person_out": LEAVE_ONE_PERSON_OUT,
        "holdout": HOLDOUT,
        "parts": PUBLISHED_SPLIT,
        "folders": FOLDERS,
    }
    age_range = (0, 100)
    unused = ("boxes",)

    detector: str | None = option(default=None, role="fold", is_path=True)
    group_key: str | None = option(default=None, role="group")
    split_column: str | None = option(default=None, role="group")

    def __post_init__(self) -> None:
        if self.protocol is not None:  # else the list decides
            super().__post_init__()

    @property
    def title(self) -> str:
        """Name of the list."""
        return Path(self.path or "faces").stem

    def read(self) -> ImageRecords:
        """Read the list. Raises LDLError for a missing file or column, or an entry that is not a number."""
        if self.path is None:
            raise LDLError("FaceFolder needs --data.path, a CSV file with the columns path and age")
        file = self.locate("")
        splits = self.protocol in (None, "parts")
        records = read_face_list(file, self.alignment == "none", self.group_key, self.split_column, splits)
        self._choose_protocol(records)
        if self.detector is not None:
            if records.anchors is not None or self.alignment == "none":
                raise LDLError(f"{file} or data.alignment none already places the faces; leave data.detector out")
            detector, cache = find_detector(self.detector), cache_root(self.cache_dir)
            return one_face_each(records, detector, self.alignment, cache, self.skip_unreadable)
        if records.anchors is None and self.alignment in ("box", "landmarks"):
            raise LDLError(
                f"{file} has no columns {', '.join(BOX)}; set data.alignment: none to take images whole, "
                "or data.detector: mtcnn to find the faces"
            )
        return records

    def _choose_protocol(self, records: ImageRecords) -> None:
        """Choose the protocol, and print the columns that are used and those that are not."""
        if self.protocol is None:
            self.protocol = "parts" if "part" in records.facts else None
            super().__post_init__()
        columns = dict(records.columns)
        idle = [columns.pop(fact) for fact in ("part", "folder") if fact in columns and self.protocol != f"{fact}s"]
        used = [repr(column) if fact == column else f"{fact} {column!r}" for fact, column in columns.items()]
        left = f"; left out {some(records.left_out)}" if records.left_out else ""
        unused = f"; protocol {self.protocol} does not use {some(idle)}" if idle else ""
        self.report_columns(f"columns {', '.join(used)}{left}{unused}")
