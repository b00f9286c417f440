"""UTKFace (Zhang, Song & Qi, CVPR 2017)."""

from __future__ import annotations

from ldl.data.faces.ages import FaceAges
from ldl.data.faces.face_list import read_named_faces
from ldl.data.faces.protocols import HOLDOUT, STRATIFIED
from ldl.data.faces.records import FaceRecords
from ldl.data.pictures import list_pictures


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
        if not self.path and not any(path.name.partition("_")[0].isdecimal() for path in list_pictures(folder)):
            raise self.absent("UTKFace")
        return read_named_faces(folder)
