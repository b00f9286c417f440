"""Faces: data sets of ages and poses, their releases and lists, detectors, crops."""

from ldl.faces.ages import FGNET, FaceFolder, UTKFace
from ldl.faces.fgnet_aam import FGNETAAM
from ldl.faces.morph import Morph
from ldl.faces.pointing04 import Pointing04

__all__ = ["FGNET", "FGNETAAM", "FaceFolder", "Morph", "Pointing04", "UTKFace"]
