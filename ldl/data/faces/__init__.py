"""Data modules of faces and ages."""

from ldl.data.faces.ages import FaceAges
from ldl.data.faces.face_folder import FaceFolder
from ldl.data.faces.fgnet import FGNET
from ldl.data.faces.morph.morph import Morph
from ldl.data.faces.pointing04.pointing04 import Pointing04
from ldl.data.faces.utkface import UTKFace

__all__ = ["FGNET", "FaceAges", "FaceFolder", "Morph", "Pointing04", "UTKFace"]
