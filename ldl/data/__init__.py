"""Data modules, one data set a file."""

from ldl.data.bags import Bags
from ldl.data.base import LDLDataModule
from ldl.data.bsds500 import BSDS500
from ldl.data.clutter import PosedFaces, ShiftedFaces
from ldl.data.faces import FGNET, FaceFolder, Morph, Pointing04, UTKFace
from ldl.data.fgnet_aam import FGNETAAM
from ldl.data.mnist import MixedDigits, ShiftedDigits
from ldl.data.picture_folder import PictureFolder
from ldl.data.rotated_digits import RotatedDigits
from ldl.data.tabular import TabularLDL
from ldl.data.tabular_values import TabularValues

__all__ = [
    "BSDS500",
    "FGNET",
    "FGNETAAM",
    "Bags",
    "FaceFolder",
    "LDLDataModule",
    "MixedDigits",
    "Morph",
    "PictureFolder",
    "Pointing04",
    "PosedFaces",
    "RotatedDigits",
    "ShiftedDigits",
    "ShiftedFaces",
    "TabularLDL",
    "TabularValues",
    "UTKFace",
]
