"""Data modules, one data set a file."""

from ldl.data.base import LDLDataModule
from ldl.data.faces import FGNET, FaceFolder, Morph, Pointing04, UTKFace
from ldl.data.fgnet_aam import FGNETAAM
from ldl.data.picture_folder import PictureFolder
from ldl.data.rotated_digits import RotatedDigits
from ldl.data.tabular import TabularLDL
from ldl.data.tabular_values import TabularValues

__all__ = [
    "FGNET",
    "FGNETAAM",
    "FaceFolder",
    "LDLDataModule",
    "Morph",
    "PictureFolder",
    "Pointing04",
    "RotatedDigits",
    "TabularLDL",
    "TabularValues",
    "UTKFace",
]
