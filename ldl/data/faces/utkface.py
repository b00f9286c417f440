"""UTKFace (Zhang, Song & Qi, CVPR 2017)."""

from __future__ import annotations

import numpy as np

from ldl.data.faces.ages import FaceAges
from ldl.data.faces.protocols import HOLDOUT, STRATIFIED
from ldl.data.faces.records import FaceRecords
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError


class UTKFace(FaceAges):
    """UTKFace's aligned and cropped faces: a folder of pictures named ``age_gender_race_date.jpg``.

    The age is the first field; others may be missing, as in three names of the release. Nobody published who the
    persons are: no protocol can keep a person in one part, and no audit can count leaks. The crops are served
    whole, without ``margin``.

    Protocols: ``stratified`` (``folds`` folds with the same mix of ages); ``holdout`` (tests a random tenth and
    trains on the rest).
    """

    protocols = {"stratified": STRATIFIED, "holdout": HOLDOUT}
    age_range = (0, 116)
    unused = ("alignment", "boxes")

    def read(self) -> FaceRecords:
        """List the folder. Raises LDLError for a name that does not begin with an age."""
        folder = self.locate("UTKFace")
        if not folder.is_dir():
            raise self.absent("UTKFace")
        paths = list_pictures(folder)
        ages = [path.name.partition("_")[0] for path in paths]
        if not any(map(str.isdecimal, ages)) and not self.path:
            raise self.absent("UTKFace")
        for path, age in zip(paths, ages):
            if not age.isdecimal():
                raise LDLError(f"{path} does not begin with an age; UTKFace's names are age_gender_race_date.jpg")
        files = [path.relative_to(folder).as_posix() for path in paths]
        return FaceRecords(folder, files, np.array([float(age) for age in ages]))
