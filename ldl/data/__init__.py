"""Data modules, one data set a file."""

from ldl.data.bags import Bags
from ldl.data.base import LDLDataModule
from ldl.data.bsds500 import BSDS500
from ldl.data.clutter import PosedFaces, ShiftedFaces
from ldl.data.faces import FGNET, FaceFolder, Morph, UTKFace
from ldl.data.mnist import MixedDigits, ShiftedDigits
from ldl.data.picture_folder import PictureFolder
from ldl.data.rotated_digits import RotatedDigits
from ldl.data.tabular import TabularLDL

__all__ = [
    "BSDS500",
    "Bags",
    "FGNET",
    "FaceFolder",
    "LDLDataModule",
    "MixedDigits",
    "Morph",
    "PictureFolder",
    "PosedFaces",
    "RotatedDigits",
    "ShiftedDigits",
    "ShiftedFaces",
    "TabularLDL",
    "UTKFace",
]
