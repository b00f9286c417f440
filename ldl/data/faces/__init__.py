"""Data modules of faces with ages or head poses."""

from ldl.data.faces.ages import FGNET, FaceAges, FaceFolder, UTKFace
from ldl.data.faces.morph import Morph
from ldl.data.faces.pointing04 import Pointing04

__all__ = ["FGNET", "FaceAges", "FaceFolder", "Morph", "Pointing04", "UTKFace"]
