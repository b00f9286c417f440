"""Pointing'04, the Head Pose Image Database (Gourier, Hall & Crowley, ICPR workshop 2004)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from ldl.data.faces.module import Faces
from ldl.data.faces.pointing04.files import PITCHES, POSES, YAWS, PoseName, parse_name, read_box
from ldl.data.faces.protocols import LEAVE_ONE_PERSON_OUT, RANDOM_KFOLD, Cut, FaceProtocol, Rows
from ldl.data.faces.records import FaceRecords
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.imbalance import bell_subset
from ldl.options import option, options
from ldl.protocols import Fold

Angles = Literal["both", "pitch", "yaw"]


def _by_series(cut: Cut) -> Rows:
    tested = cut.records.facts["series"] == cut.fold + 1
    if tested.all() or not tested.any():
        raise LDLError("protocol series needs pictures of both series; choose another")
    return np.flatnonzero(~tested), np.flatnonzero(tested)


PROTOCOLS = {
    "leave_one_person_out": LEAVE_ONE_PERSON_OUT,
    "series": FaceProtocol(_by_series, True, lambda cut: 2),
    "random_5fold": RANDOM_KFOLD,
}


@options
class Pointing04(Faces):
    """Pointing'04 as it is released: ``Person01/personne01146+0+0.jpg`` with a ``.txt`` of the face's box beside it.

    15 persons, two series of 93 poses each. The label space is the 93 poses as points (pitch, yaw), of which
    ``mae_pitch`` and ``mae_yaw`` are reported besides their mean, or one angle alone. The folder ``Front`` of the
    release repeats frontal pictures of the persons and is left aside. A mirror image has another yaw: transforms of
    one's own must not mirror.

    Protocols: ``leave_one_person_out`` (15 folds); ``series`` (each of the two series is tested in turn, the
    release's "known faces": all persons are in both parts); ``random_5fold`` (five random folds, as in Huang et al.
    2016: neighbouring poses of a person are in both parts).

    Args:
        fold_seed: Seed of random folds, and of what is removed.
        angles: What is predicted: ``both`` over the 93 poses, or ``pitch`` or ``yaw`` over its own values.
        removed: Share of the training pictures that are removed at random so that the pitches of those that stay are
            spread like a Gaussian around 0, in [0, 1); validation and test parts keep theirs.
        alignment: What places the face: ``box``, or ``none`` for the whole picture.
        sigma: Standard deviation of the label distributions in degrees, the same along both angles.
    """

    protocols = PROTOCOLS
    unused = ("boxes",)
    mirrored = False

    angles: Angles = "both"
    removed: float = option(default=0.0, least=0, below=1, what="a share of the training pictures")
    alignment: Literal["box", "none"] = "box"
    crop_size: int = 64
    sigma: float = 15.0
    split_list = None
    boxes = None
    folds = 5

    def read(self) -> FaceRecords:
        """List the folders ``Person*``. Raises LDLError for a wrong name or pose, or a box that cannot be read."""
        folder = self.locate("Pointing04")
        persons = sorted(place for place in folder.glob("Person*") if place.is_dir())
        if not persons:
            raise self.absent("Pointing04")
        paths = [path for person in persons for path in list_pictures(person)]
        names = [parse_name(path) for path in paths]
        seen: dict[PoseName, Path] = {}
        for path, name in zip(paths, names):
            if (first := seen.setdefault(name._replace(number=0), path)) != path:
                raise LDLError(f"{first} and {path} are one pose of one series; remove one of them")
        poses = np.array([(name.pitch, name.yaw) for name in names], dtype=float)
        values = poses if self.angles == "both" else poses[:, ("pitch", "yaw").index(self.angles)]
        return FaceRecords(
            folder,
            [path.relative_to(folder).as_posix() for path in paths],
            values,
            np.array([name.person for name in names]),
            [read_box(path) for path in paths] if self.alignment == "box" else None,
            facts={"series": np.array([name.series for name in names]), "pitch": poses[:, 0]},
        )

    def label_space(self, records: FaceRecords) -> LabelSpace:
        """The 93 poses, or the values of one angle, in degrees."""
        if self.angles == "both":
            return LabelSpace.grid(PITCHES, YAWS, "degrees", ("pitch", "yaw"), POSES)
        return LabelSpace.ordinal(PITCHES if self.angles == "pitch" else YAWS, "degrees")

    def cut(self) -> Fold:
        """The pictures of one fold, with what is ``removed`` from training. Raises LDLError."""
        fold = super().cut()
        if not self.removed:
            return fold
        kept = bell_subset(self.records.facts["pitch"][fold.train], self.removed, [self.fold_seed, self.fold])
        return replace(fold, train=fold.train[kept])
