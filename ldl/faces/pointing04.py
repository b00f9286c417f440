"""Pointing'04, the Head Pose Image Database (Gourier, Hall & Crowley, ICPR workshop 2004)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ldl.data.images.records import ImageRecords, SplitProtocol, SplitRequest, TrainTest
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError
from ldl.faces.module import Faces
from ldl.faces.protocols import LEAVE_ONE_PERSON_OUT, RANDOM_KFOLD
from ldl.labels import LabelSpace
from ldl.methods.imbalance import bell_subset
from ldl.options import option, options
from ldl.protocols import Fold
from ldl.tables.entries import read_number
from ldl.validation.files import check_file

PITCHES = (-90, -60, -30, -15, 0, 15, 30, 60, 90)
YAWS = tuple(range(-90, 91, 15))
POSES = [(pitch, yaw) for pitch in PITCHES for yaw in YAWS if abs(pitch) < 90 or yaw == 0]
"""The 93 poses (pitch, yaw) in degrees, which the release calls tilt and pan; pitches of -90 and 90 have yaw 0 only."""

_NAME = re.compile(r"person(?:ne)?(\d{2})([12])(\d{2})([+-]\d+)([+-]\d+)", re.IGNORECASE | re.ASCII)


class PoseName(NamedTuple):
    """Fields of a name such as ``personne01146+0+0``: person 01, series 1, number 46, tilt +0, pan +0."""

    person: int
    series: int
    number: int
    pitch: int
    yaw: int


def _test_series(request: SplitRequest) -> TrainTest:
    tested = request.records.facts["series"] == request.fold + 1
    if tested.all() or not tested.any():
        raise LDLError("protocol series needs images of both series; choose another")
    return np.flatnonzero(~tested), np.flatnonzero(tested)


@options
class Pointing04(Faces):
    """Pointing'04 as released: ``Person01/personne01146+0+0.jpg``, with the face's box in a ``.txt`` beside it.

    15 persons, two series of 93 poses each. The label space is the 93 poses as points (pitch, yaw) with the metrics
    ``mae_pitch`` and ``mae_yaw`` besides their mean, or one angle. The folder ``Front``, which repeats frontal images,
    is ignored. A mirror image has another yaw, so ``train_transforms`` must not mirror.

    Protocols: ``leave_one_person_out`` (15 folds); ``series`` (each of the two series is the test set in turn, "known
    faces" in the release: all persons are in both sets); ``random_5fold`` (five random folds as in Huang et al. 2016:
    neighbouring poses of a person are in both sets).

    Args:
        fold_seed: Seed of random folds, and of the removed images.
        angles: Predicted angles: ``both`` over the 93 poses, or ``pitch`` or ``yaw`` over its own values.
        removed: Share of the training images to remove at random, so that the pitches of the others follow a Gaussian
            around 0, in [0, 1); validation and test sets are not changed.
        alignment: How faces are located: ``box``, or ``none`` for whole images.
        sigma: Standard deviation of the label distributions in degrees, the same along both angles.
    """

    protocols = {
        "leave_one_person_out": LEAVE_ONE_PERSON_OUT,
        "series": SplitProtocol(_test_series, True, lambda request: 2, published=True),
        "random_5fold": RANDOM_KFOLD,
    }
    unused = ("boxes",)
    mirrored = False

    angles: Literal["both", "pitch", "yaw"] = option(default="both", role="label")
    removed: float = option(default=0.0, least=0, below=1, what="a share of the training images")
    alignment: Literal["box", "none"] = "box"
    crop_size: int = 64
    sigma: float = 15.0
    split_list = None
    boxes = None
    folds = 5

    def read(self) -> ImageRecords:
        """List the folders ``Person*``. Raises LDLError for a wrong name or pose, or an unreadable box."""
        folder = self.locate("Pointing04")
        persons = sorted(filter(Path.is_dir, folder.glob("Person*")))
        self.check_present(bool(persons), "Pointing04")
        paths = [path for person in persons for path in list_pictures(person, beside=(".txt",))]
        names = [parse_pose_name(path) for path in paths]
        seen: dict[PoseName, Path] = {}
        for path, name in zip(paths, names):
            if (first := seen.setdefault(name._replace(number=0), path)) != path:
                raise LDLError(f"{first} and {path} are one pose of one series; remove one of them")
        poses = np.array([(name.pitch, name.yaw) for name in names], dtype=float)
        return ImageRecords(
            folder,
            [path.relative_to(folder).as_posix() for path in paths],
            poses if self.angles == "both" else poses[:, ("pitch", "yaw").index(self.angles)],
            np.array([name.person for name in names]),
            [read_pose_box(path) for path in paths] if self.alignment == "box" else None,
            facts={"series": np.array([name.series for name in names]), "pitch": poses[:, 0]},
        )

    def label_space(self, records: ImageRecords) -> LabelSpace:
        """Return the 93 poses, or the values of one angle, in degrees."""
        if self.angles == "both":
            return LabelSpace.grid(PITCHES, YAWS, "degrees", ("pitch", "yaw"), POSES)
        return LabelSpace.ordinal(PITCHES if self.angles == "pitch" else YAWS, "degrees")

    def cut(self) -> Fold:
        """Return the rows of one fold, without the ``removed`` training images. Raises LDLError."""
        fold = super().cut()
        if not self.removed:
            return fold
        kept = bell_subset(self.records.facts["pitch"][fold.train], self.removed, [self.fold_seed, self.fold])
        return replace(fold, train=fold.train[kept])


def parse_pose_name(path: Path) -> PoseName:
    """Parse the name of an image. Raises LDLError for another form, or angles that are no pose of the release."""
    match = _NAME.fullmatch(path.stem)
    name = PoseName(*map(int, match.groups())) if match else None
    if name is None or (name.pitch, name.yaw) not in POSES:
        raise LDLError(
            f"{path} is no name of Pointing'04, such as personne01146+0+0.jpg: person, series, number, tilt "
            f"({', '.join(map(str, PITCHES))}), pan (every 15 from -90 to 90, only 0 at tilts -90 and 90)"
        )
    return name


def read_pose_box(picture: Path) -> np.ndarray:
    """Return the corners (4, 2) of the face, clockwise from its upper left, from the ``.txt`` beside an image.

    The file holds the image's name, the word Face, and four numbers: the centre's x and y, width and height. Raises
    LDLError for a missing file, another form, a box without area, or the name of another image.
    """
    path = check_file(picture.with_suffix(".txt"), f"box of {picture.name}", "add it, or set data.alignment: none")
    fields = path.read_text(encoding="latin-1").split()
    names = [_NAME.fullmatch(Path(name).stem) for name in (picture.name, *fields[:1])]
    owners = {name and name.groups() for name in names}  # the release spells some names person and some personne
    numbers = np.array([read_number(field) for field in fields[2:]])
    if len(numbers) != 4 or len(owners) != 1 or not np.isfinite(numbers).all() or (numbers[2:] <= 0).any():
        raise LDLError(
            f"{path} must hold the name {picture.name}, Face, centre x, centre y, width and height, "
            f"got {' '.join(fields)[:80]!r}"
        )
    return numbers[:2] + numbers[2:] / 2 * [[-1, -1], [1, -1], [1, 1], [-1, 1]]
